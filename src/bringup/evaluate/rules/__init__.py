"""One file a rule; `registry.RULES` lists them."""

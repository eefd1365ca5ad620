"""The verbs of the command line, one module each; see `bringup.cli`."""

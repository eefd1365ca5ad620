"""Reading pasted text: lines out of streams, facts out of lines."""

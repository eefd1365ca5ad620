"""Facts to findings; pure: no I/O, no clock, no console."""

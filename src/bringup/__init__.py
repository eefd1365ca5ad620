"""See every incompatibility of a GPU software stack at once, from its bytes, before the first start."""

__version__ = "0.1.0"

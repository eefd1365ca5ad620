"""Parsers of what single commands and files of a machine say: text in, facts out."""

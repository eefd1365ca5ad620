"""Findings to words."""

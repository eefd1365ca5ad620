"""Sending a batch: read, send, journal. Every line of the input is answered exactly once in the output."""

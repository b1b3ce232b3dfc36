"""Operators of neural networks, one a file."""

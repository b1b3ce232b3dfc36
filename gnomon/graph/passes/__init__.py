"""Passes: each a pure function from a graph of operators to a graph, and their pipeline."""

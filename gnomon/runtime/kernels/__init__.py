"""Kernels: planned and compiled once by structure, found again, and bound to memory as steps."""

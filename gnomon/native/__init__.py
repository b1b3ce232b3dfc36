"""Restricted Python functions as native code that works on objects; see docs/native.md."""

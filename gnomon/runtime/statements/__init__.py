"""Statements: prepared as steps, and launched again by native code where they come again."""

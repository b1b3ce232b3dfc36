"""Elementary and special functions, written out in the arithmetic that every target has."""

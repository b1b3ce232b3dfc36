"""Tasks: what nodes compute, as expressions, joined and parted into the work of a program."""

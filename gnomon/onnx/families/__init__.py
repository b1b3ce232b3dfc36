"""The translations, a family of operators in each file; `table.py` says how they are declared."""

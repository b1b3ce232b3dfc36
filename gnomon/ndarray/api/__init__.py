"""What arrays can do, for users: operators of Python, indexing, methods, functions, formats."""

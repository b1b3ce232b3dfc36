"""In what order: from a statement to a loop nest (rank 2)."""

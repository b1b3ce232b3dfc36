"""In what language: from a loop nest to text that a machine's compiler takes (rank 3)."""

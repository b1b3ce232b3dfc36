"""What to compute: expressions as immutable trees, and what can be asked of them (rank 1)."""

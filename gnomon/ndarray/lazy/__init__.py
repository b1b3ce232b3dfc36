"""How operators run on arrays: kept pending, fused into one kernel, or run at once."""

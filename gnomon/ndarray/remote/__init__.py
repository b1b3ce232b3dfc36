"""Arrays in memory that this process cannot touch, as that of GPUs."""

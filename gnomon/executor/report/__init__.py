"""What is told of an executor: its listing, memory, times, and values as they are made."""

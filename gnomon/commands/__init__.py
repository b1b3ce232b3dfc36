"""What the command `gnomon` does, by its commands."""

"""What every other folder stands on, and no program imports: locks, records, files, tracebacks."""

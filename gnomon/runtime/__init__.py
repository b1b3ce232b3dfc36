"""Running machine code: linking, programs, threads, storage, libraries and devices."""

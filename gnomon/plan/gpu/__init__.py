"""For GPUs: the loop nest dealt to threads, warps and blocks, as a grid program."""

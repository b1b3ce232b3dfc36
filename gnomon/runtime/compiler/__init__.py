"""From the text of LLVM to machine code: compiled and linked in this process, and kept on disk."""

"""How steps run: in sequence as programs, in tasks on threads, behind the program on a stream."""

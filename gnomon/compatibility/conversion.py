"""Which arrays read in Python convert to a number where they have one element, as in NumPy 1.

`everywhere` is set by `gnomon.compat`: all that `asnumpy` gives, and what is computed from it.
Otherwise only arrays of one element do, which cost no others anything.
"""

everywhere = False

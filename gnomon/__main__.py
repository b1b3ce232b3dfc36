"""`python -m gnomon` is the command `gnomon`."""

from __future__ import annotations

import sys

from gnomon.cli import main

if __name__ == "__main__":
    sys.exit(main())

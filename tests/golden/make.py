"""Record what the real MXNet 1.9.1 does, into small files beside this one.

Run by hand, in a virtual environment with numpy==1.23.5 and mxnet==1.9.1 (Python 3.11 or older):

    MXNET_SUBGRAPH_BACKEND=NONE python tests/golden/make.py [files|operators|networks|graphs|facts]

The subgraph setting is not optional: without it this version gives wrong results for some networks.
`NOTES.md` says what was found at the edges, and where gnomon differs on purpose.
"""

import importlib
import os
import sys
from pathlib import Path

PARTS = ("files", "operators", "networks", "graphs", "facts")


def main() -> None:
    """Write the files of the parts named on the command line, or of all."""
    if os.environ.get("MXNET_SUBGRAPH_BACKEND") != "NONE":
        sys.exit("set MXNET_SUBGRAPH_BACKEND=NONE: this MXNet is wrong without it")
    folder = Path(__file__).parent
    sys.path.insert(0, str(folder))
    for part in sys.argv[1:] or PARTS:
        importlib.import_module(f"make_{part}").make(folder)


if __name__ == "__main__":
    main()

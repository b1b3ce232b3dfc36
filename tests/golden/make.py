"""Record what the real MXNet 1.9.1 does, into small files beside this one.

Run by hand, in a virtual environment with numpy==1.23.5 and mxnet==1.9.1 (Python 3.11 or older):

    python tests/golden/make.py [part] ...

A part is the name of a file `make_part.py`; `operators-group` are the records of
`make_cases_group.py`. Without any, all are made.

It runs on MXNet's synchronous engine and without its subgraph backend: with its threaded engine and
oneDNN this version gives wrong gradients of convolutional networks now and then, and with the
subgraph backend wrong predictions of residual ones. With oneDNN the gradient of LRN behind a ReLU
is off by 1%, without it there is no RNN, so the networks take two runs, the second of them

    MXNET_MKLDNN_ENABLED=0 python tests/golden/make.py networks

`NOTES.md` says what was found at the edges, and where gnomon differs on purpose.
"""

import importlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def parts() -> list[str]:
    """The names of all parts: files `make_part.py` with a `make`, and groups of records."""
    files = [f for f in sorted(HERE.glob("make_*.py")) if "\ndef make(" in f.read_text()]
    first = importlib.import_module("make_operators").FIRST
    groups = (f.stem.removeprefix("make_cases_") for f in sorted(HERE.glob("make_cases_*.py")))
    named = [f.stem.removeprefix("make_") for f in files]
    return named + [f"operators-{group}" for group in groups if group not in first]


def main() -> None:
    """Write the files of the parts named on the command line, or of all."""
    os.environ.update(
        MXNET_SUBGRAPH_BACKEND="NONE",
        MXNET_ENGINE_TYPE="NaiveEngine",
        MXNET_STORAGE_FALLBACK_LOG_VERBOSE="0",
    )
    sys.path.insert(0, str(HERE))
    for part in sys.argv[1:] or parts():
        name, _, group = part.partition("-")
        importlib.import_module(f"make_{name}").make(HERE, *filter(None, [group]))


if __name__ == "__main__":
    main()

"""What MXNet's operators are called with by position: writes `positions.txt` beside this file.

Run with an interpreter that has MXNet 1.9.1, given the names of operators, one a line:

    python tests/golden/make_positions.py < names.txt
"""

import inspect
import sys
from pathlib import Path

import mxnet as mx

WITHOUT = ("out", "name", "kwargs")


def main() -> None:
    lines = []
    for name in sys.stdin.read().split():
        spaces = (mx.nd, mx.nd._internal, mx.nd.op)
        function = next((getattr(s, name) for s in spaces if hasattr(s, name)), None)
        for inner in ("contrib", "image", "linalg"):
            short = name.removeprefix(f"_{inner}_")
            if short != name:
                function = getattr(getattr(mx.nd, inner), short, function)
        if callable(function):
            names = [p for p in inspect.signature(function).parameters if p not in WITHOUT]
            lines.append(f"{name}: {' '.join(names)}\n")
    Path(__file__).with_name("positions.txt").write_text("".join(sorted(lines)))


if __name__ == "__main__":
    main()

"""sparse.json: what the statements of sparse.txt give."""

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import sparse


def answer(case):
    """The arrays that a statement gives; None where it is refused."""
    try:
        return sparse.run(mx, case)
    except Exception:
        return None


def make(folder) -> None:
    """Write them."""
    rows = [f"{json.dumps(case)}: {json.dumps(answer(case))}" for case in sparse.CASES]
    (folder / "sparse.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")

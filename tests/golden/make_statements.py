"""sparse.json and lookup.json: what the statements of the text files give."""

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import statements


def answer(case):
    """The arrays that a statement gives; None where it is refused."""
    try:
        return statements.run(mx, case)
    except Exception:
        return None


def make(folder) -> None:
    """Write them."""
    for name in statements.FILES:
        cases = statements.cases(name)
        rows = [f"{json.dumps(case)}: {json.dumps(answer(case))}" for case in cases]
        (folder / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")

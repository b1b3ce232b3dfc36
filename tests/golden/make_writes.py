"""writes.json: what comes of writing into arrays while recording."""

import json
import sys
from pathlib import Path

import mxnet as mx

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import writes


def make(folder) -> None:
    """Write it."""
    rows = [
        f"{json.dumps(text)}: {json.dumps([writes.run(mx, kind, text) for kind in writes.KINDS])}"
        for text in writes.STATEMENTS
    ]
    (folder / "writes.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")

"""np_shapes.json: inference within and outside of `np_shape`."""

import json

import mxnet as mx
import np_shapes


def make(folder) -> None:
    """Write it."""
    found = {
        name: {str(active): np_shapes.inferred(mx, name, active) for active in (False, True)}
        for name in np_shapes.CASES
    }
    (folder / "np_shapes.json").write_text(json.dumps(found) + "\n", encoding="utf-8")

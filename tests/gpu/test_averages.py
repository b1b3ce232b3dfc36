"""Moving averages of normalizations on a GPU move where MXNet's do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import averages

import gnomon as mx

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "averages.json").read_text())
KINDS = ("arrays", "above: BlockGrad", "grad", "bound", "hybrid: both", "block: both", "loop")


@pytest.mark.parametrize("name", [n for n in averages.CASES if n.startswith(KINDS)])
def test_averages_move_where_those_of_mxnet_do(name: str) -> None:
    found = averages.CASES[name](mx, mx.gpu(0))
    np.testing.assert_allclose(found, GOLDEN[name], 1e-4, 1e-6)

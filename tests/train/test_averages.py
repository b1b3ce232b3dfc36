"""Moving averages of normalizations move where MXNet's do: in backward passes that reach them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import averages
from ndarray.noted_steps import AT_FIRST, begin_soon

import gnomon as mx

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "averages.json").read_text())


@pytest.mark.parametrize("name", averages.CASES)
def test_averages_move_where_those_of_mxnet_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as it takes until programs do what was recorded."""
    begin_soon(monkeypatch)
    for _ in range(AT_FIRST + 2):
        found = averages.CASES[name](mx, mx.cpu())
        np.testing.assert_allclose(found, GOLDEN[name], 1e-4, 1e-6)

"""Programs that are compared with MXNet do lazily what they do line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gnomon as mx
from tests.crossing.__main__ import Hunt, run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_a_program_that_is_not_waited_for(seed):
    without: Any = None  # an oracle: MXNet is not needed here
    with np.errstate(all="ignore"):
        hunt = Hunt(mx, without, 16)
        lines = hunt.write(seed)
        waited, lazily = (run(mx, lines, each) for each in (True, False))
    assert not hunt.compare(lines, lazily, waited, "lazily", lazy=True)
    assert any(value[:1] == ("array",) for value in waited[1].values())

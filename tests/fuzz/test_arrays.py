"""Array statements with equal operands and forms that can be simplified: as on copies of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.arrays import run


@pytest.fixture(autouse=True)
def _numbers_that_are_none():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_some_programs(first):
    found = [report for seed in range(first, first + 20) if (report := run(seed))]
    assert not found, "\n\n".join(found)


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_programs(monkeypatch):
    """Compiled in haste: what is compared is what the planner makes of them."""
    monkeypatch.setattr("gnomon.runtime.kernels.kernel.LARGE", 0)
    monkeypatch.setattr("gnomon.runtime.kernels.kernel.HUGE", 0)
    found = [report for seed in range(100_000) if (report := run(seed))]
    assert not found, "\n\n".join(found[:5])

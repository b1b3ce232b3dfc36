"""Every test here has two simulated GPUs of its own, and ends with all of their work done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gnomon.runtime.devices.cuda.simulated import Simulated
from tests.simulated import gpus


@pytest.fixture(autouse=True)
def simulated() -> Iterator[Simulated]:
    """The driver."""
    with gpus() as made:
        yield made

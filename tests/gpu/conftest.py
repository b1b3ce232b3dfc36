"""Every test here has two simulated GPUs of its own, and ends with all of their work done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.devices.cuda.simulated_dnn import SimulatedDnn
from tests.simulated import gpus


@pytest.fixture(autouse=True)
def simulated() -> Iterator[Simulated]:
    """The driver."""
    with gpus() as made:
        yield made


@pytest.fixture
def asked(monkeypatch):
    """What cuDNN is asked to compute: which part of which convolution."""
    found = []
    convolve = SimulatedDnn.convolve

    def noted(library, handle, described, *rest):
        found.append(library.driver.get("test", object, described).what)
        convolve(library, handle, described, *rest)

    monkeypatch.setattr(SimulatedDnn, "convolve", noted)
    return found

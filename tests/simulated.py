"""Two simulated GPUs of a test's own, and tests that run on the processor and there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import gnomon as mx
from gnomon import config
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda import driver, gpu
from gnomon.runtime.devices.cuda.simulated import Simulated


@contextmanager
def gpus() -> Iterator[Simulated]:
    """The driver, new for each test, for one that has failed stays so; all work is done at last."""
    made = Simulated()
    kept = driver._found.pop("simulated", None), dict(gpu._gpus), dict(pool._pools)
    driver._found["simulated"] = made
    gpu._gpus.clear()
    _forget_pools()
    before = config.get("gpu")
    config.set("gpu", "simulated")  # of the process: workers of the engine look as well
    try:
        yield made
        if made.failed is None:
            for found in list(gpu._gpus.values()):
                found.synchronise()
    finally:
        config.set("gpu", before)
        gpu._gpus.clear()
        gpu._gpus.update(kept[1])
        _forget_pools()
        pool._pools.update(kept[2])
        driver._found.pop("simulated")
        if kept[0] is not None:
            driver._found["simulated"] = kept[0]
        gpu._current.__dict__.clear()


def _forget_pools() -> None:
    for name in [n for n in pool._pools if str(n).startswith("gpu")]:
        del pool._pools[name]


@pytest.fixture(params=["cpu", "gpu"])
def device(request: pytest.FixtureRequest) -> Iterator[mx.Context]:
    """The context that a test's arrays are made on where it names none."""
    if request.param == "cpu":
        yield mx.cpu()
        return
    with gpus(), mx.gpu(0) as ctx:
        yield ctx

"""Expressions over memory of the processor, the same over memory of a GPU."""

from __future__ import annotations

import numpy as np

from gnomon.expr.node import Buffer, Expr
from gnomon.expr.oracle import evaluate
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.plan.cut import reach
from gnomon.plan.statement import Store
from gnomon.runtime.devices import device as devices
from gnomon.runtime.devices import pool
from gnomon.runtime.statements.prepare import prepare
from tests.plan.test_expressions import SAVERS, over


def moved(buffer: Buffer, device: str = "gpu") -> Buffer:
    """The same bytes with the same strides, there."""
    low, high = reach(buffer)
    storage = pool.allocate(max(1, high - low), device)
    gpu = devices.find(device)
    if low < high:
        gpu.copy_on(gpu.default, storage.address, low, high - low)
    address = storage.address + (buffer.address - low)
    return Buffer(buffer.shape, buffer.dtype, buffer.strides, address, storage, storage.device)


def there(e: Expr, device: str = "gpu") -> Expr:
    """An expression with all of its data on a GPU."""
    leaves = [n for n in postorder([e]) if isinstance(n, Buffer)]
    return substitute([e], {leaf: moved(leaf, device) for leaf in leaves})[0]


def run(stores: list[Store]) -> None:
    for step in prepare(stores):
        step.run()


def on_gpu(e: Expr, saver: str = "saveto") -> np.ndarray:
    """What a statement gives on a GPU, into memory full of 2."""
    dest = moved(over(np.full(e.shape, 2, e.dtype.numpy)))
    run([Store(dest, saver, there(e))])
    return dest.numpy()


def on_cpu(e: Expr, saver: str = "saveto") -> np.ndarray:
    """What it gives on the processor."""
    dest = np.full(e.shape, 2, e.dtype.numpy)
    run([Store(over(dest), saver, e)])
    return dest


def by_oracle(e: Expr, saver: str = "saveto") -> np.ndarray:
    """What it is, by NumPy: without a compiler in between."""
    wide = np.float64 if e.dtype.kind == "f" else e.dtype.numpy
    start = np.full(e.shape, 2, e.dtype.numpy).astype(wide)
    with np.errstate(all="ignore"):
        return SAVERS[saver](start, evaluate(e).astype(wide)).astype(e.dtype.numpy)


def both(e: Expr, saver: str = "saveto") -> tuple[np.ndarray, np.ndarray]:
    """What it is, and what a GPU gives."""
    return by_oracle(e, saver), on_gpu(e, saver)


def close(got: np.ndarray, want: np.ndarray, rtol: float) -> None:
    wide = np.float64 if got.dtype.kind not in "iub" else got.dtype
    scale = np.max(np.abs(want[np.isfinite(want.astype(wide))]), initial=1).astype(wide)
    atol = rtol * scale
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)

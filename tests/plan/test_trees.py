"""Random trees over random layouts, dtypes, savers and overlaps: memory holds what it must.

The oracle says what the destinations must hold, to the last bit, and that nothing else changes.
Every statement runs three times over other numbers, since it may go other ways when it comes again.
Run `python -m pytest -m long tests/plan/test_trees.py` before a release; a failure names its seed.
"""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Expr
from gnomon.expr.oracle import evaluate
from gnomon.expr.walk import postorder
from gnomon.plan.statement import SAVERS, Store
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow import Tensor
from tests.plan.trees import DTYPES, SHAPES, Forest

RUNS = 3
SLICE = 100  # seeds a test


def predictable(e: Expr) -> bool:
    """Whether rounding plays no part: all numbers on the way are small, and whole or nearly."""
    for node in postorder([e]):
        if node.dtype.kind != "f":
            continue
        value = evaluate(node).astype(np.float64)
        finite = value[np.isfinite(value)]
        limit = 64.0 if node.dtype.size == 2 else 2048.0
        if np.any(np.abs(finite) > limit) or np.any(finite * 4 != np.rint(finite * 4)):
            return False
    return True


def same(a: np.ndarray, b: np.ndarray) -> bool:
    wide = [x.astype(np.float32) if x.dtype.itemsize == 2 else x for x in (a, b)]
    return bool(np.array_equal(*wide, equal_nan=a.dtype.kind not in "iub"))


class Case:
    """One random group of statements, mostly of one."""

    def __init__(self, seed: int) -> None:
        f = self.forest = Forest(seed)
        count = f.choose([1, 1, 1, 1, 2, 3])
        self.stores: list[Store] = []
        for _ in range(count):
            shape, dtype = f.choose(SHAPES), f.choose(DTYPES)
            value = f.grow(shape, dtype, f.choose([1, 2, 3, 4]))
            saver = f.choose(["saveto", "saveto", *SAVERS])
            self.stores.append(Store(Tensor(f.view(shape, dtype)), saver, value))

    def run(self) -> bool:
        """Carry the statements out; False where rounding decides what is right."""
        self.forest.refill()
        stores = self.stores
        exact = all(predictable(s.value) for s in stores)
        exact = exact and not any(s.saver == "divto" and s.dest.dtype.kind == "f" for s in stores)
        values = [np.broadcast_to(evaluate(s.value), s.dest.shape) for s in stores]
        memory = [block.copy() for block in self.forest.whole]
        self.expect(values)
        wanted = [block.copy() for block in self.forest.whole]
        for block, old in zip(self.forest.whole, memory, strict=True):
            block[...] = old
        self.carry_out()
        if exact:
            assert all(map(same, self.forest.whole, wanted)), self.shown()
        return exact

    def expect(self, values: list[np.ndarray]) -> None:
        """Store by NumPy, in order."""
        for store, value in zip(self.stores, values, strict=True):
            dest, update = store.dest.numpy(), SAVERS[store.saver]
            dest[...] = value if update is None else SCALAR[update].numpy(dest, value)

    def carry_out(self) -> None:
        if len(self.stores) == 1:
            (store,) = self.stores
            store.dest.assign(store.value, store.saver)
            return
        for step in prepare(self.stores):
            step.run()

    def shown(self) -> str:
        lines = [f"{s.dest!r} {s.dest.strides} {s.saver}\n{s.value.tree()}" for s in self.stores]
        return "\n".join(lines)


def hold(seeds: range) -> float:
    """Run the cases of these seeds; the share that could be compared."""
    compared = 0
    for seed in seeds:
        case = Case(seed)
        try:
            compared += sum(case.run() for _ in range(RUNS))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}\n{case.shown()}") from error
    return compared / RUNS / len(seeds)


def test_random_trees() -> None:
    """The first cases, most of which can be compared."""
    assert hold(range(SLICE)) > 0.6


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, 100))
def test_many_random_trees(part: int) -> None:
    """With those above 10,000 cases."""
    assert hold(range(part * SLICE, (part + 1) * SLICE)) > 0.6

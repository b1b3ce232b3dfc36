"""Extensions three deep, over all layouts, dtypes and savers, against the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.expr.oracle import evaluate
from gnomon.runtime.statements.prepare import Store, prepare
from tests.shadow.compositions import composition, memory, over

SAVERS = {
    "saveto": lambda old, new: new,
    "plusto": lambda old, new: old + new,
    "minusto": lambda old, new: old - new,
    "multo": lambda old, new: old * new,
}


def check(seed: int) -> None:
    """One composition: its kernel gives what the oracle gives, and nothing else is written."""
    rng = np.random.default_rng(seed)
    e, names = composition(rng)
    saver = str(rng.choice(list(SAVERS)))
    dest = memory(rng, e.shape, e.dtype.name, repeats=False)
    exact = e.dtype.kind in "iu"
    wide = e.dtype.numpy if exact else np.float64
    old = dest.astype(wide)
    with np.errstate(all="ignore"):
        want = SAVERS[saver](old, evaluate(e).astype(wide))
    for step in prepare([Store(over(dest), saver, e)]):
        step.run()
    slack = 0 if exact else {2: 2e-2, 4: 2e-5, 8: 1e-10}[e.dtype.size]
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
    if e.dtype.size == 2:
        want = want.astype(np.float16).astype(wide)
    message = f"seed {seed}: {' over '.join(reversed(names))}, {saver}\n{e.tree()}"
    np.testing.assert_allclose(
        dest.astype(wide), want, rtol=slack, atol=slack * float(scale), err_msg=message
    )


@pytest.mark.parametrize("part", range(6))
def test_compositions(part):
    for seed in range(30 * part, 30 * part + 30):
        check(seed)


@pytest.mark.parametrize("seed", [4462, 172])  # miscompiled by LLVM; compiled for minutes
def test_what_went_wrong(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(100))
def test_many_compositions(part):
    for seed in range(1000 + 50 * part, 1050 + 50 * part):
        check(seed)

"""What the scheduler takes a kernel's work for."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.plan.schedule import COSTS
from gnomon.plan.share import CHEAP
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shadow import fn


def work(value):
    """The estimated work of storing an expression."""
    out = shadow.Tensor(np.zeros(value.shape, value.dtype.name))
    return sum(step.work for step in prepare([Store(out, shadow.saveto, value)]))


def test_every_function_that_is_no_instruction_has_its_cost():
    dear = {name for name, row in PRIMITIVES.items() if row.floats_only} - CHEAP
    assert dear - COSTS.keys() == {"scalb"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_work_follows_what_functions_take(dtype):
    x = shadow.Tensor(np.ones(1000, dtype))
    rising = [fn.neg, fn.exp, fn.sin, fn.tan, fn.gelu, fn.gamma]
    found = [work(function(x)) for function in rising]
    assert found == sorted(found)
    assert found[4] > 3 * found[1]


def test_functions_of_float64_take_longer():
    narrow, wide = (work(fn.sin(shadow.Tensor(np.ones(100, d)))) for d in ("float32", "float64"))
    assert wide > 1.5 * narrow

"""The cost model: how long a task takes, estimated from its form before it is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gnomon.base import GnomonError
from gnomon.expr.call import Dot, Recurrence, RecurrenceGradient
from gnomon.expr.call.pool import Winner
from gnomon.expr.composite import Call
from gnomon.expr.node import Expr
from gnomon.expr.walk import postorder
from gnomon.graph.tasks.form import Form
from gnomon.runtime.execution.program import estimated
from gnomon.runtime.kernels.division import GRAIN
from gnomon.runtime.libraries import dnn, neural
from gnomon.shape import prod

PRODUCT = 400_000  # multiply-adds of a matrix product below which another thread does not pay
FILTERS = 2_000_000  # and of a convolution, whose batch the threads share


class Cost(NamedTuple):
    """The work of a task (see `division.GRAIN`), and into how many parts it is cut."""

    work: int
    parts: int


def cost(form: Form, threads: int) -> Cost | None:
    """The cost of what `form` says; None where it runs in parallel already."""
    moved = sum(prod(e.shape) * e.dtype.size for e in (*form.values, *form.leaves))
    nodes = form.nodes
    call = next((n for n in nodes if isinstance(n, Call)), None)
    if isinstance(call, Recurrence | RecurrenceGradient):
        return None
    operations, parts = _of_call(call) if call is not None else (_operations(nodes), threads)
    work = estimated(moved, operations)
    if call is None:
        parts = 1 + work // GRAIN
    return Cost(work, min(parts, threads))


def _operations(nodes: Iterable[Expr]) -> int:
    """Operations of element-wise expressions and reductions: one for each element of each node."""
    return sum(prod(n.shape) for n in nodes if n.children)


def _of_call(call: Call) -> tuple[int, int]:
    """The operations of a library's call, and into how many parts it may be cut."""
    if isinstance(call, Dot):
        inner = call.a.shape[-2 if call.transpose_a else -1]
        macs = prod(call.shape) * inner
        return 2 * macs, max(1, macs // PRODUCT)
    if isinstance(call, Winner):
        return prod(call.shape) * prod(call.window.kernel), call.shape[0]
    try:
        which, _ = neural.described(call)
    except GnomonError:  # the fallback computes it
        return _operations(postorder([call])), 1
    if isinstance(which, dnn.Convolution):
        return 2 * which.work, max(1, min(which.data[0], which.work // FILTERS))
    return prod(which.data) * prod(which.kernel), which.data[0]

"""Calls: which library carries out which `Call` node, and the steps that do.

A table from node types to makers; a maker gives None where the library is missing or does not do
this case, and the planner takes the node's fallback expression.
"""

from __future__ import annotations

from gnomon.expr.node import Call
from gnomon.plan.cut import Invoke
from gnomon.runtime.program import Step


def supported(call: Call) -> bool:
    """Whether a library on this machine carries out `call`."""
    return False


def steps(invoke: Invoke) -> list[Step]:
    """The steps of a supported call on buffers with memory."""
    raise AssertionError(invoke)

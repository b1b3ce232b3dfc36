"""Temporaries of statements: dense buffers in memory to work in, and copies into them."""

from __future__ import annotations

from gnomon.expr.node import Buffer, Expr
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.kernels.workspace import working_memory
from gnomon.shape import prod


def temporary(e: Expr, device: str = "cpu") -> Buffer:
    """A dense buffer for the value of `e`: on the processor in working memory (`workspace.py`)."""
    nbytes = max(1, prod(e.shape) * e.dtype.size)
    storage = working_memory(nbytes) if device == "cpu" else pool.allocate(nbytes, device)
    return Buffer(e.shape, e.dtype, None, storage.address, storage, device)


def copied(buffer: Buffer) -> tuple[Buffer, list[Step]]:
    """A dense buffer, and the step that copies `buffer` there."""
    copy = temporary(buffer)
    stores = [Store(copy, "saveto", buffer)]
    structure = Structure(stores)
    return copy, [CACHE.get(stores, structure).bind(structure, "copy")]

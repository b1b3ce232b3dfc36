"""Looking inside: what each stage makes of an expression, as text.

A kernel keeps neither its nests nor its text: they are made anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gnomon.base import Later, ParamError, complaint
from gnomon.expr.node import STAGES, Buffer, Expr
from gnomon.plan.cut import Invoke
from gnomon.plan.ir import Kernel as Nests
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.kernels import stages
from gnomon.runtime.kernels.kernel import divides
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.prepare import pieces

if TYPE_CHECKING:
    from gnomon.code import cpu, nvptx, target
    from gnomon.code.target import Target
    from gnomon.plan import pipeline
    from gnomon.plan.gpu import spread as spreading
    from gnomon.runtime.compiler import cross
else:
    cpu, nvptx, target = map(Later, ("gnomon.code.cpu", "gnomon.code.nvptx", "gnomon.code.target"))
    pipeline, spreading = Later("gnomon.plan.pipeline"), Later("gnomon.plan.gpu.spread")
    cross = Later("gnomon.runtime.compiler.cross")


def explain(stores: Sequence[Store], stage: str = "loop") -> str:
    """What runs for a group of statements, kernels and library calls in order.

    `stage` is one of `stages.STAGES`, or the name of a machine: its assembly.

    Raises:
        ParamError: there is no such stage.
    """
    show = printer(stage)
    return "\n".join(
        f"library: {piece.call!r}"
        if isinstance(piece, Invoke)
        else show(pipeline.plan(piece, Structure(piece)))
        for piece in pieces(stores)
    )


def printer(stage: str) -> Callable[[Nests], str]:
    """What shows a stage, or the code for a machine."""
    found = stages.STAGES.get(stage) if isinstance(stage, str) else None
    if found is not None:
        return found.text
    try:
        machine = target.named(stage)
    except ParamError:
        known = ", ".join((*stages.STAGES, *target.TARGETS))
        expected = f"one of {known}, or a GPU such as 'sm_90'"
        raise ParamError(complaint("explain", "stage", expected, stage)) from None
    return lambda nests: assembly(nests, machine)


def assembly(nests: Nests, machine: Target) -> str:
    """The assembly of loop nests for a machine that need not be this one; PTX for a GPU."""
    opt = 2 if divides(nests) else 1
    if not machine.triple.startswith("nvptx"):
        return cross.assembly(cpu.write(nests, machine), machine, opt)
    grid = spreading.spread(nests)
    module = nvptx.write(grid, machine)
    return nvptx.notes(grid, module) + cross.assembly(module.text, machine, opt)


def shown(e: Expr, stage: str) -> str:
    """What `explain` tells of an assignment to a fresh dense destination."""
    # a pass may look at addresses, so the destination is a real one
    dest: Buffer = temporary(e)
    return explain([Store(dest, "saveto", e)], stage)


STAGES.update({stage: functools.partial(shown, stage=stage) for stage in stages.STAGES})

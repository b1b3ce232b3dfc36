"""Looking inside: what each stage makes of an expression, as text.

A kernel keeps neither its nests nor its text: they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon.base import ParamError, complaint
from gnomon.expr.node import STAGES, Buffer, Expr
from gnomon.plan.cut import Invoke
from gnomon.plan.ir import Kernel as Nests
from gnomon.plan.pipeline import plan
from gnomon.plan.show import loops, outline
from gnomon.plan.statement import Store, Structure
from gnomon.runtime import jit
from gnomon.runtime.jit import Module
from gnomon.runtime.kernel import source
from gnomon.runtime.prepare import pieces
from gnomon.runtime.scratch import temporary


def explain(stores: Sequence[Store], stage: str = "loop") -> str:
    """What runs for a group of statements, kernels and library calls in order.

    Raises:
        ParamError: there is no such stage.
    """
    show = PRINTERS.get(stage) if isinstance(stage, str) else None
    if show is None:
        raise ParamError(complaint("explain", "stage", f"one of {', '.join(PRINTERS)}", stage))
    return "\n".join(
        f"library: {piece.call!r}"
        if isinstance(piece, Invoke)
        else show(plan(piece, Structure(piece)))
        for piece in pieces(stores)
    )


def compiled(nests: Nests) -> Module:
    """The machine code of loop nests."""
    code = source(nests)
    return jit.compile_ir(code.text, opt=code.opt)


def _for_fresh_destination(stage: str) -> Callable[[Expr], str]:
    def show(e: Expr) -> str:
        # a pass may look at addresses, so the destination is a real one
        dest: Buffer = temporary(e)
        return explain([Store(dest, "saveto", e)], stage)

    return show


PRINTERS: dict[str, Callable[[Nests], str]] = {
    "plan": outline,
    "loop": loops,
    "llvm": lambda nests: compiled(nests).ir(),
    "asm": lambda nests: compiled(nests).asm(),
}
STAGES.update({stage: _for_fresh_destination(stage) for stage in PRINTERS})

"""Looking inside: what each stage makes of an expression, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon.expr.node import STAGES, Buffer, Expr
from gnomon.plan.show import loops, outline
from gnomon.plan.statement import Store
from gnomon.runtime.kernel import Kernel
from gnomon.runtime.prepare import kernels
from gnomon.runtime.scratch import temporary

PRINTERS: dict[str, Callable[[Kernel], str]] = {
    "plan": lambda kernel: outline(kernel.nests),
    "loop": lambda kernel: loops(kernel.nests),
    "llvm": lambda kernel: kernel.module.ir(),
    "asm": lambda kernel: kernel.module.asm(),
}


def explain(stores: Sequence[Store], stage: str = "loop") -> str:
    """What runs for a group of statements, kernels and library calls in order."""
    show = PRINTERS[stage]
    return "\n".join(
        show(piece) if isinstance(piece, Kernel) else f"library: {piece!r}"
        for piece in kernels(stores)
    )


def _for_fresh_destination(stage: str) -> Callable[[Expr], str]:
    def show(e: Expr) -> str:
        # a pass may look at addresses, so the destination is a real one
        dest: Buffer = temporary(e)
        return explain([Store(dest, "saveto", e)], stage)

    return show


STAGES.update({stage: _for_fresh_destination(stage) for stage in PRINTERS})

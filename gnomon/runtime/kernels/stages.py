"""Stages: what the compiler makes of loop nests, as text; and the ladder that shows it by itself.

`GNOMON_DEBUG` (see `config`) is asked where a kernel is made, and where a statement goes the whole
way: 2 shows where each kernel comes from and how long its runs take, 3 its phases, 4 its loops,
5 LLVM's code and 7 the machine's. From 2 on no statement is learned (see `dispatch`), so that each
is seen. What is only shown is planned and compiled once more for that.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gnomon import config
from gnomon.base import Later
from gnomon.plan.ir import Kernel as Nests
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.kernel import source

if TYPE_CHECKING:
    from gnomon.plan import pipeline
    from gnomon.plan import show as shows
else:
    pipeline, shows = Later("gnomon.plan.pipeline"), Later("gnomon.plan.show")

TIMES = 2  # the rung from which on runs are timed


class Stage(NamedTuple):
    """How a stage is printed, and from which rung of the ladder on."""

    text: Callable[[Nests], str]
    rung: int


def _machine_code(show: Callable[..., str], nests: Nests) -> str:
    code = source(nests)
    return show(code.text, opt=code.opt)


def _show(how: str, nests: Nests) -> str:
    text: str = getattr(shows, how)(nests)  # loaded when it is needed
    return text


STAGES: dict[str, Stage] = {
    "plan": Stage(functools.partial(_show, "outline"), 3),
    "loop": Stage(functools.partial(_show, "loops"), 4),
    "llvm": Stage(functools.partial(_machine_code, jit.ir), 5),
    "asm": Stage(functools.partial(_machine_code, jit.assembly), 7),
}


def timed() -> bool:
    """Whether runs are shown."""
    asked: int = config.get("debug")
    return asked >= TIMES


def tell(stores: Sequence[Store], structure: Structure, origin: str, seconds: float) -> None:
    """Show a kernel that has just been made, as far as the ladder is climbed."""
    if not timed():
        return
    what = "; ".join(f"{s.dest!r} {s.saver} {s.value!r}" for s in stores)
    say(f"kernel {origin} in {seconds * 1e3:.1f} ms: {what}")
    wanted = [(name, s) for name, s in STAGES.items() if config.get("debug") >= s.rung]
    if wanted:
        nests = pipeline.plan(stores, structure)
        for name, stage in wanted:
            say(f"{name}:\n{stage.text(nests)}")


def run(steps: Iterable[Step]) -> None:
    """Do the work of steps now, one after the other; each is shown where that is asked for.

    Raises:
        GnomonError: a step failed.
    """
    shows_times = timed()
    for step in steps:
        began = time.perf_counter()
        step.run()
        if shows_times:
            seconds = max(time.perf_counter() - began, 1e-9)
            rate = f", {step.bytes / seconds / 1e9:.3g} GB/s" if step.bytes else ""
            say(f"{step.name}: {seconds * 1e6:.1f} us{rate}")


def say(text: str) -> None:
    """Print a line of the ladder."""
    print(text, file=sys.stderr)

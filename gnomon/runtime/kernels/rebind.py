"""Steps bound to other memory: a prepared statement's kernels run on operands of the same layout.

Preparing a statement reads its expression several times. In networks whose layers repeat most
statements differ by their operands' addresses alone, and so do the argument blocks of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gnomon.expr.node import Buffer
from gnomon.plan.cut import reach
from gnomon.plan.statement import identity
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.kernel import Kernel

Make = Callable[[], list[Step]]
Values = Mapping[Any, int]


class Where(NamedTuple):
    """So many bytes behind the address of an operand."""

    operand: int
    offset: int


Locate = Callable[[int], Where | None]  # where an address lies among operands


class OfKernel:
    """A step of a kernel."""

    def __init__(self, step: Step, where: Sequence[Where]) -> None:
        self.where, self._name, self._bytes = where, step.name, step.bytes
        self.kernel, block, _, _, _, self.dims = step.keep
        #: what its block holds for the arguments, by slot
        self.arguments: dict[Any, int] = self.kernel.arguments(block)
        self._words = list(self.arguments.values())
        self._at = {slot: k for k, slot in enumerate(self.arguments)}
        self._leaves = [(slot[1], k) for slot, k in self._at.items() if slot[0] == "leaf"]

    def values(self) -> dict[Any, int]:
        """What its slots hold, and where leaves are within operands."""
        return self.arguments | {("offset", k): w.offset for k, w in enumerate(self.where)}

    def is_like(self, other: Any) -> bool:
        """Whether both are one kernel, on the same operands."""
        if not isinstance(other, OfKernel) or self.kernel is not other.kernel:
            return False
        return [w.operand for w in self.where] == [w.operand for w in other.where]

    def ready(self, values: Values) -> Values:
        """What the step of other values is made of: these."""
        return values

    def made(
        self, operands: Sequence[int], values: Values, times: float, owned: Sequence[Buffer] = ()
    ) -> list[Step]:
        """The same with these values, so many times as large, on operands at other addresses, one
        for each leaf. These belong to the buffers `owned`, or are kept by others.
        """
        words, offsets = self._words.copy(), [w.offset for w in self.where]
        for name, n in values.items():
            if name[0] == "offset":
                offsets[name[1]] = n
            else:
                words[self._at[name]] = n
        for k, at in self._leaves if operands else ():
            words[at] = operands[k] + offsets[k]
        return [self.kernel.step(words, owned, self._name, round(self._bytes * times))]


def kernel_of(step: Step, locate: Locate) -> OfKernel | None:
    """The kernel that a step runs; None where there is none, or it has other operands."""
    keep = step.keep
    if type(step) is not Step or Kernel.of(step) is None:
        return None
    held = keep[0].arguments(keep[1])
    own = [held.get(("leaf", k), b.address) for k, b in enumerate(keep[3])]
    leaves = every_of(own, locate)
    return None if leaves is None else OfKernel(step, leaves)


def every_of(addresses: Sequence[int], locate: Locate) -> list[Where] | None:
    """Where all addresses lie; None where one lies elsewhere."""
    found = [where for at in addresses if (where := locate(at)) is not None]
    return found if len(found) == len(addresses) else None


class Made(NamedTuple):
    """A step, and where the leaves of its kernel, or the operands of its library, are."""

    step: Step
    leaves: tuple[Where, ...]


class Rebinder:
    """What was prepared so far, by what tells it from other work beside addresses.

    >>> import numpy as np
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> rebinder, arrays = Rebinder(), [np.full(3, k, np.float32) for k in range(4)]
    >>> a, b, c, d = (Buffer((3,), address=x.ctypes.data, owner=x) for x in arrays)
    >>> for x, y in ((a, b), (c, d)):
    ...     double = [Store(y, "saveto", x + x)]
    ...     for step in rebinder.steps("double", [x, y], lambda: prepare(double), "double"):
    ...         step.run()
    >>> arrays[3]
    array([4., 4., 4.], dtype=float32)
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[Made, ...] | None] = {}

    def steps(
        self, what: Hashable, operands: Sequence[Buffer], make: Make, name: str
    ) -> list[Step]:
        """Steps that do `what` on `operands`: those of `make`, or some like them.

        `what` stands for everything about the work but the operands' addresses.
        """
        same = pattern(operands)
        if same is None:
            return make()
        key = what, same
        made = self._made.get(key)
        if made is not None:
            return [_rebound(m, operands, name) for m in made]
        steps = make()
        if key not in self._made:
            self._made[key] = _made(steps, operands)
        return steps


def pattern(operands: Sequence[Buffer]) -> tuple[int, ...] | None:
    """For each operand the first that is the same memory; None where two overlap otherwise."""
    first: dict[Hashable, int] = {}
    same = tuple([first.setdefault(identity(b), k) for k, b in enumerate(operands)])
    spans = sorted(reach(operands[k]) for k in first.values())
    for (low, high), (begin, _) in pairwise(spans):
        if begin < high or low == high:
            return None
    return same if spans and spans[-1][0] < spans[-1][1] else None


def locator(operands: Sequence[Buffer]) -> Locate:
    """Which of the operands an address is in: the first; None where in none."""
    spans = [reach(b) for b in operands]

    def where(address: int) -> Where | None:
        at = (k for k, (low, high) in enumerate(spans) if low <= address < high)
        operand = next(at, None)
        return None if operand is None else Where(operand, address - operands[operand].address)

    return where


def _made(steps: Sequence[Step], operands: Sequence[Buffer]) -> tuple[Made, ...] | None:
    """`steps` with the places of their leaves; None where one cannot do with `operands` alone."""
    where, found = locator(operands), []
    for step in steps:
        places = [b.address for b in step.keep[3]] if Kernel.of(step) else step.places()
        leaves = every_of(places, where)
        if not leaves:
            return None
        found.append(Made(step, tuple(leaves)))
    return tuple(found)


def _rebound(made: Made, operands: Sequence[Buffer], name: str) -> Step:
    addresses = [operands[w.operand].address + w.offset for w in made.leaves]
    buffers = [operands[w.operand] for w in made.leaves]
    kernel = Kernel.of(made.step)
    if kernel is None:
        return made.step.moved(addresses, buffers)
    return kernel.rebound(made.step, addresses, buffers, name)

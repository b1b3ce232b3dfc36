"""Families: templates of one kernel that differ in sizes and strides alone.

A kernel takes sizes and strides as arguments, so the template of a kernel's work for some sizes
serves for all others whose statements have the same structure: the words of its block that hold
them are written anew, with how the work is cut into tasks. Nothing is planned for that, and no
expression is read. That two statements do have the same structure is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.kernel import Kernel
from gnomon.runtime.kernels.template import Place, Template


class Family:
    """What the templates of one kernel share, read off the `first` of them.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> def make(addresses):
    ...     source, dest = (Buffer((3,), address=a) for a in addresses)
    ...     return prepare([Store(dest, "saveto", source * 2.0)])
    >>> family = family_of(Template(make, 2))
    >>> a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    >>> family.member({("dim", 0): 5}, moved=40).run([a.ctypes.data, b.ctypes.data])
    >>> b
    array([0., 2., 4., 6., 8.], dtype=float32)
    """

    __slots__ = ("_count", "_kernel", "_numbers", "_step", "_words", "args", "dims", "places")

    def __init__(self, first: Template, step: Step) -> None:
        self._step = step
        self._kernel, block, _, _, _, dims = step.keep
        self._words = tuple(block.words)
        self._count, self._numbers = first.count, first.numbers
        self.args = self._kernel.signature.args  #: the slots of the kernel's arguments
        self.dims: Sequence[int] = dims  #: the first one's sizes
        self.places: Sequence[Place] = first.places  #: where addresses and numbers go

    def values(self) -> dict[Hashable, int]:
        """What the first one's slots hold."""
        return dict(zip(self.args, self._words[len(self._words) - len(self.args) :], strict=True))

    def operand(self, leaf: Hashable) -> int:
        """The operand that a leaf is."""
        word = len(self._words) - len(self.args) + self.args.index(leaf)
        return next(p.operand for p in self.places if p.word == word)

    def member(
        self, values: Mapping[Hashable, int], moved: int, offsets: Sequence[int] = ()
    ) -> Template:
        """The template where sizes, strides and numbers, by slot, have other values.

        It moves `moved` bytes. Each operand begins `offsets` bytes behind its address, where these
        are given.
        """

        def make(addresses: Sequence[int], which: int = 0) -> list[Step]:
            return [self._kernel.resized(self._step, self._words, values, moved)]

        places = self.places
        if offsets:
            places = [
                p._replace(offset=offsets[p.operand]) if p.operand < len(offsets) else p
                for p in places
            ]
        return Template(make, self._count, self._numbers, places)


def family_of(template: Template) -> Family | None:
    """The family of a template that has not run yet; None where its work is more than a kernel."""
    copy = template.reserve()
    template.give_back(copy)
    step = copy.step
    keep = step.keep
    if type(step) is Step and type(keep) is tuple and isinstance(keep[0], Kernel):
        return Family(template, step)
    return None

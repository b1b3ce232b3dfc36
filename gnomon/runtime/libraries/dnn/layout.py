"""How an operand of oneDNN lies in memory: plain, or as oneDNN chose.

An operand is described by a `Layout`. `PLAIN` is row-major without gaps: the step copies to and
from its own layouts inside. `CHOSEN` leaves the layout to oneDNN and saves the copy: the step says
in its `layouts` what it chose, and that can be given to the neighbour that shares the operand.
Batches must be the outermost axis in memory; a chosen layout that is not so is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gnomon.base import ParamError, ShapeError, complaint
from gnomon.ground.record import record
from gnomon.runtime.libraries.dnn.library import Description, Primitive, Unsupported
from gnomon.runtime.libraries.dnn.phases import Place
from gnomon.shape import channels_last, prod, row_major


@record(slots=False)
class Layout:
    """The layout of one operand; `description` is None for `PLAIN` and `CHOSEN`."""

    kind: str
    description: Description | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that an operand in this chosen layout takes."""
        assert self.description is not None, "a layout without a description has no size"
        return self.description.nbytes


PLAIN = Layout("plain")
CHOSEN = Layout("chosen")
NOTHING: Mapping[str, Layout] = {}


def plain(shape: Sequence[int]) -> Description:
    """Row-major without gaps."""
    return Description.plain(tuple(shape), row_major(shape))


def last(shape: Sequence[int]) -> Layout:
    """The layout of channels last, without gaps."""
    return Layout("last", Description.plain(tuple(shape), channels_last(shape)))


class Side:
    """An operand of a step: its number, shape and layout, and its parts along the batch."""

    def __init__(self, number: int, shape: Sequence[int], layout: Layout) -> None:
        self.number, self.shape, self.layout = number, tuple(shape), layout

    @property
    def fixed(self) -> Description | None:
        """What a primitive has to take: None leaves it to the primitive, as a plain operand does,
        which is copied."""
        return self.layout.description

    def fixed_rows(self, count: int) -> Description | None:
        """`fixed` for `count` of the outermost axis."""
        if self.fixed is None:
            return None
        try:
            return self.fixed.part((count, *self.shape[1:]), (0,) * len(self.shape))
        except Unsupported:
            expected = "a layout with the batch outermost"
            raise ShapeError(complaint("oneDNN", "layouts", expected, "another")) from None

    def rows(self, start: int, count: int) -> Place:
        """The part of the operand from `start` along the outermost axis."""
        description = self.fixed_rows(count) or plain((count, *self.shape[1:]))
        return Place(description, self.number, start * self.row_bytes)

    @property
    def row_bytes(self) -> int:
        """Bytes from one of the outermost axis to the next."""
        nbytes = self.fixed.nbytes if self.fixed else 4 * prod(self.shape)
        return nbytes // self.shape[0]

    def whole(self, shape: Sequence[int] | None = None) -> Place:
        """All of the operand, seen in another shape where one is given."""
        return Place(self.fixed or plain(shape or self.shape), self.number, 0)


def sides(layouts: Mapping[str, Layout], **shapes: Sequence[int]) -> tuple[Side, ...]:
    """The operands of a step by name, numbered from 1, in their layouts.

    Raises:
        ParamError: `layouts` names another operand.
    """
    for name in layouts:
        if name not in shapes:
            raise ParamError(complaint("oneDNN", "layouts", f"only {', '.join(shapes)}", name))
    numbered = enumerate(shapes.items(), 1)
    return tuple(Side(i, shape, layouts.get(name, PLAIN)) for i, (name, shape) in numbered)


def choose(ours: Sequence[Side], theirs: Sequence[str], make: Callable[..., Primitive]) -> None:
    """Settles the layouts that are left to oneDNN: what its primitive for the whole batch wants."""
    if any(side.layout == CHOSEN for side in ours):
        found = make(*(side.fixed for side in ours))
        for side, their in zip(ours, theirs, strict=True):
            if side.layout == CHOSEN:
                side.layout = Layout("chosen", found.operands[their])

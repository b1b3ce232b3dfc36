"""Operators that see the same elements under another shape."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ShapeError, complaint
from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import (
    UNKNOWN,
    Shape,
    Shapes,
    Types,
    Undetermined,
    known,
    normal_axes,
    show_shape,
    times,
)
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


class SameElements(Op):
    """What these operators share: the output is the input with the shape the rule gives."""

    reshapes = True

    def forward(self, data: Expr) -> Expr:
        return ext.reshape(data, known_output(self, data))


def known_output(op: Op, *inputs: Expr) -> Shape:
    """The shape of the output of `op` on `inputs`."""
    shape = op.infer_shape([x.shape for x in inputs], zero_unknown=False)[1][0]
    assert shape is not None, "inference of complete inputs is complete"
    return shape


@op("Reshape", aliases=("reshape",))
class Reshape(SameElements):
    """The same elements in `shape`, where special numbers stand for sizes of `data`.

    0 copies a size, -1 is what is left (once), -2 copies all sizes that are left, -3 joins two
    sizes, and -4 splits one into the two numbers after it (one of which may be -1).
    """

    shape: Dims = param((), doc="The new shape, special numbers included.")
    reverse: bool = param(False, doc="Read sizes and special numbers from the right.")
    target_shape: Dims = param((), doc="Older form of `shape`: 0 is what is left.")
    keep_highest: bool = param(False, doc="Older form: keep the first size.")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        new = self._older(data) if self.target_shape and not self.shape else self._newer(data)
        s["output"] = fill(self.name, data, new)
        self._infer_back(s, data)

    def _newer(self, data: Shape) -> list[int]:
        codes = list(self.shape)
        if not self.reverse:
            return decode(self.name, data, codes)
        return decode(self.name, data[::-1], _mirror(codes))[::-1]

    def _older(self, data: Shape) -> list[int]:
        new = [d or UNKNOWN for d in self.target_shape]
        return [data[0], *new[1:]] if self.keep_highest else new

    def _infer_back(self, s: Shapes, data: Shape) -> None:
        """One unknown size of `data` follows from an output that is known."""
        output = s["output"]
        if known(output) and data.count(UNKNOWN) == 1:
            assert output is not None
            s["data"] = tuple(fill(self.name, output, list(data)))


def _mirror(codes: list[int]) -> list[int]:
    """`codes` for reading from the right: each -4 stays before the pair it splits into."""
    mirrored: list[int] = []
    k = 0
    while k < len(codes):
        width = 3 if codes[k] == -4 else 1
        part = codes[k : k + width]
        mirrored = [part[0], *part[:0:-1], *mirrored]
        k += width
    return mirrored


def decode(where: str, data: Shape, codes: list[int]) -> list[int]:
    """The sizes that `codes` stand for, -1 for the one that is left and those not known."""
    new: list[int] = []
    source, left = iter(data), iter(codes)
    free = 0
    for code in left:
        if code > 0:
            new.append(code)
            next(source, None)
        elif code == 0:
            new.append(_next(where, source, codes))
        elif code == -1:
            free += 1
            new.append(UNKNOWN)
            next(source, None)
        elif code == -2:
            new.extend(source)
        elif code == -3:
            new.append(times((_next(where, source, codes), _next(where, source, codes))))
        elif code == -4:
            new.extend(_split(where, _next(where, source, codes), next(left, 0), next(left, 0)))
        else:
            raise ShapeError(complaint(where, "shape", "numbers from -4 on", tuple(codes)))
    if free > 1:
        raise ShapeError(complaint(where, "shape", "at most one -1", tuple(codes)))
    return new


def _next(where: str, source: Iterator[int], codes: list[int]) -> int:
    size = next(source, None)
    if size is None:
        raise ShapeError(complaint(where, "shape", "codes for as many axes as data has", codes))
    return size


def _split(where: str, size: int, a: int, b: int) -> tuple[int, int]:
    """The two sizes that `size` splits into, one of which may be given as -1."""
    if size != UNKNOWN and a == -1 and b > 0:
        a = size // b
    if size != UNKNOWN and b == -1 and a > 0:
        b = size // a
    if size != UNKNOWN and a * b != size:
        raise ShapeError(complaint(where, "shape", f"a split of size {size}", (a, b)))
    return a, b


def fill(where: str, data: Shape, new: list[int]) -> Shape:
    """`new` with its one unknown size filled in, so that it has as many elements as `data`."""
    if UNKNOWN in data:
        return tuple(new)
    rest = times([d for d in new if d != UNKNOWN])
    if new.count(UNKNOWN) == 1 and rest and times(data) % rest == 0:
        return tuple(times(data) // rest if d == UNKNOWN else d for d in new)
    if UNKNOWN not in new and rest == times(data):
        return tuple(new)
    if UNKNOWN in new and rest == 0 == times(data):
        return tuple(0 if d == UNKNOWN else d for d in new)
    got = f"{show_shape(data)}, {times(data)} elements"
    raise ShapeError(complaint(where, "data", f"elements for shape {show_shape(tuple(new))}", got))


@op("Flatten", aliases=("flatten",))
class Flatten(SameElements):
    """All axes but the first joined into one."""

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = (data[0], times(data[1:]))
        s["data"] = (s.need("output")[0], *data[1:])


@op("expand_dims")
class ExpandDims(SameElements):
    """A new axis of size 1 before `axis`."""

    axis: int = param(doc="Where the new axis stands; from the end where negative.")

    def shapes(self, s: Shapes) -> None:
        if (data := s["data"]) is not None:
            axis = s.axis("data", self.axis, extra=1)
            s["output"] = (*data[:axis], 1, *data[axis:])
        output = s.need("output")
        axis = s.axis("output", self.axis)
        s["data"] = (*output[:axis], *output[axis + 1 :])


@op("squeeze")
class Squeeze(SameElements):
    """Without the axes of size 1: all of them, or those in `axis`."""

    axis: Dims | None = param(None, doc="Which axes go; all of size 1 where None.")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if self.axis is None:
            if UNKNOWN in data:
                raise Undetermined("data")
            s["output"] = tuple(d for d in data if d != 1) or (1,)
            return
        axes = normal_axes(self.name, self.axis, len(data))
        if any(data[a] not in (1, UNKNOWN) for a in axes):
            raise s.refuse("data", f"size 1 along axes {axes}", show_shape(data))
        s["output"] = tuple(d for a, d in enumerate(data) if a not in axes) or (1,)


@op("reshape_like", inputs=("lhs", "rhs"))
class ReshapeLike(Op):
    """`lhs` in the shape of `rhs`; with the four bounds only a run of axes is exchanged."""

    lhs_begin: int | None = param(None, doc="First axis of `lhs` that is exchanged.")
    lhs_end: int | None = param(None, doc="Axis of `lhs` after the last that is exchanged.")
    rhs_begin: int | None = param(None, doc="First axis of `rhs` that is taken.")
    rhs_end: int | None = param(None, doc="Axis of `rhs` after the last that is taken.")

    def shapes(self, s: Shapes) -> None:
        rhs = s.need("rhs")
        if self.lhs_begin is None and self.lhs_end is None:
            new, lhs = rhs[self.rhs_begin : self.rhs_end], s["lhs"]
            if known(lhs) and known(new) and times(lhs or ()) != times(new):
                raise s.refuse("lhs", f"as many elements as {show_shape(new)} has", lhs)
            s["output"] = new
            return
        lhs = s.need("lhs")
        begin, end, _ = slice(self.lhs_begin, self.lhs_end).indices(len(lhs))
        new = (*lhs[:begin], *rhs[self.rhs_begin : self.rhs_end], *lhs[end:])
        s["output"] = fill(self.name, lhs, list(new))

    def types(self, t: Types) -> None:
        t["output"] = t["lhs"]
        t["lhs"] = t["output"]

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return ext.reshape(lhs, known_output(self, lhs, rhs))

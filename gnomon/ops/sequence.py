"""Operators on batches of sequences of different lengths, time along the first or second axis."""

from __future__ import annotations

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import Free, Shape, Shapes, one_dtype
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.unary import like

INPUTS = ("data", "sequence_length")


class Sequences(Op):
    """What the operators share: an axis of time, one of the batch, and a length for each of it."""

    use_sequence_length: bool = param(False, doc="There are lengths; else all are whole.")
    axis: int = param(0, doc="The axis of time, 0 or 1; the batch has the other.")
    types = one_dtype("data", "output")

    def check(self) -> None:
        if self.axis not in (0, 1):
            raise self.wrong("axis", "0 or 1")

    def arguments(self) -> tuple[str, ...]:
        return INPUTS if self.use_sequence_length else INPUTS[:1]

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if len(data) < 2:
            raise s.refuse("data", "time and batch", f"shape {data}")
        if self.use_sequence_length:
            s["sequence_length"] = (data[1 - self.axis],)
        s["output"] = data[1 - self.axis : 2 - self.axis] + data[2:] if self.is_last else data

    is_last = False

    def turned(self, data: Expr) -> Expr:
        """Time first; the same again turns it back."""
        return ext.swapaxis(data, 0, 1) if self.axis else data

    @staticmethod
    def lengths(lengths: Expr, shape: tuple[int, ...]) -> Expr:
        """The length of each of the batch at every time."""
        return ext.broadcast_axis(cast(lengths, int64), shape[:2], 1)

    @staticmethod
    def at(data: Expr, time: Expr) -> Expr:
        """`data` at other times, with time first: one for each of the batch."""
        steps, batch = data.shape[:2]
        rows = ext.reshape(data, (steps * batch, *data.shape[2:]))
        inside = fn.clip(time, 0, steps - 1)
        return ext.take(rows, inside * batch + ext.iota(time.shape, time.ndim - 1))


@op("SequenceMask", inputs=INPUTS)
class SequenceMask(Sequences):
    """`data` with another value after the end of each sequence."""

    leading = ("use_sequence_length", "value")
    value: float = param(0.0, doc="What stands after the end.")

    def free(self, data: Shape, sequence_length: Shape = ()) -> Free:
        return Free(data)

    def forward(self, data: Expr, sequence_length: Expr | None = None) -> Expr:
        if sequence_length is None:
            return fn.identity(data)
        turned = self.turned(data)
        inside = fn.lt(ext.iota(turned.shape[:2]), self.lengths(sequence_length, turned.shape))
        mask = ext.reshape(cast(inside, data.dtype), (*inside.shape, *[1] * (data.ndim - 2)))
        wide = ext.broadcast_to(mask, turned.shape)
        return self.turned(fn.where(wide, turned, like(self.value, data)))


@op("SequenceLast", inputs=INPUTS)
class SequenceLast(Sequences):
    """The last element of each sequence."""

    is_last = True

    def forward(self, data: Expr, sequence_length: Expr | None = None) -> Expr:
        turned = self.turned(data)
        if sequence_length is None:
            steps = turned.shape[0]
            begin, end = (steps - 1, *[0] * (data.ndim - 1)), turned.shape
            return ext.reshape(ext.slice_(turned, begin, end), turned.shape[1:])
        return self.at(turned, cast(sequence_length, int64) - 1)


@op("SequenceReverse", inputs=INPUTS)
class SequenceReverse(Sequences):
    """Each sequence from its end to its beginning; what stands after the end stays."""

    def forward(self, data: Expr, sequence_length: Expr | None = None) -> Expr:
        turned = self.turned(data)
        if sequence_length is None:
            return self.turned(ext.flip(turned, 0))
        time = ext.iota(turned.shape[:2])
        length = self.lengths(sequence_length, turned.shape)
        return self.turned(self.at(turned, fn.where(fn.lt(time, length), length - 1 - time, time)))

"""Operators that join arrays along an axis, or part one."""

from __future__ import annotations

from itertools import pairwise

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, normal_axis
from gnomon.ops.movement import along
from gnomon.ops.op import Op, numbered, op
from gnomon.ops.param import MOST, Dims, count, param


@op("Concat", variadic="num_args", aliases=("concat", "_sparse_concat"))
class Concat(Op):
    """The inputs one after another along `dim`."""

    num_args: int = count(doc="How many inputs there are.")
    dim: int = param(1, doc="The axis they are joined along.")

    def shapes(self, s: Shapes) -> None:
        parts = self.arguments()
        first = next((n for n in (*parts, "output") if s[n] is not None), parts[0])
        axis, rank = s.axis(first, self.dim), len(s.need(first))
        s.alike((*parts, "output"), rank, axis)
        sizes = [(s[n] or (UNKNOWN,) * rank)[axis] for n in parts]
        if UNKNOWN not in sizes:
            s["output"] = tuple(sum(sizes) if a == axis else UNKNOWN for a in range(rank))
        elif sizes.count(UNKNOWN) == 1 and s.need("output")[axis] != UNKNOWN:
            rest = s.need("output")[axis] - sum(n for n in sizes if n != UNKNOWN)
            missing = parts[sizes.index(UNKNOWN)]
            s[missing] = tuple(rest if a == axis else UNKNOWN for a in range(rank))

    def free(self, *parts: Shape) -> Free:
        axis = normal_axis(self.name, self.dim, len(parts[0]))
        others = (*parts[0][:axis], *parts[0][axis + 1 :])
        sizes = tuple([part[axis] for part in parts])
        return Free(others, (*sizes, sum(sizes)))

    def forward(self, *args: Expr) -> Expr:
        if len(args) == 1:
            return fn.identity(args[0])
        return ext.concat(args, normal_axis(self.name, self.dim, args[0].ndim))


@op("stack", variadic="num_args")
class Stack(Op):
    """The inputs side by side along a new axis."""

    num_args: int = count(doc="How many inputs there are.")
    axis: int = param(0, doc="Where the new axis stands.")

    def shapes(self, s: Shapes) -> None:
        s.same(*self.arguments())
        part = s.need("arg0")
        axis = s.axis("arg0", self.axis, extra=1)
        s["output"] = (*part[:axis], self.num_args, *part[axis:])

    def free(self, *parts: Shape) -> Free:
        return Free(parts[0])

    def forward(self, *args: Expr) -> Expr:
        shape = args[0].shape
        axis = normal_axis(self.name, self.axis, len(shape) + 1)
        thin = [ext.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in args]
        return ext.concat(thin, axis) if len(thin) > 1 else thin[0]


@op("SliceChannel", aliases=("split",))
class SliceChannel(Op):
    """Equal parts along an axis."""

    num_outputs: int = count(doc="How many parts.")
    axis: int = param(1, doc="The axis that is parted.")
    squeeze_axis: bool = param(False, doc="Drop the axis; each part has size 1 there.")

    def outputs(self) -> tuple[str, ...]:
        return tuple(f"output{k}" for k in range(self.num_outputs))

    def shapes(self, s: Shapes) -> None:
        self.inward(s)
        data = s.need("data")
        axis = s.axis("data", self.axis)
        size = data[axis]
        if size != UNKNOWN and size % self.num_outputs:
            expected = f"a multiple of {self.num_outputs} along axis {axis}"
            raise s.refuse("data", expected, f"shape {data}")
        part = size // self.num_outputs
        if self.squeeze_axis and part not in (1, UNKNOWN):
            raise s.refuse("data", f"size {self.num_outputs} along axis {axis}", f"shape {data}")
        kept = () if self.squeeze_axis else (part,)
        for name in self.outputs():
            s[name] = (*data[:axis], *kept, *data[axis + 1 :])

    def inward(self, s: Shapes) -> None:
        """What the parts say of the whole."""
        for part in filter(None, map(s.__getitem__, self.outputs())):
            axis = normal_axis(self.name, self.axis, len(part) + self.squeeze_axis)
            size = 1 if self.squeeze_axis else part[axis]
            whole = UNKNOWN if size == UNKNOWN else size * self.num_outputs
            s["data"] = (*part[:axis], whole, *part[axis + (not self.squeeze_axis) :])

    def free(self, data: Shape) -> Free:
        axis = normal_axis(self.name, self.axis, len(data))
        size = data[axis] // self.num_outputs
        ends = [k * size for k in range(1, self.num_outputs + 1)]
        return Free((*data[:axis], *data[axis + 1 :]), tuple(ends))

    def forward(self, data: Expr) -> tuple[Expr, ...]:
        axis = normal_axis(self.name, self.axis, data.ndim)
        size = data.shape[axis] // self.num_outputs
        starts = [k * size for k in range(self.num_outputs)]
        return parts(data, axis, [*starts, data.shape[axis]], self.squeeze_axis)


def parts(data: Expr, axis: int, bounds: list[int], squeeze: bool) -> tuple[Expr, ...]:
    """`data` cut along `axis` at `bounds`, the ends included; without the axis if `squeeze`."""
    pieces = [along(data, axis, a, b) for a, b in pairwise(bounds)]
    if squeeze:
        pieces = [ext.reshape(p, p.shape[:axis] + p.shape[axis + 1 :]) for p in pieces]
    return tuple(pieces)


@op("_split_v2")
class SplitV2(Op):
    """Parts along an axis: `sections` of them, or those that start at `indices`.

    Of sections that cannot be equal the first ones have one element more.
    """

    indices: Dims = param(doc="Where the parts start.")
    axis: int = param(1, doc="The axis that is parted.")
    squeeze_axis: bool = param(False, doc="Drop the axis; each part has size 1 there.")
    sections: int = param(0, low=0, high=MOST, doc="How many parts; 0: by `indices`.")

    def check(self) -> None:
        if not self.sections and not self.indices:
            raise self.wrong("indices", "at least one")

    def outputs(self) -> tuple[str, ...]:
        return numbered(self.sections or len(self.indices))

    def bounds(self, size: int) -> list[int]:
        """Where the parts of `size` elements start, and the end."""
        if not self.sections:
            return [*self.indices, size]
        least, more = divmod(size, self.sections)
        return [k * least + min(k, more) for k in range(self.sections + 1)]

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        axis = s.axis("data", self.axis)
        if data[axis] == UNKNOWN:
            return
        bounds = self.bounds(data[axis])
        for name, begin, end in zip(self.outputs(), bounds, bounds[1:], strict=False):
            kept = () if self.squeeze_axis else (end - begin,)
            s[name] = (*data[:axis], *kept, *data[axis + 1 :])

    def forward(self, data: Expr) -> tuple[Expr, ...]:
        axis = normal_axis(self.name, self.axis, data.ndim)
        return parts(data, axis, self.bounds(data.shape[axis]), self.squeeze_axis)

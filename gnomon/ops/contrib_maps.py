"""Operators of nd.contrib that work element by element, casts of mixed precision, attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.dtype import DType, float64
from gnomon.expr import call, ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, Types
from gnomon.ops.op import Op, numbered, op
from gnomon.ops.param import count, param
from gnomon.ops.unary import DTYPES


def straight(name: str, function: Callable[[Any], Expr], doc: str) -> None:
    """Declare a step function through which gradients pass as if it were not there."""

    class Straight(Op):
        def forward(self, data: Expr) -> Expr:
            return function(data)

        def gradient(self, grad: Expr) -> Expr:
            return grad

    Straight.__name__ = Straight.__qualname__ = name
    Straight.__doc__ = doc
    op(name, aliases=(f"_sparse_{name}",))(Straight)


straight("_contrib_round_ste", fn.round, "The nearest integer; the gradient passes unchanged.")
straight("_contrib_sign_ste", fn.sign, "-1, 0 or 1 by the sign; the gradient passes unchanged.")


@op("_contrib_gradientmultiplier")
class GradientMultiplier(Op):
    """The value itself; its gradient is multiplied by `scalar`."""

    scalar: float = param(1.0, doc="What the gradient is multiplied by.")
    is_int: bool = param(True, doc="No meaning here.")

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)

    def gradient(self, grad: Expr) -> Expr:
        return grad * self.scalar


def reals(data: Expr) -> Expr:
    """Integers as float64; floats as they are."""
    return cast(data, float64) if data.dtype.kind in "iu" else data


@op("_contrib_quadratic")
class Quadratic(Op):
    """`a * x**2 + b * x + c`."""

    a: float = param(0.0, doc="Factor of the square.")
    b: float = param(0.0, doc="Factor of the value.")
    c: float = param(0.0, doc="What is added.")

    def forward(self, data: Expr) -> Expr:
        x = reals(data)
        return cast((x * self.a + self.b) * x + self.c, data.dtype)


@op("_contrib_div_sqrt_dim")
class DivSqrtDim(Op):
    """The value divided by the root of the size of the last axis."""

    def forward(self, data: Expr) -> Expr:
        root = math.sqrt(max(data.shape[-1], 1))
        return data / (int(root) if data.dtype.kind in "iu" else root)


@op("amp_cast")
class AmpCast(Op):
    """Floating-point numbers in another dtype, anything else as it is; so the gradient, back."""

    dtype: DType = param(choices=DTYPES, doc="Dtype of the output.")
    cases = (case((2, 3), dtype="float32", differentiable=()), case([1, 2], dtype="float32"))

    def types(self, t: Types) -> None:
        data = t["data"]
        if data is not None and data.kind != "f":
            t.same("data", "output")
        elif data is not None:
            t["output"] = self.dtype

    def forward(self, data: Expr) -> Expr:
        return cast(data, self.dtype) if data.dtype.kind == "f" else fn.identity(data)

    def gradient(self, grad: Expr, data: Expr) -> Expr:
        return cast(grad, data.dtype)

    def reference(self, data: Array) -> Array:
        return data.astype(np.float32) if data.dtype.kind == "f" else data


@op("amp_multicast", variadic="num_outputs")
class AmpMulticast(Op):
    """All inputs in the widest of their dtypes, or with `cast_narrow` in the narrowest."""

    num_outputs: int = count(doc="How many inputs there are.")
    cast_narrow: bool = param(False, doc="Take the narrowest dtype.")
    stem = "data_"
    cases = (
        case((2,), (3,), num_outputs=2),
        case((2, 3), (0,), (1,), num_outputs=3, cast_narrow=True),
    )

    def outputs(self) -> tuple[str, ...]:
        return numbered(self.num_outputs)

    def shapes(self, s: Shapes) -> None:
        for data, output in zip(self.arguments(), self.outputs(), strict=True):
            s.same(data, output)

    def types(self, t: Types) -> None:
        found = [t.need(name) for name in self.arguments()]
        if any(d.kind != "f" for d in found):
            return t.same()
        chosen = (min if self.cast_narrow else max)(found, key=_width)
        for name in self.outputs():
            t[name] = chosen
        return None

    def forward(self, *args: Expr) -> tuple[Expr, ...]:
        chosen = (min if self.cast_narrow else max)([x.dtype for x in args], key=_width)
        return tuple(cast(x, chosen) for x in args)

    def gradient(self, grads: tuple[Expr, ...], inputs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(cast(g, x.dtype) for g, x in zip(grads, inputs, strict=True))

    def reference(self, *args: Array) -> tuple[Array, ...]:
        return args


def _width(dtype: DType) -> tuple[int, bool]:
    """Dtypes by their size; of equal ones bfloat16 is the narrower."""
    return dtype.size, dtype is not dtypes.bfloat16


# -- attention ------------------------------------------------------------------------------------


class Attention(Op):
    """What products for attention share: inputs (length, batch, heads * parts * size)."""

    heads: int = param(low=1, doc="How many heads there are.")

    def sizes(self, s: Shapes, name: str, parts: int) -> tuple[int, int, int]:
        """Length, batch, and size of one head's part; ShapeError where they do not divide."""
        length, batch, width = s.rank(name, 3)
        if width % (self.heads * parts) and width >= 0:
            expected = f"a last axis that {self.heads} heads of {parts} parts divide"
            raise s.refuse(name, expected, f"shape {s[name]}")
        return length, batch, width // (self.heads * parts)

    def parts(self, data: Expr, count: int) -> list[Expr]:
        """The parts side by side in `data`, each (batch * heads, length, size)."""
        length, batch, width = data.shape
        size = width // (self.heads * count)
        apart = ext.reshape(data, (length, batch, self.heads, count, size))
        turned = ext.transpose(apart, (3, 1, 2, 0, 4))
        whole = ext.reshape(turned, (count, batch * self.heads, length, size))
        shape = (batch * self.heads, length, size)
        return [ext.reshape(ext.slice_(whole, (k,), (k + 1,)), shape) for k in range(count)]

    def joined(self, data: Expr) -> Expr:
        """(batch * heads, length, size) as (length, batch, heads * size)."""
        rows, length, size = data.shape
        batch = rows // self.heads
        turned = ext.transpose(ext.reshape(data, (batch, self.heads, length, size)), (2, 0, 1, 3))
        return ext.reshape(turned, (length, batch, self.heads * size))

    def scores(self, queries: Expr, keys: Expr) -> Expr:
        """Products of queries with keys, the queries divided by the root of their size."""
        scale = 1 / math.sqrt(max(queries.shape[-1], 1))
        return call.batch_dot(queries * scale, keys, transpose_b=True)


@op("_contrib_interleaved_matmul_selfatt_qk", inputs=("queries_keys_values",))
class SelfAttentionScores(Attention):
    """Scores of self-attention, (batch * heads, length, length)."""

    def shapes(self, s: Shapes) -> None:
        length, batch, _ = self.sizes(s, "queries_keys_values", 3)
        s["output"] = (batch * self.heads, length, length)

    def free(self, queries_keys_values: Shape) -> Free:
        return Free(queries_keys_values[:2], queries_keys_values[2:])

    def forward(self, queries_keys_values: Expr) -> Expr:
        queries, keys, _ = self.parts(queries_keys_values, 3)
        return self.scores(queries, keys)


@op("_contrib_interleaved_matmul_selfatt_valatt", inputs=("queries_keys_values", "attention"))
class SelfAttentionValues(Attention):
    """Values of self-attention weighted by `attention`, (length, batch, heads * size)."""

    def shapes(self, s: Shapes) -> None:
        length, batch, size = self.sizes(s, "queries_keys_values", 3)
        s["attention"] = (batch * self.heads, length, length)
        s["output"] = (length, batch, size * self.heads)

    def free(self, queries_keys_values: Shape, attention: Shape) -> Free:
        return Free(queries_keys_values[:2], queries_keys_values[2:])

    def forward(self, queries_keys_values: Expr, attention: Expr) -> Expr:
        return self.joined(call.batch_dot(attention, self.parts(queries_keys_values, 3)[2]))


@op("_contrib_interleaved_matmul_encdec_qk", inputs=("queries", "keys_values"))
class CrossAttentionScores(Attention):
    """Scores of attention to another sequence, (batch * heads, length, other length)."""

    def shapes(self, s: Shapes) -> None:
        length, batch, size = self.sizes(s, "queries", 1)
        s["keys_values"] = (UNKNOWN, batch, size * self.heads * 2)
        s["output"] = (batch * self.heads, length, s.need("keys_values")[0])

    def free(self, queries: Shape, keys_values: Shape) -> Free:
        return Free((*queries[:2], keys_values[0]), queries[2:])

    def forward(self, queries: Expr, keys_values: Expr) -> Expr:
        return self.scores(self.parts(queries, 1)[0], self.parts(keys_values, 2)[0])


@op("_contrib_interleaved_matmul_encdec_valatt", inputs=("keys_values", "attention"))
class CrossAttentionValues(Attention):
    """Values of another sequence weighted by `attention`, (length, batch, heads * size)."""

    def shapes(self, s: Shapes) -> None:
        other, batch, size = self.sizes(s, "keys_values", 2)
        s["attention"] = (batch * self.heads, UNKNOWN, other)
        s["output"] = (s.need("attention")[1], batch, size * self.heads)

    def free(self, keys_values: Shape, attention: Shape) -> Free:
        return Free((*keys_values[:2], attention[1]), keys_values[2:])

    def forward(self, keys_values: Expr, attention: Expr) -> Expr:
        return self.joined(call.batch_dot(attention, self.parts(keys_values, 2)[1]))

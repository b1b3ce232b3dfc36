"""Operators that draw whole numbers by weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.dtype import DType, float64, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types, fixed_dtypes, times
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import Dims, param

NUMBERS = ("float16", "float32", "float64", "int32", "uint8")


@op("_sample_multinomial", aliases=("sample_multinomial",))
class SampleMultinomial(Op):
    """Positions along the last axis of `data`, which holds the probability of each.

    With `get_prob` the logarithms of their probabilities as well, which have a gradient.
    """

    shape: Dims = param((), doc="Shape of the draws for each row; one where empty.")
    get_prob: bool = param(False, doc="Give the logarithms of the probabilities, too.")
    dtype: DType = param("int32", choices=NUMBERS, doc="Dtype of the positions.")
    cases = (
        case([[1.0, 0.0], [0.0, 1.0]]),
        case([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], shape=(2, 1), get_prob=True, dtype="float64"),
        case([0.0, 0.0, 1.0], shape=4),
        case([[[0.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]]], shape=2, get_prob=True),
    )

    def outputs(self) -> tuple[str, ...]:
        return ("output0", "output1") if self.get_prob else ("output",)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if not data:
            raise s.refuse("data", "at least 1 axis", "a scalar")
        if data[-1] == 0:
            raise s.refuse("data", "at least 1 probability in a row", f"shape {data}")
        for name in self.outputs():
            s[name] = (*data[:-1], *self.shape) or (1,)

    def types(self, t: Types) -> None:
        first, *logarithms = self.outputs()
        t[first] = self.dtype
        t.same("data", *logarithms)

    def forward(self, data: Expr, *, random: Draws) -> tuple[Expr, ...]:
        rows = ext.reshape(data, (times(data.shape[:-1]), data.shape[-1]))
        drawn = random.uniform((rows.shape[0], times(self.shape)), float64)
        places = found(ext.cumsum(cast(rows, float64), 1), drawn)
        shape = (*data.shape[:-1], *self.shape) or (1,)
        told = ext.reshape(cast(places, self.dtype), shape)
        if not self.get_prob:
            return (told,)
        chances = ext.take(flat(rows), among(places, rows))
        return told, ext.reshape(cast(fn.log(cast(chances, float64)), data.dtype), shape)

    def reference(self, data: Array) -> Any:
        places = np.argmax(data, -1).reshape(*data.shape[:-1], *(1 for _ in self.shape))
        found = np.broadcast_to(places, (*data.shape[:-1], *self.shape)).reshape(
            (*data.shape[:-1], *self.shape) or (1,)
        )
        whole = found.astype(self.dtype.numpy)
        return (whole, np.zeros(whole.shape)) if self.get_prob else np.asarray(whole)

    def gradient(self, grads: tuple[Expr, ...], data: Expr, outputs: tuple[Expr, ...]) -> Any:
        if not self.get_prob:
            return None
        rows = ext.reshape(data, (times(data.shape[:-1]), data.shape[-1]))
        draws = (rows.shape[0], times(self.shape))
        # float16 and uint8 do not hold every place of a long row
        places = fn.minimum(ext.reshape(cast(outputs[0], int64), draws), rows.shape[1] - 1)
        where = among(places, rows)
        grad = ext.reshape(grads[1], draws) / ext.take(flat(rows), where)
        return ext.reshape(ext.take_grad(where, grad, times(rows.shape)), data.shape)


def flat(rows: Expr) -> Expr:
    """All elements in a row."""
    return ext.reshape(rows, (times(rows.shape),))


def among(places: Expr, rows: Expr) -> Expr:
    """Places in each of the rows as those among all elements."""
    first = ext.iota((rows.shape[0], 1)) * rows.shape[1]
    return places + ext.broadcast_to(first, places.shape)


def found(ends: Expr, drawn: Expr) -> Expr:
    """How many of each row's ends, which ascend, each number is not below; the last place at most.

    By halves, from the longest step on that may be taken.
    """
    length = ends.shape[1]
    at: Expr = ext.broadcast_to(Scalar(0, int64), drawn.shape)
    for k in reversed(range(length.bit_length())):
        tried = at + 2**k
        end = ext.take(flat(ends), among(tried - 1, ends))
        passed = cast(fn.le(end, drawn), int64) * fn.le(tried, length)
        at = fn.where(passed, tried, at)
    return fn.maximum(fn.minimum(at, length - 1), 0)


@op("_sample_unique_zipfian", inputs=(), outputs=("output0", "output1"))
class SampleUniqueZipfian(HostOp):
    """Different whole numbers below `range_max`, small ones likelier, and how many were tried.

    A number k has probability (log(k + 2) - log(k + 1)) / log(range_max + 1).
    """

    range_max: int = param(low=1, doc="How many numbers there are.")
    shape: Dims | None = param(None, low=0, doc="Rows, and numbers in each.")
    cases = (case(range_max=1, shape=(3, 1)), case(range_max=1), case(range_max=5, shape=(2, 0)))
    types = fixed_dtypes(output0=int64, output1=int64)

    def shapes(self, s: Shapes) -> None:
        s["output0"] = self.shape or (1,)
        s["output1"] = s.need("output0")[:-1] or (1,)
        *_, count = s.need("output0")
        if count > self.range_max:
            expected = f"at most range_max, {self.range_max}, numbers in a row"
            raise s.refuse("shape", expected, self.shape)

    def compute(self, *, random: np.random.Generator) -> tuple[Array, Array]:
        shape = self.shape or (1,)
        rows = [self.row(shape[-1], random) for _ in range(math.prod(shape[:-1]))]
        numbers = np.array([row for row, _ in rows], np.int64).reshape(shape)
        tries = np.array([tried for _, tried in rows], np.int64)
        return numbers, tries.reshape(shape[:-1] or (1,))

    def reference(self) -> tuple[Array, Array]:
        shape = self.shape or (1,)
        tries = np.full(shape[:-1] or (1,), shape[-1], np.int64)
        return np.zeros(shape, np.int64), tries

    def row(self, count: int, random: np.random.Generator) -> tuple[list[int], int]:
        """So many different numbers, in the order they came, and how many were tried."""
        found: dict[int, None] = {}
        tried = 0
        while len(found) < count:
            drawn = np.exp(random.random(4 * count) * math.log(self.range_max + 1)) - 1
            for number in np.minimum(drawn.astype(np.int64), self.range_max - 1):
                tried += 1
                found[int(number)] = None
                if len(found) == count:
                    break
        return list(found), tried

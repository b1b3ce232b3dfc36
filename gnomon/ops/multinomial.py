"""Operators that draw whole numbers by weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.dtype import DType, int64
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types, fixed_dtypes
from gnomon.ops.op import op
from gnomon.ops.param import Dims, param

NUMBERS = ("float16", "float32", "float64", "int32", "uint8")


@op("_sample_multinomial", aliases=("sample_multinomial",))
class SampleMultinomial(HostOp):
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
        for name in self.outputs():
            s[name] = (*data[:-1], *self.shape) or (1,)

    def types(self, t: Types) -> None:
        first, *logarithms = self.outputs()
        t[first] = self.dtype
        t.same("data", *logarithms)

    def compute(self, data: Array, *, random: np.random.Generator) -> Any:
        rows = data.reshape(-1, data.shape[-1])
        ends = np.cumsum(rows, 1, np.float64)
        np.minimum(ends, 1, out=ends)
        spread = 2.0 * np.arange(len(rows))[:, None]  # each row in a range of its own
        drawn = random.random((len(rows), math.prod(self.shape)))
        ends += spread
        flat = np.searchsorted(ends.ravel(), drawn + spread, "right")
        first = rows.shape[1] * np.arange(len(rows))[:, None]
        places = np.maximum(np.minimum(flat - first, rows.shape[1] - 1), 0)
        shape = (*data.shape[:-1], *self.shape) or (1,)
        told = places.reshape(shape).astype(self.dtype.numpy)
        if not self.get_prob:
            return told
        chances = np.log(np.take_along_axis(rows.astype(np.float64), places, 1))
        return told, chances.reshape(shape)

    def reference(self, data: Array) -> Any:
        places = np.argmax(data, -1).reshape(*data.shape[:-1], *(1 for _ in self.shape))
        found = np.broadcast_to(places, (*data.shape[:-1], *self.shape)).reshape(
            (*data.shape[:-1], *self.shape) or (1,)
        )
        whole = found.astype(self.dtype.numpy)
        return (whole, np.zeros(whole.shape)) if self.get_prob else np.asarray(whole)

    def gradient(self, grads: tuple[Array, ...], data: Array, outputs: tuple[Array, ...]) -> Array:
        found = np.zeros((math.prod(data.shape[:-1]), data.shape[-1]), data.dtype)
        if self.get_prob:
            places = outputs[0].reshape(len(found), -1).astype(np.int64)
            rows = np.arange(len(found))[:, None]
            chances = data.reshape(found.shape)[rows, places]
            np.add.at(found, (rows, places), grads[1].reshape(places.shape) / chances)
        return found.reshape(data.shape)


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

"""Fourier transforms by SciPy's pocketfft, or NumPy's, and the count sketch."""

from __future__ import annotations

import cmath
import functools
from typing import Any

import numpy as np

from gnomon.dtype import int64
from gnomon.expr import ext
from gnomon.expr.node import Expr, cast
from gnomon.ground.lock import load_module
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp, pooled
from gnomon.ops.infer import UNKNOWN, Shapes, one_dtype
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.runtime.execution.threads import num_threads


@functools.cache
def library() -> Any:
    """What transforms: SciPy, where it is there, since it takes several rows at a time."""
    try:
        return load_module("scipy.fft")
    except ImportError:
        return np.fft


def transformed(name: str, numbers: Array, *args: Any, **how: Any) -> Array:
    """The transform `name` of each row; SciPy shares many rows among as many threads as kernels."""
    fft = library()
    if fft is not np.fft:
        how["workers"] = num_threads()
    return np.asarray(getattr(fft, name)(numbers, *args, **how))


def packed(numbers: Array) -> Array:
    """Complex numbers as reals: real and imaginary parts by turns."""
    pairs = np.stack([numbers.real, numbers.imag], -1)
    return pairs.reshape(*numbers.shape[:-1], 2 * numbers.shape[-1])


def complexes(pairs: Array) -> Array:
    """The inverse of `packed`."""
    return np.ascontiguousarray(pairs).view(np.result_type(pairs, np.complex64))


class Fourier(HostOp):
    """What both share: parameters, and transforms along the last axis, none over no numbers."""

    brief = 1 << 20  # elements that take less time than to get at Python's lock on a worker
    compute_size: int = param(128, low=1, doc="No meaning here.")
    types = one_dtype(kinds="f")

    def forwards(self, data: Array, room: list[Array]) -> Array:
        """The transform of real numbers, packed."""
        (found,) = room
        if not data.size:
            return found
        n, half = data.shape[-1], transformed("rfft", data)
        whole = found.view(half.dtype)
        whole[..., : half.shape[-1]] = half
        np.conjugate(half, out=half)  # in order: faster than on the way back
        whole[..., half.shape[-1] :] = half[..., (n - 1) // 2 : 0 : -1]
        return found

    def backwards(self, pairs: Array) -> Array:
        """The real part of the inverse, not divided by the number of elements."""
        n = pairs.shape[-1] // 2
        if not pairs.size:
            return np.zeros((*pairs.shape[:-1], n), pairs.dtype)
        given, most = complexes(pairs), n // 2 + 1
        sums = pooled((*given.shape[:-1], 2 * most), pairs.dtype)
        half = sums.view(given.dtype)
        half[..., 0] = given[..., 0]
        half[..., 1:] = given[..., : n - most : -1]
        np.conjugate(half, out=half)
        sums += given.view(pairs.dtype)[..., : 2 * most]
        sums *= 0.5  # a real result comes of the mean with the mirror image
        return transformed("irfft", half, n, norm="forward")


@op("_contrib_fft")
class FFT(Fourier):
    """The Fourier transform of each row of real numbers: real and imaginary parts by turns.

    The result has twice as many columns as `data` (..., n).
    """

    cases = (case((2, 4)), case((3,)), case((2, 1, 2, 5)), case((2, 0)))

    def shapes(self, s: Shapes) -> None:
        *rest, n = s.need("data")
        s["output"] = (*rest, 2 * n)
        *rest, n = s.need("output")
        s["data"] = (*rest, n // 2)

    def compute(self, data: Array, *, room: list[Array]) -> Array:
        return self.forwards(data, room)

    def gradient(self, grad: Array) -> Array:
        return self.backwards(grad)

    def reference(self, data: Array) -> Array:
        return packed(data @ _waves(data.shape[-1], -1))


@op("_contrib_ifft")
class IFFT(Fourier):
    """The real part of the inverse Fourier transform of each row, n times as large.

    `data` (..., 2 n) has real and imaginary parts by turns.
    """

    cases = (case((2, 4)), case((6,)), case((2, 1, 2, 10)), case((2, 0)))

    def shapes(self, s: Shapes) -> None:
        *rest, n = s.need("data")
        if n != UNKNOWN and n % 2:
            raise s.refuse("data", "an even number of columns", n)
        s["output"] = (*rest, n // 2)
        *rest, n = s.need("output")
        s["data"] = (*rest, 2 * n)

    def compute(self, data: Array) -> Array:
        return self.backwards(data)

    def gradient(self, grad: Array) -> Array:
        return self.forwards(grad, [pooled((*grad.shape[:-1], 2 * grad.shape[-1]), grad.dtype)])

    def reference(self, data: Array) -> Array:
        return (complexes(data) @ _waves(data.shape[-1] // 2, 1)).real


def _waves(n: int, sign: int) -> Array:
    """The matrix of a transform of n numbers."""
    turn = sign * 2j * cmath.pi / max(n, 1)
    return np.array([[cmath.exp(turn * k * j) for j in range(n)] for k in range(n)]).reshape(n, n)


@op("_contrib_count_sketch", inputs=("data", "h", "s"))
class CountSketch(Op):
    """Sums of columns of `data` (..., n), each times its sign `s` (1, n), in column `h` (1, n).

    The result has `out_dim` columns; an index outside of them is the nearest. (Charikar et al.,
    2002; Pham and Pagh, 2013.)
    """

    out_dim: int = param(low=1, doc="Columns of the result.")
    processing_batch_size: int = param(32, low=1, doc="No meaning here.")
    cases = (
        case((2, 4), [[0, 2, 2, 1.0]], [[1, -1, 1, 1.0]], out_dim=3, differentiable=(0,)),
        case((2, 2, 3), [[1, 0, 1.0]], [[1, -1, -1.0]], out_dim=2, differentiable=(0,)),
    )

    def shapes(self, s: Shapes) -> None:
        *rest, n = s.need("data")
        s["h"] = s["s"] = (1, n)
        s["output"] = (*rest, self.out_dim)
        *rest, _ = s.need("output")
        s["data"] = (*rest, s.need("h")[1])

    def forward(self, data: Expr, h: Expr, s: Expr) -> Expr:
        last = data.ndim - 1
        signed = data * ext.broadcast_axis(ext.reshape(s, s.shape[1:]), data.shape, last)
        columns = ext.transpose(signed, (last, *range(last)))
        found = ext.take_grad(self.column(h), columns, self.out_dim)
        return ext.transpose(found, (*range(1, data.ndim), 0))

    def gradient(self, grad: Expr, h: Expr, s: Expr) -> dict[str, Expr]:
        last = grad.ndim - 1
        columns = ext.take(ext.transpose(grad, (last, *range(last))), self.column(h))
        back = ext.transpose(columns, (*range(1, grad.ndim), 0))
        return {"data": back * ext.broadcast_axis(ext.reshape(s, s.shape[1:]), back.shape, last)}

    def column(self, h: Expr) -> Expr:
        """The column of the result that each column of `data` goes to."""
        return cast(ext.reshape(h, h.shape[1:]), int64)

    def reference(self, data: Array, h: Array, s: Array) -> Array:
        found = np.zeros((*data.shape[:-1], self.out_dim))
        for k in range(data.shape[-1]):
            found[..., int(h[0, k])] += s[0, k] * data[..., k]
        return found

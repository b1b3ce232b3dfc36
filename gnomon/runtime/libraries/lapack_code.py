"""Routines of LAPACK and BLAS for every matrix of a batch, in native code."""

from __future__ import annotations

from gnomon.native.memory import Struct
from gnomon.native.words import Words, call, native, scratch

MOST = 15  # arguments: further ones do no harm in C


class Batch(Struct):
    """A routine's address, and how often it is called.

    Behind that lie `MOST` arguments, and as many steps of them from one call to the next.
    """

    routine: int
    count: int


@native
def each(batch: Batch) -> None:
    a = batch + 2
    steps = a + MOST
    for _ in range(batch.count):
        call(batch.routine, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
             a[11], a[12], a[13], a[14])  # fmt: skip
        for k in range(MOST):
            a[k] += steps[k]


class Triangles(Struct):
    """Triangles to be inverted in place, and what does that: the addresses of trtri and trmm."""

    invert: int
    multiply: int
    first: int  # the address of the first matrix
    step: int  # bytes from one to the next
    count: int
    order: int
    part: int  # rows and columns of what `invert` takes
    size: int  # bytes of an element
    upper: int  # whether they are upper ones, by columns
    triangle: int  # a letter, as are the next ones
    diagonal: int
    left: int
    right: int
    plain: int
    one: int  # numbers of the kind of the elements
    minus: int


@native
def inverted(t: Triangles) -> None:
    sizes = scratch(3)  # of matrices of a call, and a status
    sizes[2] = 0
    for number in range(t.count):
        start = t.first + number * t.step
        k = 0
        while k < t.order:
            _invert_part(t, sizes, start, k)
            k += t.part
        part = t.part
        while part < t.order:
            k = 0
            while k + part < t.order:
                _join(t, sizes, start, k, part)
                k += 2 * part
            part *= 2


@native
def _invert_part(t: Triangles, sizes: Words, start: int, k: int) -> None:
    """Invert the part at the diagonal's element `k`."""
    sizes[0] = min(t.part, t.order - k)
    call(t.invert, (t + Triangles.triangle).address, (t + Triangles.diagonal).address,
         sizes.address, start + k * (t.order + 1) * t.size, (t + Triangles.order).address,
         (sizes + 2).address, 1, 1)  # fmt: skip


@native
def _join(t: Triangles, sizes: Words, start: int, k: int, part: int) -> None:
    """Make one inverse of those of neighbours, of which the first one has `part` rows."""
    one = start + k * (t.order + 1) * t.size
    other = one + part * (t.order + 1) * t.size
    rest = min(part, t.order - k - part)
    lead = (t + Triangles.order).address
    left = one if t.upper != 0 else other
    between = one + part * t.size * (t.order if t.upper != 0 else 1)
    sizes[0] = part if t.upper != 0 else rest
    sizes[1] = rest if t.upper != 0 else part
    call(t.multiply, (t + Triangles.left).address, (t + Triangles.triangle).address,
         (t + Triangles.plain).address, (t + Triangles.diagonal).address, sizes.address,
         (sizes + 1).address, (t + Triangles.one).address, left, lead, between, lead,
         1, 1, 1, 1)  # fmt: skip
    call(t.multiply, (t + Triangles.right).address, (t + Triangles.triangle).address,
         (t + Triangles.plain).address, (t + Triangles.diagonal).address, sizes.address,
         (sizes + 1).address, (t + Triangles.minus).address, one + other - left, lead, between,
         lead, 1, 1, 1, 1)  # fmt: skip

"""A routine of LAPACK or BLAS for every matrix of a batch, in native code."""

from __future__ import annotations

from gnomon.native.memory import Struct
from gnomon.native.words import call, native

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

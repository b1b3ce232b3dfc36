"""cuBLAS simulated: products by the processor's library, in the order of the simulated streams.

What the real one refuses is refused with its status: handles that are none, columns that overlap.
What it does not see, and must not happen, is an error here: a handle whose stream was not set, so
that it has no order with anything; one used by another context's stream; a result that overlaps an
operand; memory that is not there, or touched by another stream without order, the workspace too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gnomon.base import DeviceError
from gnomon.dtype import DType
from gnomon.ground.record import record
from gnomon.runtime.devices.cuda.blas import Gemm
from gnomon.runtime.devices.cuda.simulated_memory import Space, Work

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated import Simulated

Array: TypeAlias = "np.ndarray[Any, Any]"
GEMM = "cublasGemmStridedBatchedEx"
INVALID, UNMADE = "CUBLAS_STATUS_INVALID_VALUE", "CUBLAS_STATUS_NOT_INITIALIZED"
ALIGNED = 256  # bytes: what the address of a workspace is a multiple of


@record(frozen=False, eq=False)
class _Handle:
    context: int
    stream: int | None
    workspace: tuple[int, int]  # address, bytes


@record()
class _Matrix:
    """Matrices as stored: columns of `rows` elements, `distance` apart, `apart` in the batch."""

    name: str
    rows: int
    columns: int
    distance: int
    apart: int
    address: int

    def check(self, dtype: DType) -> None:
        """Refuse what cuBLAS refuses."""
        if self.distance < max(1, self.rows):
            raise DeviceError(
                f"{GEMM}: {INVALID}: ld{self.name} is {self.distance}, expected at least "
                f"{max(1, self.rows)}"
            )
        if self.address % dtype.size:
            raise DeviceError(f"{GEMM}: {INVALID}: {self.name} at {self.address:#x}: not aligned")

    def reach(self, batch: int, dtype: DType) -> tuple[int, int]:
        """The first byte of the matrices of a batch, and the one after the last."""
        last = (batch - 1) * self.apart + (self.columns - 1) * self.distance + self.rows
        return self.address, self.address + last * dtype.size

    def of(self, held: Array, batch: int, dtype: DType) -> Array:
        """The matrices as (batch, rows, columns), of the bytes that they reach."""
        strides = (n * dtype.size for n in (self.apart, 1, self.distance))
        elements = held.view(dtype.numpy)
        shape = batch, self.rows, self.columns
        return np.lib.stride_tricks.as_strided(elements, shape, tuple(strides))


class SimulatedBlas:
    """The simulated library; see `Blas`."""

    def __init__(self, driver: Simulated) -> None:
        self.driver = driver

    def _handle(self, call: str, handle: int) -> _Handle:
        try:
            found: _Handle = self.driver.get(call, _Handle, handle)
        except DeviceError as error:
            raise DeviceError(f"{call}: {UNMADE}: {handle!r} ({error})") from None
        if found.context != self.driver.here(call):
            raise DeviceError(f"{call}: {INVALID}: handle {handle} is of another context")
        return found

    def create(self) -> int:
        with self.driver.lock:
            return self.driver.add(_Handle(self.driver.here("cublasCreate"), None, (0, 0)))

    def destroy(self, handle: int) -> None:
        with self.driver.lock:
            self._handle("cublasDestroy", handle)
            self.driver.remove(handle)

    def set_stream(self, handle: int, stream: int) -> None:
        with self.driver.lock:
            found = self._handle("cublasSetStream", handle)
            self.driver.uncaptured("cublasSetStream", stream)
            found.stream, found.workspace = stream, (0, 0)

    def set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        with self.driver.lock:
            found = self._handle("cublasSetWorkspace", handle)
            if address % ALIGNED:
                raise DeviceError(f"cublasSetWorkspace: {INVALID}: {address:#x}: not aligned")
            found.workspace = address, nbytes

    def gemm(self, handle: int, what: Gemm, a: int, b: int, c: int) -> None:
        with self.driver.lock:
            found = self._handle(GEMM, handle)
            if found.stream is None:
                raise DeviceError(
                    f"{GEMM}: handle {handle} has no stream of its own: no order with other work"
                )
            queue = self.driver.stream_of(GEMM, found.stream)
            if min(what.m, what.n, what.k, what.batch) < 0:
                raise DeviceError(f"{GEMM}: {INVALID}: {what!r}: a negative size")
            matrices = _stored(what, a, b, c)
            for matrix in matrices:
                matrix.check(what.dtype)
            space, workspace = self.driver.spaces[found.context - 1], found.workspace
            if min(what.m, what.n, what.batch):
                self.driver.give(
                    queue, GEMM, lambda work: _run(what, matrices, space, workspace, work)
                )


def _stored(what: Gemm, a: int, b: int, c: int) -> tuple[_Matrix, _Matrix, _Matrix]:
    """The matrices as they lie in memory."""
    m, n, k = what.m, what.n, what.k
    left, right = (k, m) if what.transpose_a else (m, k), (n, k) if what.transpose_b else (k, n)
    return (
        _Matrix("a", *left, what.lda, what.sa, a),
        _Matrix("b", *right, what.ldb, what.sb, b),
        _Matrix("c", m, n, what.ldc, what.sc, c),
    )


def _repeats(what: Gemm) -> bool:
    """Whether two elements of C may share memory: matrices of a batch may lie between each other's
    columns."""
    axes = sorted((abs(s), n) for s, n in ((what.sc, what.batch), (what.ldc, what.n)) if n > 1)
    extent = what.m
    for stride, count in axes:
        if stride < extent:
            return True
        extent = stride * (count - 1) + extent
    return False


def _run(
    what: Gemm,
    matrices: tuple[_Matrix, _Matrix, _Matrix],
    space: Space,
    workspace: tuple[int, int],
    work: Work,
) -> None:
    """Compute a product on the memory of a GPU."""
    address, nbytes = workspace
    if nbytes:
        space.touched(address, nbytes, True, work)
    spans = [m.reach(what.batch, what.dtype) for m in matrices]
    for name, (low, high) in zip("ab", spans, strict=False):
        if what.k and low < spans[2][1] and spans[2][0] < high:
            raise DeviceError(f"{GEMM}: c overlaps {name}: what it reads is not defined")
    if _repeats(what):
        raise DeviceError(f"{GEMM}: matrices of c overlap each other: {what.sc} elements apart")
    wide = np.dtype(np.float64 if what.dtype.size == 8 else np.float32)
    views = [
        m.of(space.bytes_at(low, high - low, m.name == "c", work), what.batch, what.dtype)
        for m, (low, high) in zip(matrices, spans, strict=True)
        if what.k or m.name == "c"
    ]
    with np.errstate(all="ignore"):  # as a GPU, which warns of nothing
        _store(what, views, wide)


def _store(what: Gemm, views: list[Array], wide: np.dtype[Any]) -> None:
    """Compute the last of the matrices from those before it, in numbers of `wide`."""
    c = views[-1]
    value = np.zeros(c.shape, wide)
    if what.k:
        left, right = (view.astype(wide) for view in views[:2])
        left = left.swapaxes(1, 2) if what.transpose_a else left
        right = right.swapaxes(1, 2) if what.transpose_b else right
        value = wide.type(what.alpha) * (left @ right)
    if what.beta:
        value += wide.type(what.beta) * c.astype(wide)
    c[...] = value.astype(what.dtype.numpy)

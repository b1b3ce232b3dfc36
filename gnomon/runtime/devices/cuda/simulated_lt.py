"""cuBLASLt simulated: products with epilogues, as cuBLAS is (`simulated_blas.py`).

Refused with a status: handles that are none, columns that overlap, a workspace that is smaller than
the algorithm's or at an odd address, addresses less aligned than was said when the algorithm was
chosen, a bias that was not set. A stream of another context, and a result that overlaps the bias,
are errors here as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gnomon.base import DeviceError
from gnomon.ground.record import record
from gnomon.runtime.devices.cuda.blas import Matmul
from gnomon.runtime.devices.cuda.simulated_blas import INVALID, Product, SimulatedBlas
from gnomon.runtime.devices.cuda.simulated_memory import Space, Work

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated import Simulated

Array: TypeAlias = "np.ndarray[Any, Any]"
MATMUL, HEURISTIC = "cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic"
ALIGNED = 16  # bytes: what the address of a workspace is a multiple of
WANTED = 1 << 16  # bytes of workspace that an algorithm takes where it may


@record(eq=False)
class _Plan:
    what: Matmul
    alignment: int
    nbytes: int


class SimulatedLt:
    """The simulated library; see `Lt`."""

    def __init__(self, driver: Simulated) -> None:
        self.driver, self.blas = driver, SimulatedBlas(driver)

    def plan(self, handle: int, what: Matmul, alignment: int, nbytes: int) -> _Plan | None:
        with self.driver.lock:
            self.blas.handle(HEURISTIC, handle)
            Product(HEURISTIC, what.gemm, (0, 0, 0), alignment)
            return _Plan(what, alignment, min(nbytes, WANTED))

    def matmul(
        self,
        handle: int,
        plan: _Plan,
        operands: tuple[int, int, int, int],
        workspace: tuple[int, int],
        stream: int,
    ) -> None:
        with self.driver.lock:
            found = self.blas.handle(MATMUL, handle)
            queue = self.driver.stream_of(MATMUL, stream)
            *matrices, bias = operands
            a, b, c = matrices
            product = Product(MATMUL, plan.what.gemm, (a, b, c), plan.alignment)
            _check(plan, bias, workspace)
            space = self.driver.spaces[found.context - 1]
            self.driver.give(
                queue, MATMUL, lambda work: _run(plan, product, bias, space, workspace, work)
            )


def _check(plan: _Plan, bias: int, workspace: tuple[int, int]) -> None:
    """Refuse what cuBLASLt refuses of a bias and a workspace."""
    address, nbytes = workspace
    if nbytes < plan.nbytes or (nbytes and address % ALIGNED):
        raise DeviceError(
            f"{MATMUL}: {INVALID}: a workspace of {nbytes} bytes at {address:#x}, expected "
            f"{plan.nbytes} at a multiple of {ALIGNED}"
        )
    if plan.what.biased and (not bias or bias % plan.alignment):
        raise DeviceError(
            f"{MATMUL}: {INVALID}: the bias at {bias:#x}, expected a multiple of {plan.alignment}"
        )


def _run(
    plan: _Plan,
    product: Product,
    bias: int,
    space: Space,
    workspace: tuple[int, int],
    work: Work,
) -> None:
    """Compute a product and what is done to it on the memory of a GPU."""
    what, gemm = plan.what, plan.what.gemm
    nbytes = gemm.m * gemm.dtype.size if what.biased else 0
    low, high = product.matrices[2].reach(gemm.batch, gemm.dtype)
    if nbytes and low < bias + nbytes and bias < high:
        raise DeviceError(f"{MATMUL}: c overlaps the bias: what it reads is not defined")

    def after(value: Array) -> Array:
        if nbytes:
            row = space.bytes_at(bias, nbytes, False, work).view(gemm.dtype.numpy)
            value = value + row.astype(value.dtype)[:, None]
        return np.maximum(value, 0) if what.relu else value

    product.run(space, (workspace[0], plan.nbytes), work, after)

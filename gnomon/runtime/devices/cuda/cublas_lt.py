"""cuBLASLt itself, by ctypes: products that add a bias and apply `relu` as they store.

It comes with cuBLAS. Nothing here has run on hardware. As cuBLAS does here, it computes float32 in
float32. Matrices lie by columns, as an epilogue asks of the result.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from gnomon.runtime.devices.cuda import wheels
from gnomon.runtime.devices.cuda.blas import Matmul
from gnomon.runtime.devices.cuda.cublas import (
    DOUBLE,
    IN_DOUBLE,
    KINDS,
    SINGLE,
    WHEELS,
    factors,
    failed,
)
from gnomon.runtime.once import once

NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8  # cublasLtMatmulDescAttributes_t
PLAIN, RELU, BIAS = 1, 2, 4  # cublasLtEpilogue_t
BATCH_COUNT, BATCH_OFFSET = 5, 6  # cublasLtMatrixLayoutAttribute_t
MAX_WORKSPACE, MIN_ALIGNMENTS = 1, (5, 6, 7, 8)  # cublasLtMatmulPreferenceAttributes_t: A, B, C, D
NOT_SUPPORTED = 15  # cublasStatus_t
_SET = (c_void_p, c_int, c_void_p, c_size_t)

#: the arguments of each call; all give a status
CALLS: dict[str, tuple[Any, ...]] = {
    "cublasLtMatmulDescCreate": (c_void_p, c_int, c_int),
    "cublasLtMatmulDescSetAttribute": _SET,
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatrixLayoutCreate": (c_void_p, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": _SET,
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceCreate": (c_void_p,),
    "cublasLtMatmulPreferenceSetAttribute": _SET,
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulAlgoGetHeuristic": (*(c_void_p,) * 7, c_int, c_void_p, c_void_p),
    "cublasLtMatmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm, which is the library's own, and its needs.

    The algorithm comes first, so that a pointer to this is one to it.
    """

    _fields_ = (
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


@once
def load() -> Library | None:
    """The library of this machine, or None."""
    found = wheels.opened(NAMES, WHEELS, CALLS)
    return None if found is None else Library(found)


class Plan:
    """A product's descriptors, which are kept as long, and the algorithm that was chosen."""

    __slots__ = ("__weakref__", "algorithm", "layouts", "made", "own", "what")

    def __init__(self, what: Matmul) -> None:
        self.what = what
        self.made: list[tuple[str, int]] = []  # kinds and numbers of all descriptors
        self.own = 0
        self.layouts: list[int] = []  # of A, B, C
        self.algorithm = Heuristic()


class Library:
    """The real library; see `Lt`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise failed(self._library.cublasLtGetStatusString, name, status)

    def _make(self, made: list[tuple[str, int]], kind: str, *arguments: Any) -> int:
        """A descriptor, noted among those that are `made`."""
        found = c_void_p()
        self._call(f"cublasLt{kind}Create", byref(found), *arguments)
        number = int(found.value or 0)
        made.append((kind, number))
        return number

    def _set(self, kind: str, number: int, attribute: int, value: Any) -> None:
        size = ctypes.sizeof(value)
        self._call(f"cublasLt{kind}SetAttribute", number, attribute, byref(value), size)

    def _forget(self, made: list[tuple[str, int]]) -> None:
        for kind, number in made:
            self._call(f"cublasLt{kind}Destroy", number)

    def plan(self, handle: int, what: Matmul, alignment: int, nbytes: int) -> Plan | None:
        plan = Plan(what)
        weakref.finalize(plan, self._forget, plan.made).atexit = False
        self._describe(plan, alignment)
        return plan if self._choose(plan, handle, alignment, nbytes) else None

    def _describe(self, plan: Plan, alignment: int) -> None:
        what, gemm = plan.what, plan.what.gemm
        compute = KINDS[gemm.dtype][1]
        scale = DOUBLE if compute == IN_DOUBLE else SINGLE
        plan.own = self._make(plan.made, "MatmulDesc", compute, scale)
        epilogue = (RELU if what.relu else 0) | (BIAS if what.biased else 0) or PLAIN
        attributes: list[tuple[int, Any]] = [
            (TRANSPOSE_A, c_int32(gemm.transpose_a)),
            (TRANSPOSE_B, c_int32(gemm.transpose_b)),
            (EPILOGUE, c_uint32(epilogue)),
        ]
        if what.biased:  # what is chosen depends on its alignment, and memory is not looked at
            attributes.append((BIAS_POINTER, c_void_p(alignment)))
        for attribute, value in attributes:
            self._set("MatmulDesc", plan.own, attribute, value)
        plan.layouts = [self._layout(plan, *sizes) for sizes in gemm.stored]

    def _layout(self, plan: Plan, rows: int, columns: int, distance: int, apart: int) -> int:
        gemm = plan.what.gemm
        kind = KINDS[gemm.dtype][0]
        made = self._make(plan.made, "MatrixLayout", kind, rows, columns, distance)
        self._set("MatrixLayout", made, BATCH_COUNT, c_int32(gemm.batch))
        self._set("MatrixLayout", made, BATCH_OFFSET, c_int64(apart))
        return made

    def _choose(self, plan: Plan, handle: int, alignment: int, nbytes: int) -> bool:
        """Take the library's guess of the fastest algorithm; whether there is any."""
        made: list[tuple[str, int]] = []
        kind = "MatmulPreference"
        preference = self._make(made, kind)
        try:
            self._set(kind, preference, MAX_WORKSPACE, c_uint64(nbytes))
            for attribute in MIN_ALIGNMENTS:
                self._set(kind, preference, attribute, c_uint32(alignment))
            a, b, c = plan.layouts
            found, count = plan.algorithm, c_int()
            name = "cublasLtMatmulAlgoGetHeuristic"
            status = getattr(self._library, name)(
                handle, plan.own, a, b, c, c, preference, 1, byref(found), byref(count)
            )
        finally:
            self._forget(made)
        if status not in (0, NOT_SUPPORTED):
            raise failed(self._library.cublasLtGetStatusString, name, status)
        return not status and count.value > 0 and not found.state

    def matmul(
        self,
        handle: int,
        plan: Plan,
        operands: tuple[int, int, int, int],
        workspace: tuple[int, int],
        stream: int,
    ) -> None:
        a, b, c, bias = operands
        of_a, of_b, of_c = plan.layouts
        if plan.what.biased:
            self._set("MatmulDesc", plan.own, BIAS_POINTER, c_void_p(bias))
        alpha, beta = factors(plan.what.gemm)
        self._call(
            "cublasLtMatmul",
            handle, plan.own, alpha, a, of_a, b, of_b, beta, c, of_c, c, of_c,
            byref(plan.algorithm), *workspace, stream,
        )  # fmt: skip

"""cuBLAS itself, by ctypes: the library of the system, or of NVIDIA's wheel.

Nothing here has run on hardware. Products of float32 are computed in float32: TF32, which keeps ten
bits of the operands, is not asked for.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DeviceError
from gnomon.runtime.devices.cuda import wheels
from gnomon.runtime.devices.cuda.blas import Gemm
from gnomon.runtime.once import once

NAMES = ("libcublas.so.13", "libcublas.so.12")
WHEELS = ("nvidia.cu13", "nvidia.cublas")
HALF, SINGLE, DOUBLE, BRAIN = 2, 0, 1, 14  # cudaDataType_t
IN_SINGLE, IN_DOUBLE = 68, 70  # cublasComputeType_t
BEST = -1  # cublasGemmAlgo_t: the library's choice
KINDS = {
    dtypes.float16: (HALF, IN_SINGLE),
    dtypes.bfloat16: (BRAIN, IN_SINGLE),
    dtypes.float32: (SINGLE, IN_SINGLE),
    dtypes.float64: (DOUBLE, IN_DOUBLE),
}
_MATRIX = (c_void_p, c_int, c_int, c_int64)  # address, dtype, columns and matrices apart

#: the arguments of each call; all give a status
CALLS: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (c_void_p,),
    "cublasDestroy_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    "cublasGemmStridedBatchedEx": (
        c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p, *_MATRIX, *_MATRIX, c_void_p,
        *_MATRIX, c_int, c_int, c_int,
    ),
}  # fmt: skip


@once
def load() -> Library | None:
    """The library of this machine, or None."""
    found = wheels.opened(NAMES, WHEELS, CALLS)
    return None if found is None else Library(found)


class Library:
    """The real library; see `Blas`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            said = self._library.cublasGetStatusString
            said.argtypes, said.restype = (c_int,), c_char_p
            raise DeviceError(f"{name}: {said(status).decode()}")

    def create(self) -> int:
        handle = c_void_p()
        self._call("cublasCreate_v2", byref(handle))
        return int(handle.value or 0)

    def destroy(self, handle: int) -> None:
        self._call("cublasDestroy_v2", handle)

    def set_stream(self, handle: int, stream: int) -> None:
        self._call("cublasSetStream_v2", handle, stream)

    def set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        self._call("cublasSetWorkspace_v2", handle, address, nbytes)

    def gemm(self, handle: int, what: Gemm, a: int, b: int, c: int) -> None:
        kind, compute = KINDS[what.dtype]
        factor = ctypes.c_double if compute == IN_DOUBLE else ctypes.c_float
        alpha, beta = factor(what.alpha), factor(what.beta)
        self._call(
            "cublasGemmStridedBatchedEx",
            handle, int(what.transpose_a), int(what.transpose_b), what.m, what.n, what.k,
            byref(alpha), a, kind, what.lda, what.sa, b, kind, what.ldb, what.sb,
            byref(beta), c, kind, what.ldc, what.sc, what.batch, compute, BEST,
        )  # fmt: skip

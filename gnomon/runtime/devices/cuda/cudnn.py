"""cuDNN itself, by ctypes: the library of the system, or of NVIDIA's wheel.

Nothing here has run on hardware. These are the calls that cuDNN had before its graphs. Version 9
names them deprecated and exports them; they are one function for each convolution, with a guess at
its algorithms, where a graph takes dozens of attributes, plans of its own and code compiled at run
time. Float32 is computed by FMA alone: what cuDNN does by default may round operands to TF32.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_void_p
from typing import Any, NamedTuple

from gnomon import dtype as dtypes
from gnomon.base import DeviceError
from gnomon.runtime.devices.cuda import wheels
from gnomon.runtime.devices.cuda.dnn import Algorithm, Convolve, Factors, Mean, Pair, Sizes, strides
from gnomon.runtime.once import once

NAMES = ("libcudnn.so.9",)
WHEELS = ("nvidia.cudnn", "nvidia.cu13")
SINGLE, DOUBLE, HALF, BRAIN = 0, 1, 2, 9  # cudnnDataType_t
DEFAULT, TENSOR_CORES, FMA = 0, 1, 3  # cudnnMathType_t
PLAIN, LAST = 0, 1  # cudnnTensorFormat_t: NCHW, NHWC
CORRELATION = 1  # cudnnConvolutionMode_t
COUNTED, NOT_COUNTED = 1, 2  # cudnnPoolingMode_t
PROPAGATE = 1  # cudnnNanPropagation_t
MOST = 16  # algorithms to be told of; there are at most eight
KINDS = {
    dtypes.float16: (HALF, SINGLE, TENSOR_CORES),
    dtypes.bfloat16: (BRAIN, SINGLE, TENSOR_CORES),
    dtypes.float32: (SINGLE, SINGLE, FMA),
    dtypes.float64: (DOUBLE, DOUBLE, DEFAULT),
}  # of operands, of sums, and what may compute
PARTS = {"forward": "Forward", "data": "BackwardData", "weight": "BackwardFilter"}
OPERANDS = {
    "forward": ("Tensor", "Filter", "Tensor"),
    "data": ("Filter", "Tensor", "Tensor"),
    "weight": ("Tensor", "Tensor", "Filter"),
}
NOT_SUPPORTED = range(3000, 4000)  # cudnnStatus_t
_ONE, _TWO, _FIVE = (c_void_p,), (c_void_p, c_void_p), (c_void_p,) * 5
_CONVOLVE = (
    *_FIVE, c_void_p, c_void_p, c_int, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p,
)  # fmt: skip
_CHOOSE, _SIZE = (*_FIVE, c_int, c_void_p, c_void_p), (*_FIVE, c_int, c_void_p)

#: the arguments of each call; all give a status
CALLS: dict[str, tuple[Any, ...]] = {
    "cudnnCreate": _ONE,
    "cudnnDestroy": _ONE,
    "cudnnSetStream": _TWO,
    "cudnnCreateTensorDescriptor": _ONE,
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, c_void_p, c_void_p),
    "cudnnDestroyTensorDescriptor": _ONE,
    "cudnnCreateFilterDescriptor": _ONE,
    "cudnnSetFilterNdDescriptor": (c_void_p, c_int, c_int, c_int, c_void_p),
    "cudnnDestroyFilterDescriptor": _ONE,
    "cudnnCreateConvolutionDescriptor": _ONE,
    "cudnnSetConvolutionNdDescriptor": (
        c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_int, c_int,
    ),
    "cudnnSetConvolutionGroupCount": (c_void_p, c_int),
    "cudnnSetConvolutionMathType": (c_void_p, c_int),
    "cudnnDestroyConvolutionDescriptor": _ONE,
    "cudnnGetConvolutionForwardAlgorithm_v7": _CHOOSE,
    "cudnnGetConvolutionBackwardDataAlgorithm_v7": _CHOOSE,
    "cudnnGetConvolutionBackwardFilterAlgorithm_v7": _CHOOSE,
    "cudnnGetConvolutionForwardWorkspaceSize": _SIZE,
    "cudnnGetConvolutionBackwardDataWorkspaceSize": _SIZE,
    "cudnnGetConvolutionBackwardFilterWorkspaceSize": _SIZE,
    "cudnnConvolutionForward": _CONVOLVE,
    "cudnnConvolutionBackwardData": _CONVOLVE,
    "cudnnConvolutionBackwardFilter": _CONVOLVE,
    "cudnnCreatePoolingDescriptor": _ONE,
    "cudnnSetPoolingNdDescriptor": (
        c_void_p, c_int, c_int, c_int, c_void_p, c_void_p, c_void_p,
    ),
    "cudnnDestroyPoolingDescriptor": _ONE,
    "cudnnPoolingForward": (*_FIVE, c_void_p, c_void_p, c_void_p),
    "cudnnPoolingBackward": (*_FIVE, *_FIVE, c_void_p, c_void_p),
}  # fmt: skip


class Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t, and the same of the gradients."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


class _Descriptors(NamedTuple):
    """Those of a convolution or pooling: of itself, and of its operands and result."""

    what: Convolve | Mean
    own: int
    operands: tuple[int, ...]
    kinds: tuple[str, ...]  # of the operands


@once
def load() -> Library | None:
    """The library of this machine, or None."""
    found = wheels.opened(NAMES, WHEELS, CALLS)
    return None if found is None else Library(found)


class Library:
    """The real library; see `Dnn`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._described: dict[int, _Descriptors] = {}

    def _call(self, name: str, *arguments: Any, what: object = None) -> None:
        self._check(getattr(self._library, name)(*arguments), name, what)

    def _check(self, status: int, name: str, what: object) -> None:
        if status:
            of = "" if what is None else f" ({what})"
            raise DeviceError(f"{name}{of}: {self._said(status)}")

    def _said(self, status: int) -> str:
        """A status by its name, and what the library tells of it."""
        name, last = self._library.cudnnGetErrorString, self._library.cudnnGetLastErrorString
        name.argtypes, name.restype = (c_int,), c_char_p
        last.argtypes, last.restype = (c_char_p, c_size_t), None
        more = ctypes.create_string_buffer(1024)
        last(more, len(more))
        return f"{name(status).decode()} ({more.value.decode(errors='replace')})"

    def create(self) -> int:
        return self._made("cudnnCreate")

    def _made(self, name: str) -> int:
        found = c_void_p()
        self._call(name, byref(found))
        return int(found.value or 0)

    def destroy(self, handle: int) -> None:
        self._call("cudnnDestroy", handle)

    def set_stream(self, handle: int, stream: int) -> None:
        self._call("cudnnSetStream", handle, stream)

    # -- descriptors ----------------------------------------------------------------------------

    def describe(self, what: Convolve | Mean) -> int:
        kinds: tuple[str, ...] = ("Tensor", "Tensor")
        if isinstance(what, Convolve):
            name, kinds = "Convolution", OPERANDS[what.part]
        else:
            name = "Pooling"
        own = self._made(f"cudnnCreate{name}Descriptor")
        operands = tuple(self._made(f"cudnnCreate{kind}Descriptor") for kind in kinds)
        self._described[own] = _Descriptors(what, own, operands, kinds)
        try:
            self._set(what, own)
            kind = KINDS[what.dtype][0]
            for number, of, shape in zip(operands, kinds, what.shapes, strict=True):
                self._set_operand(what, number, of, kind, shape)
        except DeviceError:
            self.forget(own)
            raise
        return own

    def _set(self, what: Convolve | Mean, own: int) -> None:
        if isinstance(what, Convolve):
            _, sums, math = KINDS[what.dtype]
            lists = map(_numbers, (what.pad, what.stride, what.dilate))
            axes = len(what.stride)
            self._call(
                "cudnnSetConvolutionNdDescriptor", own, axes, *lists, CORRELATION, sums, what=what
            )
            self._call("cudnnSetConvolutionGroupCount", own, what.groups, what=what)
            self._call("cudnnSetConvolutionMathType", own, math, what=what)
        else:
            lists = map(_numbers, (what.kernel, what.pad, what.stride))
            mode, axes = COUNTED if what.counted else NOT_COUNTED, len(what.kernel)
            self._call("cudnnSetPoolingNdDescriptor", own, mode, PROPAGATE, axes, *lists, what=what)

    def _set_operand(
        self, what: Convolve | Mean, number: int, of: str, kind: int, shape: Sizes
    ) -> None:
        """Sizes go in the order N, C, space, whatever the order in memory."""
        sizes = _numbers(shape)
        if of == "Filter":
            given: tuple[Any, ...] = (kind, LAST if what.last else PLAIN, len(shape), sizes)
        else:
            given = kind, len(shape), sizes, _numbers(strides(what, shape))
        self._call(f"cudnnSet{of}NdDescriptor", number, *given, what=what)

    def forget(self, described: int) -> None:
        found = self._described.pop(described)
        for number, of in zip(found.operands, found.kinds, strict=True):
            self._call(f"cudnnDestroy{of}Descriptor", number)
        name = "Convolution" if isinstance(found.what, Convolve) else "Pooling"
        self._call(f"cudnnDestroy{name}Descriptor", found.own)

    # -- work -----------------------------------------------------------------------------------

    def algorithms(self, handle: int, described: int) -> list[Algorithm]:
        what, own, (first, second, result), _ = self._described[described]
        assert isinstance(what, Convolve)
        found, count = (Performance * MOST)(), c_int()
        name = f"cudnnGetConvolution{PARTS[what.part]}Algorithm_v7"
        given = handle, first, second, own, result, MOST, byref(count), found
        status = getattr(self._library, name)(*given)
        if status in NOT_SUPPORTED:
            return []
        self._check(status, name, what)
        return [
            Algorithm(x.algorithm, x.determinism == 1) for x in found[: count.value] if not x.status
        ]

    def workspace(self, handle: int, described: int, algorithm: int) -> int | None:
        what, own, (first, second, result), _ = self._described[described]
        assert isinstance(what, Convolve)
        size = c_size_t()
        ask = getattr(self._library, f"cudnnGetConvolution{PARTS[what.part]}WorkspaceSize")
        status = ask(handle, first, second, own, result, algorithm, byref(size))
        return None if status else size.value

    def convolve(
        self,
        handle: int,
        described: int,
        algorithm: int,
        factors: Factors,
        operands: tuple[int, int, int],
        workspace: Pair,
    ) -> None:
        what, own, (first, second, result), _ = self._described[described]
        assert isinstance(what, Convolve)
        alpha, beta = _factors(what, factors)
        a, b, c = operands
        self._call(
            f"cudnnConvolution{PARTS[what.part]}",
            handle, byref(alpha), first, a, second, b, own, algorithm, *workspace, byref(beta),
            result, c, what=what,
        )  # fmt: skip

    def pool(self, handle: int, described: int, factors: Factors, operands: Pair) -> None:
        what, own, (first, second), _ = self._described[described]
        assert isinstance(what, Mean)
        alpha, beta = _factors(what, factors)
        a, b = operands
        if what.backward:  # a mean needs neither what was pooled nor what came of it
            given = first, a, first, a, second, b
            self._call(
                "cudnnPoolingBackward",
                handle, own, byref(alpha), *given, byref(beta), second, b, what=what,
            )  # fmt: skip
            return
        self._call(
            "cudnnPoolingForward",
            handle, own, byref(alpha), first, a, byref(beta), second, b, what=what,
        )  # fmt: skip


def _numbers(values: Sizes) -> Any:
    return (c_int * len(values))(*values)


def _factors(what: Convolve | Mean, factors: Factors) -> tuple[Any, Any]:
    """The factors as cuDNN takes them: as double for that, else as float."""
    kind = ctypes.c_double if what.dtype is dtypes.float64 else c_float
    return kind(factors[0]), kind(factors[1])

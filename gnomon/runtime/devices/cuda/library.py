"""The driver's own library, `libcuda.so.1`, by ctypes: nothing has to be installed beside it.

`cuda-bindings` would give the same calls as one more package to install and to import; these few
have kept their signatures since CUDA 11.4.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any

from gnomon.base import DeviceError, Later
from gnomon.runtime.devices.cuda.driver import Image, Properties
from gnomon.runtime.once import once

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda import cublas, cudnn
    from gnomon.runtime.devices.cuda.blas import Blas
    from gnomon.runtime.devices.cuda.dnn import Dnn
else:
    cublas = Later("gnomon.runtime.devices.cuda.cublas")
    cudnn = Later("gnomon.runtime.devices.cuda.cudnn")

NAMES = ("libcuda.so.1", "libcuda.so") if sys.platform != "win32" else ("nvcuda.dll",)
OUT_OF_MEMORY, NOT_READY = 2, 600
PROCESSORS, MAJOR, MINOR = 16, 75, 76  # attributes of a device
ORDINAL = 9  # attribute of an address
NON_BLOCKING, NO_TIMING = 1, 2  # flags of streams, events
EXTRA_END, EXTRA_POINTER, EXTRA_SIZE = 0, 1, 2  # words of a launch's list
DEVICE, READ_WRITE = 1, 3  # CUmemLocationType, CUmemAccess_flags
THIS_THREAD = 1  # a capture forbids to this thread alone what would disturb it
LOG_BYTES = 8192
NEWEST = 100  # the architecture that later GPUs get PTX for, which they take; LLVM knows not all
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # options of a module's load
_WORD = (c_void_p,)

#: the arguments of each call; all give a status
CALLS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": _WORD,
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (c_void_p, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxSetCurrent": _WORD,
    "cuCtxGetDevice": _WORD,
    "cuMemGetInfo_v2": (c_void_p, c_void_p),
    "cuMemAllocAsync": (c_void_p, c_size_t, c_void_p),
    "cuMemFreeAsync": (c_uint64, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuMemcpyAsync": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuDeviceCanAccessPeer": (c_void_p, c_int, c_int),
    "cuDeviceGetDefaultMemPool": (c_void_p, c_int),
    "cuMemPoolSetAccess": (c_void_p, c_void_p, c_size_t),
    "cuMemcpyPeerAsync": (c_uint64, c_void_p, c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamDestroy_v2": _WORD,
    "cuStreamSynchronize": _WORD,
    "cuStreamQuery": _WORD,
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventDestroy_v2": _WORD,
    "cuEventRecord": (c_void_p, c_void_p),
    "cuModuleLoadDataEx": (c_void_p, c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (c_void_p, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": _WORD,
    "cuGraphDestroy": _WORD,
    "cuGetErrorName": (c_int, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
}


@once
def _opened() -> ctypes.CDLL | str:
    """The library, initialised; or why there is none."""
    found = None
    for name in NAMES:
        try:
            found = ctypes.CDLL(name)
            break
        except OSError:
            continue
    if found is None:
        return f"{NAMES[0]}, NVIDIA's driver, is not installed"
    for name, arguments in CALLS.items():
        function = getattr(found, name, None)
        if function is None:
            return f"the driver is too old: it has no {name}"
        function.argtypes, function.restype = arguments, c_int
    status = found.cuInit(0)
    return f"cuInit gave {_said(found, status)}" if status else found


def load() -> Library | None:
    """The driver of this machine, or None."""
    found = _opened()
    return None if isinstance(found, str) else Library(found)


def why() -> str:
    """Why there is no driver."""
    found = _opened()
    return found if isinstance(found, str) else "the driver shows no GPU"


def _said(library: ctypes.CDLL, status: int) -> str:
    """An error by its name and the driver's words."""
    words = []
    for ask in (library.cuGetErrorName, library.cuGetErrorString):
        text = c_char_p()
        ask(status, byref(text))
        words.append(text.value.decode() if text.value else f"error {status}")
    return f"{words[0]} ({words[1]})"


class Library:
    """The real driver; see `Driver`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._contexts: dict[int, int] = {}

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status == OUT_OF_MEMORY:
            raise MemoryError(name)
        if status:
            raise DeviceError(f"{name}: {_said(self._library, status)}")

    def _given(self, name: str, kind: Any, *arguments: Any) -> int:
        """What a call writes where its first argument says."""
        value = kind()
        self._call(name, byref(value), *arguments)
        return int(value.value or 0)

    def count(self) -> int:
        return self._given("cuDeviceGetCount", c_int)

    def properties(self, ordinal: int) -> Properties:
        device = self._given("cuDeviceGet", c_int, ordinal)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), device)
        processors, major, minor = (
            self._given("cuDeviceGetAttribute", c_int, which, device)
            for which in (PROCESSORS, MAJOR, MINOR)
        )
        memory = self._given("cuDeviceTotalMem_v2", c_size_t, device)
        return Properties(name.value.decode(), f"sm_{major}{minor}", processors, memory)

    def context(self, ordinal: int) -> int:
        device = self._given("cuDeviceGet", c_int, ordinal)
        made = self._contexts[ordinal] = self._given("cuDevicePrimaryCtxRetain", c_void_p, device)
        return made

    def enter(self, context: int) -> None:
        self._call("cuCtxSetCurrent", context)

    def memory(self) -> tuple[int, int]:
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, nbytes: int, stream: int) -> int:
        return self._given("cuMemAllocAsync", c_uint64, nbytes, stream)

    def free(self, address: int, stream: int) -> None:
        self._call("cuMemFreeAsync", address, stream)

    def owner(self, address: int) -> int:
        return self._given("cuPointerGetAttribute", c_int, ORDINAL, address)

    def copy(self, dest: int, source: int, nbytes: int, stream: int) -> None:
        self._call("cuMemcpyAsync", dest, source, nbytes, stream)

    def reach(self, ordinal: int, other: int) -> bool:
        """See `Driver`: the pool says who reaches its memory; access between contexts does not."""
        mine, theirs = (self._given("cuDeviceGet", c_int, n) for n in (ordinal, other))
        if not self._given("cuDeviceCanAccessPeer", c_int, mine, theirs):
            return False
        memory = self._given("cuDeviceGetDefaultMemPool", c_void_p, theirs)
        access = (c_int * 3)(DEVICE, mine, READ_WRITE)  # CUmemAccessDesc
        self._call("cuMemPoolSetAccess", memory, access, 1)
        return True

    def copy_peer(
        self, ends: tuple[int, int], gpus: tuple[int, int], nbytes: int, stream: int
    ) -> None:
        into, out_of = (self._contexts[ordinal] for ordinal in gpus)
        self._call("cuMemcpyPeerAsync", ends[0], into, ends[1], out_of, nbytes, stream)

    def fill(self, dest: int, byte: int, nbytes: int, stream: int) -> None:
        self._call("cuMemsetD8Async", dest, byte, nbytes, stream)

    def create_stream(self) -> int:
        return self._given("cuStreamCreate", c_void_p, NON_BLOCKING)

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy_v2", stream)

    def wait_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", stream)

    def is_idle(self, stream: int) -> bool:
        status = self._library.cuStreamQuery(stream)
        if status in (0, NOT_READY):
            return not status
        raise DeviceError(f"cuStreamQuery: {_said(self._library, status)}")

    def create_event(self) -> int:
        return self._given("cuEventCreate", c_void_p, NO_TIMING)

    def destroy_event(self, event: int) -> None:
        self._call("cuEventDestroy_v2", event)

    def record(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        self._call("cuStreamWaitEvent", stream, event, 0)

    def load(self, image: Image) -> int:
        device = self._given("cuCtxGetDevice", c_int)
        major, minor = (
            self._given("cuDeviceGetAttribute", c_int, which, device) for which in (MAJOR, MINOR)
        )
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        text = image.ptx(f"sm_{min(10 * major + minor, NEWEST)}").encode()
        try:
            return self._given("cuModuleLoadDataEx", c_void_p, text, 2, options, values)
        except DeviceError as error:
            raise DeviceError(f"{error}: {log.value.decode(errors='replace')}") from None

    def function(self, module: int, name: str) -> int:
        return self._given("cuModuleGetFunction", c_void_p, module, name.encode())

    def launch(
        self, function: int, shape: tuple[int, int, int], words: Sequence[int], stream: int
    ) -> None:
        blocks, x, y = shape
        block = (c_uint64 * max(1, len(words)))(*[w & 0xFFFF_FFFF_FFFF_FFFF for w in words])
        size = c_size_t(8 * len(words))
        extra = (c_void_p * 5)(
            EXTRA_POINTER, ctypes.addressof(block), EXTRA_SIZE, ctypes.addressof(size), EXTRA_END
        )
        self._call("cuLaunchKernel", function, blocks, 1, 1, x, y, 1, 0, stream, None, extra)

    def begin_capture(self, stream: int) -> None:
        self._call("cuStreamBeginCapture_v2", stream, THIS_THREAD)

    def end_capture(self, stream: int) -> int:
        recorded = c_void_p()
        self._call("cuStreamEndCapture", stream, byref(recorded))
        graph = recorded.value
        try:
            return self._given("cuGraphInstantiateWithFlags", c_void_p, graph, 0)
        finally:
            self._call("cuGraphDestroy", graph)

    def abandon_capture(self, stream: int) -> None:
        graph = c_void_p()  # none where the capture has failed, which the status tells once more
        self._library.cuStreamEndCapture(stream, byref(graph))
        if graph.value:
            self._call("cuGraphDestroy", graph.value)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._call("cuGraphLaunch", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        self._call("cuGraphExecDestroy", graph)

    def blas(self) -> Blas | None:
        return cublas.load()

    def dnn(self) -> Dnn | None:
        return cudnn.load()

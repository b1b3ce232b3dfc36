"""cuDNN simulated: convolutions and poolings by NumPy, in the order of the simulated streams.

What the real one refuses is refused with its status: descriptors that do not fit each other,
algorithms that it does not have for them, float64 with channels last, workspaces that are too
small, odd addresses. What it
does not see, and must not happen, is an error here: a handle without a stream of its own, handles
and descriptors that are destroyed, a result or workspace that overlaps another operand, memory that
is not there, or touched by another stream without order, the workspace too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gnomon import dtype as dtypes
from gnomon.base import DeviceError
from gnomon.dtype import DType
from gnomon.expr.call import conv, pool
from gnomon.expr.node import Buffer
from gnomon.expr.window import places, span
from gnomon.ground.record import record
from gnomon.runtime.devices.cuda.dnn import Algorithm, Convolve, Factors, Mean, Pair, Sizes, strides
from gnomon.runtime.devices.cuda.simulated_memory import Space, Work
from gnomon.shape import prod

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated import Simulated

Array: TypeAlias = "np.ndarray[Any, Any]"
CONVOLVE, POOL = "cudnnConvolution", "cudnnPooling"
BAD, UNSUPPORTED = "CUDNN_STATUS_BAD_PARAM", "CUDNN_STATUS_NOT_SUPPORTED"
SMALL, ODD = f"{BAD}_SIZE_INSUFFICIENT", f"{BAD}_MISALIGNED_POINTER"
ALIGNED = 16  # bytes: what the address of a workspace is a multiple of
WINOGRAD = 6  # of the forward algorithms; the gradients' numbers 0 add in no order
ORDERED = {"forward": {WINOGRAD: True, 1: True}, "data": {0: False, 1: True}}
ORDERED["weight"] = ORDERED["data"]


@record(frozen=False, eq=False)
class _Handle:
    context: int
    stream: int | None


@record(eq=False)
class _Described:
    what: Convolve | Mean


class _Operand(NamedTuple):
    """An array without gaps: its name for complaints, where it lies."""

    name: str
    shape: Sizes
    address: int
    dtype: DType

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.size

    def overlaps(self, address: int, nbytes: int) -> bool:
        """Whether it has bytes in common with some others."""
        return self.address < address + nbytes and address < self.address + self.nbytes


class SimulatedDnn:
    """The simulated library; see `Dnn`."""

    def __init__(self, driver: Simulated) -> None:
        self.driver = driver

    # -- handles and descriptors ----------------------------------------------------------------

    def _get(self, call: str, kind: type, number: int) -> Any:
        try:
            return self.driver.get(call, kind, number)
        except DeviceError as error:
            raise DeviceError(f"{call}: {BAD}: {number!r} ({error})") from None

    def _handle(self, call: str, handle: int) -> _Handle:
        found: _Handle = self._get(call, _Handle, handle)
        if found.context != self.driver.here(call):
            raise DeviceError(f"{call}: {BAD}: handle {handle} is of another context")
        return found

    def create(self) -> int:
        with self.driver.lock:
            return self.driver.add(_Handle(self.driver.here("cudnnCreate"), None))

    def destroy(self, handle: int) -> None:
        with self.driver.lock:
            self._handle("cudnnDestroy", handle)
            self.driver.remove(handle)

    def set_stream(self, handle: int, stream: int) -> None:
        with self.driver.lock:
            found = self._handle("cudnnSetStream", handle)
            self.driver.uncaptured("cudnnSetStream", stream)
            found.stream = stream

    def describe(self, what: Convolve | Mean) -> int:
        with self.driver.lock:
            if len({len(s) for s in what.shapes}) > 1 or not 4 <= len(what.data) <= 5:
                raise DeviceError(f"cudnnSetTensorNdDescriptor: {BAD}: {what}")
            axes = (what.stride, what.pad, *([what.kernel] if isinstance(what, Mean) else []))
            if {len(a) for a in axes} != {len(what.data) - 2}:
                raise DeviceError(f"cudnnSetNdDescriptor: {BAD}: {what}")
            if min(map(min, what.shapes)) < 1:
                raise DeviceError(f"cudnnSetTensorNdDescriptor: {BAD}: {what}: an empty axis")
            return self.driver.add(_Described(what))

    def forget(self, described: int) -> None:
        with self.driver.lock:
            self._get("cudnnDestroyDescriptor", _Described, described)
            self.driver.remove(described)

    def _what(self, call: str, described: int, kind: type) -> Any:
        what = self._get(call, _Described, described).what
        if not isinstance(what, kind):
            raise DeviceError(f"{call}: {BAD}: descriptors of {what}")
        return what

    # -- algorithms -----------------------------------------------------------------------------

    def algorithms(self, handle: int, described: int) -> list[Algorithm]:
        with self.driver.lock:
            self._handle("cudnnGetConvolutionAlgorithm", handle)
            what = self._what("cudnnGetConvolutionAlgorithm", described, Convolve)
            _check(what)
            known = ORDERED[what.part] if _has(what) else {}
            return [Algorithm(*pair) for pair in known.items()]

    def workspace(self, handle: int, described: int, algorithm: int) -> int | None:
        with self.driver.lock:
            self._handle("cudnnGetConvolutionWorkspaceSize", handle)
            what = self._what("cudnnGetConvolutionWorkspaceSize", described, Convolve)
            return _needed(what, algorithm)

    # -- work -----------------------------------------------------------------------------------

    def convolve(
        self,
        handle: int,
        described: int,
        algorithm: int,
        factors: Factors,
        operands: tuple[int, int, int],
        workspace: Pair,
    ) -> None:
        with self.driver.lock:
            what = self._what(CONVOLVE, described, Convolve)
            _check(what)
            needed = _needed(what, algorithm)
            if needed is None:
                raise DeviceError(f"{CONVOLVE}: {UNSUPPORTED}: algorithm {algorithm} for {what}")
            address, nbytes = workspace
            if nbytes < needed:
                raise DeviceError(
                    f"{CONVOLVE}: {SMALL}: a workspace of {nbytes} bytes for {what}, expected at "
                    f"least {needed}"
                )
            if nbytes and address % ALIGNED:
                raise DeviceError(f"{CONVOLVE}: {ODD}: a workspace at {address:#x}")
            asked = _Asked(CONVOLVE, what, operands, factors, workspace, _convolved)
            self._give(handle, asked)

    def pool(self, handle: int, described: int, factors: Factors, operands: Pair) -> None:
        with self.driver.lock:
            what = self._what(POOL, described, Mean)
            _check_mean(what)
            if not _has(what):
                raise DeviceError(f"{POOL}: {UNSUPPORTED}: {what}")
            self._give(handle, _Asked(POOL, what, operands, factors, (0, 0), _pooled))

    def _give(self, handle: int, asked: _Asked) -> None:
        """Have a handle's stream do what is asked."""
        found = self._handle(asked.call, handle)
        if found.stream is None:
            raise DeviceError(
                f"{asked.call}: handle {handle} has no stream of its own: no order with other work"
            )
        queue = self.driver.stream_of(asked.call, found.stream)
        for each in asked.arrays:
            if each.address % each.dtype.size:
                raise DeviceError(
                    f"{asked.call}: {ODD}: {each.name} at {each.address:#x} for {asked.what}"
                )
        space = self.driver.spaces[found.context - 1]
        self.driver.give(queue, asked.call, lambda work: asked.run(space, work))


class _Asked:
    """What is asked: the result becomes factors[0] * value + factors[1] * result."""

    def __init__(
        self,
        call: str,
        what: Convolve | Mean,
        operands: Sequence[int],
        factors: Factors,
        workspace: Pair,
        value: Callable[[Any, list[Array]], Array],
    ) -> None:
        self.call, self.what, self.factors, self.workspace = call, what, factors, workspace
        self.value = value
        names = (*("first", "second")[: len(operands) - 1], "result")
        self.arrays = [
            _Operand(name, shape, address, what.dtype)
            for name, shape, address in zip(names, what.shapes, operands, strict=True)
        ]

    def run(self, space: Space, work: Work) -> None:
        """Compute it on the memory of a GPU."""
        self._check_apart()
        address, nbytes = self.workspace
        if nbytes:
            space.touched(address, nbytes, True, work)
        dtype = self.what.dtype
        views = [
            as_strided(
                space.bytes_at(x.address, x.nbytes, x.name == "result", work).view(dtype.numpy),
                x.shape,
                [dtype.size * step for step in strides(self.what, x.shape)],
            )
            for x in self.arrays
        ]
        with np.errstate(all="ignore"):  # as a GPU, which warns of nothing
            self._store(views)

    def _store(self, views: list[Array]) -> None:
        """Compute the last of the arrays from those before it."""
        dtype, result, (alpha, beta) = self.what.dtype, views[-1], self.factors
        wide = np.dtype(np.float64 if dtype.size == 8 else np.float32)
        value = wide.type(alpha) * self.value(self.what, [v.astype(wide) for v in views[:-1]])
        if beta:
            value = value + wide.type(beta) * result.astype(wide)
        result[...] = value.astype(dtype.numpy)

    def _check_apart(self) -> None:
        *operands, result = self.arrays
        others = [(result.name, result.address, result.nbytes), ("workspace", *self.workspace)]
        for name, address, nbytes in others:
            for each in operands if name == "result" else self.arrays:
                if each.overlaps(address, nbytes):
                    raise DeviceError(
                        f"{self.call}: the {name} overlaps the {each.name} operand of {self.what}: "
                        "what it reads is not defined"
                    )


def _check(what: Convolve) -> None:
    """Refuse descriptors that do not fit each other."""
    reach = span(what.weight[2:], what.dilate)
    sizes = places(what.data[2:], reach, what.stride, what.pad)
    want = (what.data[0], what.weight[0], *sizes)
    channels = what.weight[1] * what.groups
    if want != what.out or channels != what.data[1] or what.weight[0] % what.groups:
        raise DeviceError(f"{CONVOLVE}: {BAD}_SHAPE_MISMATCH: {what}: expected output {want}")


def _check_mean(what: Mean) -> None:
    """Refuse descriptors that do not fit each other."""
    want = (*what.data[:2], *places(what.data[2:], what.kernel, what.stride, what.pad))
    if want != what.out:
        raise DeviceError(f"{POOL}: {BAD}_SHAPE_MISMATCH: {what}: expected output {want}")


def _has(what: Convolve | Mean) -> bool:
    """Whether there is one for such operands: with channels last not of float64."""
    return not (what.last and what.dtype is dtypes.float64)


def _needed(what: Convolve, algorithm: int) -> int | None:
    """The bytes of workspace that an algorithm takes; None where it does not do it."""
    if algorithm not in ORDERED[what.part] or not _has(what):
        return None
    if not algorithm:
        return 0
    plain = max(what.stride + what.dilate) == 1 and what.groups == 1 and not what.last
    if (
        what.part == "forward"
        and algorithm == WINOGRAD
        and not (plain and what.weight[2:] == (3, 3) and what.dtype is dtypes.float32)
    ):
        return None
    return 8 * prod(what.weight)


def _convolved(what: Convolve, given: list[Array]) -> Array:
    data, weight, out = (
        Buffer(shape, dtypes.of(given[0].dtype)) for shape in (what.data, what.weight, what.out)
    )
    how = conv.Geometry(what.stride, what.pad, what.dilate, what.groups)
    if what.part == "forward":
        return conv.Convolution(data, weight, how).reference(*given)
    if what.part == "data":
        return conv.ConvolutionData(out, weight, how, what.data[2:]).reference(*given[::-1])
    return conv.ConvolutionWeight(data, out, how, what.weight[2:]).reference(*given)


def _pooled(what: Mean, given: list[Array]) -> Array:
    data, out = (Buffer(shape, dtypes.of(given[0].dtype)) for shape in (what.data, what.out))
    window = pool.Window(what.kernel, what.stride, what.pad)
    if what.backward:
        return pool.AvgPoolGradient(out, window, what.counted, what.data[2:]).reference(*given)
    return pool.AvgPool(data, window, what.counted).reference(*given)

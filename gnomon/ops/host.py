"""HostOp: an operator that needs values to know what to do, on NumPy arrays.

    @op("_contrib_sorted_rows")
    class SortedRows(HostOp):
        \"\"\"The elements of each row in order.\"\"\"

        def compute(self, data: Array) -> Array:
            return np.sort(data, axis=-1)

        def gradient(self, grad: Array, data: Array) -> Array:
            back = np.argsort(np.argsort(data, axis=-1), axis=-1)
            return np.take_along_axis(grad, back, axis=-1)

It runs on a worker of the engine, or on the calling thread where there are few elements, between
the native programs of a bound graph. Arrays come as NumPy sees them, of any strides and not to be
written, half floats as float32; what comes back is converted to what inference said, and stored as
each request says.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.functions.primitive import convert
from gnomon.ops import given
from gnomon.ops.asking import parameters
from gnomon.ops.derive import Needs
from gnomon.ops.infer import Shape
from gnomon.ops.op import Op
from gnomon.ops.requests import check_requests, kAddTo, kNullOp, kWriteInplace, kWriteTo
from gnomon.resource import ResourceRequest
from gnomon.runtime.devices.pool import allocate
from gnomon.shape import prod

Array = np.ndarray[Any, Any]

#: elements of which NumPy is done before a worker would have begun
BRIEF = 1 << 13


class HostOp(Op):
    """What such operators share; a subclass says `compute`, and `gradient` where it has one.

    Without `gradient`, to follow the tape through the operator is an error; one that gives None
    says that the gradients are 0.
    """

    brief = BRIEF

    @property
    def is_random(self) -> bool:
        return "random" in parameters(type(self).compute)

    def compute(self, *inputs: Any, **context: Any) -> Any:
        """The output as an array, or a tuple of all outputs; arguments first, then states.

        Keyword-only parameters ask for context: `train`; `random`, a `numpy.random.Generator`
        that `mx.random.seed` determines; and `room`, an array for each output that may be filled
        and given back, which saves a copy.
        """
        raise NotImplementedError(f"{self.name}: says nothing of compute")

    def results(self, inputs: Sequence[Array], context: Mapping[str, Any]) -> tuple[Array, ...]:
        """What `compute` gives, as arrays: one for each output, or ShapeError."""
        with np.errstate(all="ignore"):
            found = self.compute(*map(_seen, inputs), **context)
        values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        names = self.outputs()
        if len(values) != len(names):
            expected = f"{len(names)} arrays: {', '.join(names)}"
            raise ShapeError(complaint(f"{self.name}.compute", "result", expected, len(values)))
        return tuple(map(np.asarray, values))

    def resources(self, in_shapes: Sequence[Shape], backward: bool = False) -> list[Any]:
        return [ResourceRequest("kRandom")] if self.is_random and not backward else []

    def context(self, ctx: Any) -> dict[str, Any]:
        """What `compute` may ask for by name."""
        found: dict[str, Any] = {"train": ctx.is_train}
        if self.is_random:
            found["random"] = generator(ctx.requested[0].get_random())
        return found

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        arrays = [blob.tensor.numpy() for blob in (*in_data, *aux)]
        self.run_on(ctx, arrays, req, [blob.tensor.numpy() for blob in out_data])

    def run_on(self, ctx: Any, arrays: Sequence[Array], req: Any, dests: Sequence[Array]) -> None:
        """`run` on memory as NumPy sees it: arguments, then states, and where the outputs go."""
        check_requests(self.name, req, dests)
        context = self.context(ctx)
        if "room" in parameters(type(self).compute):
            context["room"] = [_room(memory, request, arrays)
                               for memory, request in zip(dests, req, strict=True)]  # fmt: skip
        values = self.results(arrays, context)
        self.store(f"{self.name}.compute", self.outputs(), values, req, dests)

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        blobs = (out_grad, (*in_data, *aux), out_data, in_grad)
        *parts, dests = [[None if b is None else b.tensor.numpy() for b in each] for each in blobs]
        self.run_backward_on(ctx, parts, req, dests)

    def run_backward_on(
        self, ctx: Any, parts: Sequence[Sequence[Any]], req: Any, dests: Sequence[Any]
    ) -> None:
        """`run_backward` on memory as NumPy sees it; `parts` are what `given.GROUPS` names."""
        check_requests(self.name, req, dests)
        found: tuple[Any, ...] = (None,) * len(dests)
        if self.gradient is not None:
            seen: Any = [[None if x is None else _seen(x) for x in part] for part in parts]
            with np.errstate(all="ignore"):
                found = given.gradients(self, seen, {"train": ctx.is_train})
        self.store(f"{self.name}.gradient", self.arguments(), found, req, dests)

    def store(self, where: str, names: Sequence[str], values: Any, req: Any, dests: Any) -> None:
        """Store each value in memory as its request says; None is 0, or no destination.

        Raises:
            ShapeError: a value is not of the shape of its destination; nothing has been written.
        """
        for name, value, memory in zip(names, values, dests, strict=True):
            if memory is not None and value is not None and np.shape(value) != memory.shape:
                expected = f"shape {memory.shape}, as shapes() says"
                raise ShapeError(complaint(where, name, expected, f"shape {np.shape(value)}"))
        for value, request, memory in zip(values, req, dests, strict=True):
            if memory is not None and value is not memory:
                store(memory, request, np.zeros((), np.float32) if value is None else value)

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        return Needs((), (), ()) if self.gradient is None else given.needs(self)


def refuses_gradients(op: Any) -> bool:
    """Whether an operator says nothing of its gradient, neither one nor that there is none."""
    if not isinstance(op, HostOp) or type(op).run_backward is not HostOp.run_backward:
        return False
    return op.gradient is None


def check_differentiable(op: Any) -> None:
    """Raises GnomonError where a gradient is asked for of an operator that says nothing of it."""
    if refuses_gradients(op):
        raise GnomonError(
            f"{op.name}: is not differentiable, it has no gradient: differentiate what does not "
            "depend on it, or stop gradients behind it by BlockGrad"
        )


def store(memory: Array, request: Any, values: Any) -> None:
    """Store values into memory as a request says; a smaller one is repeated."""
    if request == kNullOp:
        return
    if isinstance(values, np.ndarray) and _is_same(values, memory):
        return
    if request == kAddTo:
        memory += convert(values, memory.dtype)
    else:
        np.copyto(memory, convert(values, memory.dtype))


def _room(memory: Array, request: Any, inputs: Sequence[Array]) -> Array:
    """Where an output goes that is to be written; other memory where inputs lie there."""
    taken = any(np.may_share_memory(memory, x) for x in inputs)
    free = request in (kWriteTo, kWriteInplace) and not taken and memory.flags.c_contiguous
    return memory if free and not _is_half(memory) else pooled(memory.shape, _seen(memory).dtype)


def _is_same(values: Array, memory: Array) -> bool:
    """Whether both are the same elements in memory."""
    if not np.may_share_memory(values, memory):  # which is quick to say
        return False
    own, other = values.__array_interface__, memory.__array_interface__
    return all(own[k] == other[k] for k in ("data", "shape", "strides", "typestr"))


def pooled(shape: Sequence[int], dtype: Any) -> Array:
    """An array with any contents, in memory that was used before: new pages take their time."""
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    return allocate(nbytes).view(np.dtype(dtype), tuple(shape))


def generator(draws: Any) -> np.random.Generator:
    """NumPy's generator of the next numbers of a device's."""
    seed, position = draws.reserve(1)
    return counted((seed, 0), (0, position, 0, 0))


def counted(key: tuple[int, int], counter: tuple[int, int, int, int]) -> np.random.Generator:
    """NumPy's generator of the numbers that follow from a key and a place alone.

    >>> one, other = (counted((5, 0), (0, 0, 1, 0)) for _ in range(2))
    >>> one.random() == other.random()
    True
    """
    made: Any = _key_class()(*key)  # NumPy's annotations know none but its own
    return np.random.Generator(np.random.Philox(made, counter=counter))


@functools.cache
def _key_class() -> type[Any]:
    """`_Key` as NumPy takes it, whose random numbers are not imported before (11 ms)."""
    np.random.bit_generator.ISeedSequence.register(_Key)
    return _Key


class _Key:
    """A key as Philox takes it in a third of the time: given `key`, it seeds itself first."""

    def __init__(self, *words: int) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Array:
        """The two words of Philox's key."""
        return np.array([word % (1 << 64) for word in self.words], np.uint64)


def _is_half(array: Array) -> bool:
    return array.dtype.itemsize == 2 and array.dtype.kind not in "iu"


def _seen(array: Array) -> Array:
    """An array as `compute` gets it: not to be written, half floats as float32."""
    if _is_half(array):
        array = array.astype(np.float32)
    view = array.view()
    view.flags.writeable = False
    return view

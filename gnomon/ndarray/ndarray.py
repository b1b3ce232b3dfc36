"""NDArray: an n-dimensional array on a device, computed asynchronously.

Every operator returns at once; a read of the elements in Python (`asnumpy`, `asscalar`, printing,
conversion) waits for them, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from gnomon import dtype as dtypes
from gnomon import engine
from gnomon.base import GnomonError, ParamError, complaint
from gnomon.context import cpu, present
from gnomon.ground.record import put
from gnomon.ndarray.api import dlpack, functions, serialize
from gnomon.ndarray.api.arithmetic import Arithmetic, combine, is_number
from gnomon.ndarray.api.indexing import Indexing
from gnomon.ndarray.api.methods import Methods, copied
from gnomon.ndarray.backward import backward
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array, kept_zeros
from gnomon.ndarray.core.codes import (  # noqa: F401  MXNet's has them here
    _DTYPE_MX_TO_NP,
    _DTYPE_NP_TO_MX,
    _GRAD_REQ_MAP,
    _STORAGE_TYPE_DEFAULT,
    _STORAGE_TYPE_ID_TO_STR,
    _STORAGE_TYPE_STR_TO_ID,
)
from gnomon.ndarray.core.elsewhere import check_together
from gnomon.ndarray.core.layout import dense
from gnomon.ndarray.core.tape import Leaf, changes, placed


class NDArray(Arithmetic, Indexing, Methods, Array, main=True):
    """An array of one dtype on a device; made by `nd.array`, `nd.zeros` and their like.

    >>> from gnomon import nd
    >>> x = nd.array([[1, 2], [3, 4]])
    >>> print((x * 2).sum(axis=0))
    <BLANKLINE>
    [ 8. 12.]
    <NDArray 2 @cpu(0)>
    """

    __slots__ = ()

    shown_as: ClassVar[str] = "NDArray"  # where the elements are printed
    _own: ClassVar = ("_chunk", "_offset", "_layout", "_tape", "_pending_in")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        begins = len(args) == 1 and args[0] is None  # as pickles of MXNet do, which go on below
        if not begins or kwargs:
            raise TypeError("NDArray: use nd.array, nd.zeros, nd.ones, nd.full or nd.empty")
        self._become(kept_zeros((1, 1), dtypes.of("float32"), cpu(), self.stype))

    def __setstate__(self, state: Any) -> None:
        """The state of a pickle that MXNet wrote: the bytes of a record."""
        self._become(self._restore(bytes(state["handle"]), "cpu(0)"))

    def _become(self, other: Array) -> None:
        """Take over all that another new array is, once it has its memory."""
        for name in self._own:
            put(self, name, getattr(other, name))

    @staticmethod
    def _restore(data: bytes, context: str) -> Any:
        """The array of a pickle."""
        return restore(data, context)

    # --- as Python sees it ----------------------------------------------------------------------

    def __repr__(self) -> str:
        sizes = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()!s}\n<{self.shown_as} {sizes} @{self.context}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        if self.size == 0:
            return False
        if self.size == 1:
            return bool(self.asscalar())
        raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def _number(self, where: str) -> Any:
        """The only element; TypeError, as Python asks of conversions, where there are others."""
        if self.size != 1:
            got = f"shape {self.shape}"
            raise TypeError(complaint(where, "x", "an NDArray of one element", got))
        return self.asscalar()

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (serialize.dumps_array(self.asnumpy()), str(self.context))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    # --- as NumPy and others see it -------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The elements for NumPy, copied; a copy that must not be made is refused."""
        if copy is False:
            raise ValueError("NDArray.__array__: the elements of an NDArray are always copied")
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's functions on arrays: ours where there is one, else NumPy's on copies."""
        name = _UFUNCS.get(ufunc.__name__)
        # NumPy's comparisons make an array of a number on the left
        inputs = tuple([x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs])
        plain = method == "__call__" and not kwargs and len(inputs) == 2
        ours = all(isinstance(x, (Array, np.ndarray)) or is_number(x) for x in inputs)
        if name is not None and plain and ours:
            return combine(name, *inputs)
        if any(isinstance(x, Array) for x in kwargs.get("out", ())):
            return NotImplemented
        values = [x.asnumpy() if isinstance(x, Array) else x for x in inputs]
        return getattr(ufunc, method)(*values, **kwargs)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The memory for another library, without a copy, once all writes to it are done."""
        return dlpack.export(self, **kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device as DLPack numbers it."""
        return dlpack.device(self)

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule to read from, once all writes are done."""
        return dlpack.export(self)

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule to write to, once all reads and writes are done."""
        engine.get().wait_for_var(self._var, write=True)
        return dlpack.export(self)

    def as_nd_ndarray(self) -> Any:
        """This array."""
        return self

    # --- gradients ------------------------------------------------------------------------------

    @property
    def grad(self) -> Any:
        """Where the gradient goes; None without `attach_grad`."""
        place = self._tape
        return place.grad if isinstance(place, Leaf) else None

    @property
    def _fresh_grad(self) -> bool:
        """Whether a trainer takes the gradient for a new one; False without `attach_grad`.

        Raises:
            GnomonError: it is set, and the array has no gradient.
        """
        place = self._tape
        return isinstance(place, Leaf) and place.is_fresh

    @_fresh_grad.setter
    def _fresh_grad(self, value: bool) -> None:
        place = self._tape
        if not isinstance(place, Leaf):
            raise GnomonError("NDArray._fresh_grad: the array has no gradient: attach_grad first")
        place.is_fresh = bool(value)

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Have `backward` compute a gradient for this array, from now on a variable.

        `stype` is the storage of the gradient, by default that of the array.

        Raises:
            ParamError: `grad_req` is none of 'write', 'add', 'null', or there is no such storage.
        """
        stype = self.stype if stype is None else stype
        if stype == "default":
            grad = Array._new(dense(self.shape, self._dtype), self.context)
            grad[:] = 0
        else:
            grad = storage_types.made(stype, self.shape, self._dtype, self.context)
        mark(self, grad, grad_req)

    def detach(self) -> Any:
        """The same memory, off the tape: no gradient flows through it."""
        return self._detached()

    def backward(
        self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Compute the gradients of all variables that this array depends on.

        Raises:
            GnomonError: the array is not on the tape.
        """
        backward([self], [out_grad], retain_graph, train_mode)


def mark(array: Any, grad: Any, req: str) -> None:
    """Make an array a variable whose gradient goes to `grad`.

    Raises:
        ParamError: `req` is none of 'write', 'add', 'null', or shapes or dtypes differ.
        DeviceError: `grad` is on another device.
    """
    if req not in ("write", "add", "null"):
        raise ParamError(complaint("attach_grad", "grad_req", "write, add or null", repr(req)))
    if (grad.shape, grad._dtype) != (array.shape, array._dtype):
        expected = f"shape {array.shape} of {array._dtype.name}"
        got = f"shape {grad.shape} of {grad._dtype.name}"
        raise ParamError(complaint("mark_variables", "gradients", expected, got))
    check_together("mark_variables", "gradients", grad, array.context, "the variable")
    if placed(array) is not None:
        changes.count += 1
    put(array, "_tape", None if req == "null" else Leaf(grad, req))


def restore(data: bytes, context: str) -> Any:
    """The array of a pickle; on the processor where its device is missing."""
    values, _ = serialize.read_array(data)
    ctx = functions.context_of(context)
    assert ctx is not None
    return copied(Array._around(np.array(values, order="C"), present(ctx)))


_UFUNCS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "remainder": "mod",
    "power": "power",
    "maximum": "maximum",
    "minimum": "minimum",
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "less": "lesser",
    "less_equal": "lesser_equal",
}

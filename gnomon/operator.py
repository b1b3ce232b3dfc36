"""Operators written in Python by users: CustomOp, and the older NumpyOp and NDArrayOp.

    property (names, shapes, dtypes) --register--> op_type --Custom--> nd function and symbol

A `CustomOpProp` says what the operator is, the `CustomOp` that it creates does the work on NDArrays
that look at the system's memory. It runs on a worker of the engine, or between the kernels of a
program; what it computes with NDArrays is waited for before the next function reads it.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gnomon import autograd
from gnomon import dtype as dtypes
from gnomon.base import (
    GnomonError,
    ParamError,
    complaint,
    ctypes2numpy_shared,  # noqa: F401  MXNet's has it
    shown,
)
from gnomon.context import current_context
from gnomon.ndarray import NDArray
from gnomon.ndarray.lazy.on_data import over
from gnomon.ops import registry
from gnomon.ops.custom import kinds
from gnomon.ops.property import OpContext, Operator, OperatorProperty
from gnomon.ops.requests import OpReqType
from gnomon.profiler.control import PROFILER
from gnomon.symbol import Custom, Symbol

P = TypeVar("P", bound="type[CustomOpProp]")

_REQUESTS = {
    OpReqType.kNullOp: "null",
    OpReqType.kWriteTo: "write",
    OpReqType.kWriteInplace: "inplace",
    OpReqType.kAddTo: "add",
}


class CustomOp:
    """What does the work of an operator written in Python, for one node on one device."""

    def forward(
        self,
        is_train: bool,
        req: Sequence[str],
        in_data: Sequence[NDArray],
        out_data: Sequence[NDArray],
        aux: Sequence[NDArray],
    ) -> None:
        """Hook: compute `out_data`, and store it by `assign` as `req` says."""
        raise GnomonError(f"{type(self).__name__}: says nothing of forward")

    def backward(
        self,
        req: Sequence[str],
        out_grad: Sequence[NDArray],
        in_data: Sequence[NDArray],
        out_data: Sequence[NDArray],
        in_grad: Sequence[NDArray],
        aux: Sequence[NDArray],
    ) -> None:
        """Hook: compute `in_grad`; what was not declared as a dependency is None."""
        raise GnomonError(f"{type(self).__name__}: has no gradient (it says nothing of backward)")

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Store `src` into `dst` as the request 'null', 'write', 'inplace' or 'add' says.

        Raises:
            ParamError: `req` is none of these.
        """
        if req in ("write", "inplace"):
            dst[...] = src
        elif req == "add":
            dst[...] += src
        elif req != "null":
            expected = "one of null, write, inplace, add"
            raise ParamError(complaint(f"{type(self).__name__}.assign", "req", expected, req))


class CustomOpProp:
    """What an operator written in Python is: its names, shapes and dtypes.

    Parameters of the operator arrive in the constructor as keyword arguments, as strings. With
    `need_top_grad=False` it is a loss: its gradient does not ask for that of the output.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of inputs, outputs and states; `[]` is one that is not known.

        By default everything has the shape of the first input.
        """
        states = [in_shape[0]] * len(self.list_auxiliary_states())
        return in_shape, [in_shape[0]] * len(self.list_outputs()), states

    def infer_type(self, in_type: list[Any]) -> Any:
        """NumPy's types of inputs, outputs and states; by default that of the first input."""
        first = in_type[0]
        counts = (self.list_arguments(), self.list_outputs(), self.list_auxiliary_states())
        return tuple([first] * len(names) for names in counts)

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states."""
        return []

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Those of the given numbers that `backward` reads."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def infer_storage_type(self, in_stype: list[str]) -> Any:
        """Storages of inputs, outputs and states: 'default', since all come as dense arrays.

        Raises:
            ParamError: an input is in another one.
        """
        self._refuse_sparse("infer_storage_type", "in_stype", in_stype)
        parts = (in_stype, self.list_outputs(), self.list_auxiliary_states())
        return tuple(["default"] * len(part) for part in parts)

    def infer_storage_type_backward(
        self,
        ograd_stype: list[str],
        in_stype: list[str],
        out_stype: list[str],
        igrad_stype: list[str],
        aux_stype: list[str],
    ) -> Any:
        """The same of the gradient: five lists of 'default', in the order of the arguments.

        Raises:
            ParamError: a gradient is in another storage.
        """
        where = "infer_storage_type_backward"
        self._refuse_sparse(where, "ograd_stype", ograd_stype)
        self._refuse_sparse(where, "igrad_stype", igrad_stype)
        parts = (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype)
        return tuple(["default"] * len(part) for part in parts)

    def _refuse_sparse(self, method: str, argument: str, stypes: Sequence[str]) -> None:
        """ParamError where one of these is neither dense nor still open."""
        for k, stype in enumerate(stypes):
            if stype not in ("default", "undefined"):
                where = f"{type(self).__name__}.{method}"
                raise ParamError(complaint(where, f"{argument}[{k}]", "'default'", repr(stype)))

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[int]) -> CustomOp:
        """The object that does the work, for shapes and numbers of dtypes of inputs and states."""
        return CustomOp()


def register(reg_name: str) -> Callable[[P], P]:
    """Register the `CustomOpProp` below as the operator `op_type=reg_name` of `Custom`.

    A name may be registered anew; what was made before keeps its class.

    >>> import gnomon as mx
    >>> class Square(CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * in_data[0])
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])
    >>> @register("docs_square")
    ... class SquareProp(CustomOpProp):
    ...     def create_operator(self, ctx, in_shapes, in_dtypes):
    ...         return Square()
    >>> mx.nd.Custom(mx.nd.array([1, 2, 3]), op_type="docs_square").asnumpy()
    array([1., 4., 9.], dtype=float32)

    Raises:
        TypeError: the name is no text, or the class below no CustomOpProp.
    """
    if not isinstance(reg_name, str):
        raise TypeError(complaint("register", "reg_name", "a string", repr(reg_name)))

    def declare(prop_type: P) -> P:
        if not (isinstance(prop_type, type) and issubclass(prop_type, CustomOpProp)):
            got = shown(prop_type)
            raise TypeError(complaint("register", reg_name, "a subclass of CustomOpProp", got))
        kinds.register(reg_name, lambda: _Meaning(prop_type, reg_name), replace=True)
        return prop_type

    return declare


class _Meaning(OperatorProperty):
    """A `CustomOpProp` as the rest of the system sees it."""

    def __init__(self, prop_type: Callable[..., CustomOpProp], name: str) -> None:
        self.prop_type, self.name = prop_type, name

    def init(self, kwargs: Mapping[str, Any]) -> None:
        self.prop = self.prop_type(**kwargs)
        self.list_arguments = self.prop.list_arguments
        self.list_outputs = self.prop.list_outputs
        self.list_auxiliary_states = self.prop.list_auxiliary_states

    @property
    def where(self) -> str:
        """What messages call it."""
        return type(self.prop).__name__

    def infer_shape(self, in_shape: list[Any]) -> tuple[list[Any], list[Any], list[Any]] | bool:
        sizes = [[] if s is None else list(s) for s in in_shape]
        unknown = any(s is None or 0 in s or -1 in s for s in in_shape)
        if unknown and in_shape and in_shape[0] is None:
            return False
        try:
            found = self.prop.infer_shape(sizes)
        except (IndexError, TypeError):
            if unknown:  # the rule counts on what is not known yet
                return False
            raise
        ins, outs, states = self._three("infer_shape", found)
        shapes = [[tuple(map(int, s)) for s in part] for part in (ins, outs, states)]
        shapes[0] = [s or old for s, old in zip(shapes[0], in_shape, strict=False)]
        return shapes[0], shapes[1], shapes[2]

    def infer_type(self, in_type: list[Any]) -> tuple[list[Any], list[Any], list[Any]] | bool:
        if in_type and in_type[0] is None:
            return False
        given = [None if t is None else t.numpy.type for t in in_type]
        parts = self._three("infer_type", self.prop.infer_type(given))
        types = [[None if t is None else dtypes.of(t) for t in part] for part in parts]
        return types[0], types[1], types[2]

    def _three(self, method: str, found: Any) -> tuple[Any, Any, Any]:
        """What a rule gave: inputs, outputs and, if it says so, states."""
        if not isinstance(found, (tuple, list)) or len(found) not in (2, 3):
            expected = "inputs, outputs and (if there are any) states"
            got = shown(found)
            raise ParamError(complaint(f"{self.where}.{method}", "return value", expected, got))
        return found[0], found[1], found[2] if len(found) == 3 else []

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        return list(self.prop.declare_backward_dependency(out_grad, in_data, out_data))

    def create_operator(self, ctx: Any) -> Operator:
        return _Worker(self.prop, current_context() if ctx is None else ctx.ctx, self.name)


class _Worker(Operator):
    """A `CustomOp` as the rest of the system sees it; made when the shapes are known."""

    def __init__(self, prop: CustomOpProp, ctx: Any, name: str) -> None:
        self.prop, self.ctx, self.name = prop, ctx, name
        self.made: CustomOp | None = None

    def forward(self, ctx: OpContext, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        ins, outs, states = map(self._arrays, (in_data, out_data, aux))
        op = self._op([*ins, *states])
        with PROFILER.within(self.name), autograd.pause(train_mode=ctx.is_train):
            op.forward(
                is_train=ctx.is_train, req=_words(req), in_data=ins, out_data=outs, aux=states
            )
            _settle(outs, states)
        _check_unwritten(f"{type(op).__name__}.forward", in_data=ins)

    def backward(
        self,
        ctx: OpContext,
        out_grad: Any,
        in_data: Any,
        out_data: Any,
        req: Any,
        in_grad: Any,
        aux: Any,
    ) -> None:
        parts = (out_grad, in_data, out_data, in_grad, aux)
        grads, ins, outs, made, states = map(self._arrays, parts)
        op = self._op([*ins, *states])
        with PROFILER.within(f"_backward_{self.name}"), autograd.pause(train_mode=ctx.is_train):
            op.backward(
                req=_words(req),
                out_grad=grads,
                in_data=ins,
                out_data=outs,
                in_grad=made,
                aux=states,
            )
            _settle(made, states)
        where = f"{type(op).__name__}.backward"
        _check_unwritten(where, out_grad=grads, in_data=ins, out_data=outs)

    def _op(self, given: Sequence[Any]) -> CustomOp:
        if self.made is None:
            shapes, flags = [list(x.shape) for x in given], [x._dtype.flag for x in given]
            made = self.prop.create_operator(self.ctx, shapes, flags)
            if not hasattr(made, "forward"):
                where = f"{type(self.prop).__name__}.create_operator"
                raise TypeError(complaint(where, "return value", "a CustomOp", shown(made)))
            self.made = made
        return self.made

    def _arrays(self, blobs: Sequence[Any]) -> list[Any]:
        """NDArrays on the memory of these TBlobs; None stays None."""
        return [None if b is None else over(b.tensor, self.ctx) for b in blobs]


def _words(req: Sequence[Any]) -> list[str]:
    return [_REQUESTS[r] for r in req]


def _settle(*parts: Sequence[Any]) -> None:
    """Wait until what was written into these arrays is there; raise what failed."""
    for x in [x for part in parts for x in part if x is not None]:
        x.wait_to_read()


def _check_unwritten(where: str, **parts: Sequence[Any]) -> None:
    """Refuse an operator that wrote what it may only read: no code would wait for that.

    Each array here has a variable of its own, which counts what was written by this name.
    """
    for argument, arrays in parts.items():
        for k, x in enumerate(arrays):
            if x is None:
                continue
            x.wait_to_read()
            if x._chunk.version:
                expected = "an array that is only read"
                raise GnomonError(complaint(where, f"{argument}[{k}]", expected, "it was written"))


# --- the older interfaces ---------------------------------------------------------------------

_numbers = itertools.count()


class PythonOp(CustomOpProp):
    """Base of NumpyOp and NDArrayOp: property and operator in one object, called to be composed."""

    def __init__(self, need_top_grad: bool = True) -> None:
        warnings.warn(
            f"{type(self).__name__}: this interface is old, use CustomOp",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(need_top_grad)
        self._op_type = f"{type(self).__name__}{next(_numbers)}"
        kinds.register(self._op_type, lambda: _Meaning(lambda: self, self._op_type), replace=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Symbol:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Symbol:
        """A symbol that applies this object to symbols, by position or by name."""
        composed: Symbol = Custom(*args, op_type=self._op_type, **kwargs)
        return composed

    def need_top_grad(self) -> bool:
        """Whether the gradient asks for that of the output."""
        return self.need_top_grad_

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of inputs and outputs; by default that of the first input."""
        return in_shape, [in_shape[0]]

    def declare_backward_dependency(
        self, out_grad: Sequence[int], in_data: Sequence[int], out_data: Sequence[int]
    ) -> list[int]:
        """Those of the given numbers that `backward` reads."""
        return [*(out_grad if self.need_top_grad() else ()), *in_data, *out_data]

    def forward(self, in_data: Sequence[Any], out_data: Sequence[Any]) -> None:
        """Hook: write the outputs; by default the first input."""
        out_data[0][:] = in_data[0]

    def backward(
        self,
        out_grad: Sequence[Any],
        in_data: Sequence[Any],
        out_data: Sequence[Any],
        in_grad: Sequence[Any],
    ) -> None:
        """Hook: write the gradients; by default 1."""
        in_grad[0][:] = 1.0

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[int]) -> CustomOp:
        """What runs the two hooks."""
        return _Hooks(self)

    def _seen(self, arrays: Sequence[Any], written: bool = False) -> list[Any]:
        """The arrays as the two hooks are given them: to be written, or only read."""
        return list(arrays)


class NDArrayOp(PythonOp):
    """An operator whose hooks compute with NDArrays."""


class NumpyOp(PythonOp):
    """An operator whose hooks compute with NumPy arrays that look at the system's memory."""

    def _seen(self, arrays: Sequence[Any], written: bool = False) -> list[Any]:
        views = [None if x is None else x._buffer().numpy() for x in arrays]
        for view in views:
            if view is not None and not written:
                view.flags.writeable = False
        return views


class _Hooks(CustomOp):
    """The hooks of a `PythonOp` as an operator of the newer interface."""

    def __init__(self, source: PythonOp) -> None:
        self.source = source

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.source.forward(self.source._seen(in_data), self.source._seen(out_data, True))

    def backward(
        self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any
    ) -> None:
        seen = self.source._seen
        self.source.backward(seen(out_grad), seen(in_data), seen(out_data), seen(in_grad, True))


# --- looking the vocabulary up ----------------------------------------------------------------


class OperatorArguments(NamedTuple):
    """The arguments of an operator: how many, their names, and what each may be."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """The names of all operators, aliases included."""
    return registry.names()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """The inputs and parameters of the operator called `op_name`.

    >>> get_operator_arguments("Activation").names
    ['data', 'act_type']

    Raises:
        UnknownNameError: no operator is called so.
    """
    cls = registry.find(op_name)
    array = "NDArray-or-Symbol[]" if cls.variadic else "NDArray-or-Symbol"
    names = [*cls.input_names, *cls.fields]
    types = [array] * len(cls.input_names) + [f.declared() for f in cls.fields.values()]
    return OperatorArguments(len(names), names, types)

"""`Parameter`: an array of a network that is trained, on one device or on several.

States. *Fresh*: no arrays. *Deferred*: `initialize` was called while the shape was not known;
`_deferred_init` keeps what it was told, and the first forward pass, which knows the shape, makes
the arrays. *Initialized*: one array for each context, and one for its gradient unless `grad_req` is
'null'. Arrays stay the same ones until the parameter is cast, moved, initialized by force or given
another `grad_req`; `changes` counts these events of all parameters, so that compiled networks know
when to look again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import autograd, initializer
from gnomon import symbol as sym
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint
from gnomon.context import Context, contexts, cpu, current_context
from gnomon.dtype import wanted as wanted_dtype
from gnomon.gluon.parameter.given import Deferred, Loadable, check_initializers
from gnomon.gluon.parameter.shapes import Shape, as_shape, merged, shape_is_known
from gnomon.ground.arguments import CheckedArguments
from gnomon.ndarray.core.array import kept_zeros
from gnomon.ndarray.core.tape import changes
from gnomon.ops.infer import zero_is_unknown

REQUESTS = ("write", "add", "null")
STORAGE = ("default", "row_sparse", "csr")


class DeferredInitializationError(GnomonError):
    """A parameter was asked for its array before the first forward pass gave it a shape."""


class Parameter(CheckedArguments):
    """An array of a network that is trained.

    >>> import gnomon as mx
    >>> w = Parameter("w", shape=(2, 3))
    >>> w.initialize(init="ones", ctx=mx.cpu())
    >>> w.data().asnumpy().tolist(), w.grad().shape
    ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], (2, 3))

    Args:
        name: its name, by which files and optimizers know it.
        grad_req: 'write' (each backward pass stores its gradient), 'add' or 'null'.
        shape: its shape; 0 is a dimension that the first input decides.
        dtype: the type of its elements.
        lr_mult, wd_mult: factors on its learning rate and weight decay.
        init: its initializer; None leaves that to `initialize`.
        allow_deferred_init: whether `initialize` may come before the shape is known.
        differentiable: whether it can have a gradient.
        stype, grad_stype: storage of the array and of its gradient.
    """

    tells_changes = True  # of its factors, by `changes`: optimizers need not look each time
    #: MXNet's tables by context, which libraries read: [GPUs, CPUs], by number, places in `_data`
    _ctx_list: list[Context] | None = None
    _ctx_map: list[list[int | None]] | None = None

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: Any = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        self.name = name
        self._var: Any = None
        self._data: list[Any] | None = None
        self._grad: list[Any] | None = None
        self._deferred_init: Deferred | None = None
        self._trainer: Any = None  # the one that updates it, if it needs to know of it
        self._shape = as_shape(shape)
        self._dtype = dtype
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req = "null"
        self._lr_mult, self._wd_mult = lr_mult, wd_mult
        check_initializers(f"Parameter {name!r}", init)
        self.init = init
        self._stype = self._one_of("stype", STORAGE, stype)
        self._grad_stype = self._one_of("grad_stype", STORAGE, grad_stype)
        self.grad_req = grad_req

    @property
    def lr_mult(self) -> float:
        """The factor on its learning rate."""
        return self._lr_mult

    @lr_mult.setter
    def lr_mult(self, value: float) -> None:
        self._lr_mult = value
        changes.count += 1

    @property
    def wd_mult(self) -> float:
        """The factor on its weight decay."""
        return self._wd_mult

    @wd_mult.setter
    def wd_mult(self, value: float) -> None:
        self._wd_mult = value
        changes.count += 1

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def _one_of(self, argument: str, known: Sequence[str], value: Any) -> Any:
        """`value`; ParamError where it is none of `known`."""
        if value not in known:
            expected = f"one of {', '.join(map(repr, known))}"
            raise ParamError(complaint(f"Parameter {self.name!r}", argument, expected, repr(value)))
        return value

    # --- what it is -----------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """How a backward pass stores the gradient: 'write', 'add' or 'null' (there is none)."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        self._one_of("grad_req", REQUESTS, req)
        req = req if self._differentiable else "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        if self._data is not None:
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> Shape | None:
        """The shape; 0 (-1 in `mx.util.np_shape`) is an unknown dimension, None an unknown rank."""
        if self._shape is None or zero_is_unknown():
            return self._shape
        return tuple(n or -1 for n in self._shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        new = as_shape(shape)
        found = new if self._shape is None else merged(self._shape, new)
        if found is None or (self._shape is not None and new != found):
            expected = f"one that goes with {self._shape}"
            raise ShapeError(complaint(f"Parameter {self.name!r}", "shape", expected, new))
        self._shape = found

    @property
    def stype(self) -> str:
        """How the array is stored."""
        return str(self._stype)

    def var(self) -> Any:
        """The symbol that stands for the parameter in a network; always the same one."""
        if self._var is None:
            kinds = {"shape": self.shape, "dtype": self.dtype, "stype": self._stype}
            self._var = sym.var(
                self.name, lr_mult=self.lr_mult, wd_mult=self.wd_mult, init=self.init, **kinds
            )
        return self._var

    # --- making its arrays ----------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Any = None,
        default_init: Any = "uniform",
        force_reinit: bool = False,
    ) -> None:
        """Make the arrays, on `ctx` (one context or several), and fill them.

        `init` says how, or else the parameter's own initializer, or else `default_init`.

        Raises:
            ShapeError: the shape is not known, and the parameter may not wait for it.
            TypeError: `init` is no initializer, or `ctx` no context.
        """
        if self._data is not None and not force_reinit:
            text = f"Parameter {self.name!r} is initialized already: force_reinit=True does it anew"
            warnings.warn(text, stacklevel=2)
            return
        check_initializers("initialize", init, default_init)
        init = (default_init if self.init is None else self.init) if init is None else init
        deferred = Deferred(init, contexts("initialize", "ctx", ctx), default_init)
        self._data = self._grad = None
        if not shape_is_known(self._shape) and not self._allow_deferred_init:
            expected = "all dimensions known, or allow_deferred_init=True"
            raise ShapeError(complaint(f"Parameter {self.name!r}", "shape", expected, self._shape))
        self._deferred_init = deferred
        if shape_is_known(self._shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Make the arrays that were deferred, now that the shape is known."""
        if self._deferred_init is None:
            return
        init, ctx, default_init, data = self._deferred_init
        if not shape_is_known(self._shape):
            expected = "all dimensions known from the first input, or given to the layer"
            raise ShapeError(complaint(f"Parameter {self.name!r}", "shape", expected, self._shape))
        try:
            with autograd.pause():
                if data is None:
                    data = kept_zeros(self._shape, wanted_dtype(self._dtype), cpu(), self._stype)
                    described = initializer.InitDesc(self.name, {"__init__": init})
                    initializer.create(default_init)(described, data)
                self._init_impl(data, ctx)
        except BaseException:  # also an interrupt: the next pass begins anew
            self._data = self._grad = None
            raise
        self._deferred_init = None

    def _init_impl(self, data: Any, ctx: list[Context]) -> None:
        """Have arrays with the elements of `data` on these contexts."""
        name = wanted_dtype(self._dtype).name
        data = data if data._dtype.name == name else data.astype(name)
        if self._stype != data.stype:
            data = data.tostype(self._stype)
        self._data = [data.copyto(each) for each in ctx]
        self._ctx_list, self._ctx_map = list(ctx), [[], []]
        for place, each in enumerate(ctx):
            row = self._ctx_map[each.device_typeid & 1]
            row += [None] * (each.device_id + 1 - len(row))
            row[each.device_id] = place
        self._init_grad()

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():  # MXNet's pickles have factors that are properties here
            setattr(self, name, value)
        changes.count += 1
        self._deferred_init = Deferred(*self._deferred_init) if self._deferred_init else None
        if self._data is not None and self._grad is not None:  # copies of arrays are no variables
            autograd.mark_variables(self._data, self._grad, self._grad_req)

    def _init_grad(self) -> None:
        """Have gradients for the arrays, or none; nothing is on the tape then."""
        arrays, self._grad = self._data or [], None
        try:
            if self._grad_req == "null":
                self._data = [x._detached() for x in arrays]
                return
            dtype = wanted_dtype(self._dtype)
            self._grad = [kept_zeros(x.shape, dtype, x.context, self._grad_stype) for x in arrays]
            autograd.mark_variables(arrays, self._grad, self._grad_req)
        finally:  # who looked amid it, as a signal's handler, has to look again
            changes.count += 1

    def set_data(self, data: Any) -> None:
        """Give the arrays, on all contexts, these elements.

        Raises:
            ShapeError: another shape.
            GnomonError: the parameter is not initialized.
        """
        self.shape = data.shape
        if self._data is None:
            if self._deferred_init is None:
                raise self._missing()
            self._deferred_init = self._deferred_init._replace(data=data)
            return
        if self._trainer is not None:
            self._trainer._forget_stored(self)
        with autograd.pause():
            for array in self._data:
                array[:] = data

    def reset_ctx(self, ctx: Any) -> None:
        """Move to other contexts.

        Raises:
            ParamError: the parameter is not initialized; a ValueError, which programs pass over.
        """
        where = contexts("initialize", "ctx", ctx)
        if self._data is not None:
            with autograd.pause():
                self._init_impl(self._reduce(), where)
        elif self._deferred_init is not None:
            self._deferred_init = self._deferred_init._replace(ctx=where)
        else:
            raise ParamError(str(self._missing()))

    def cast(self, dtype: Any) -> None:
        """Have elements of another type."""
        same = wanted_dtype(dtype) is wanted_dtype(self._dtype)
        self._dtype, self._var = dtype, self._var if same else None
        if self._data is not None and not same:
            with autograd.pause():
                self._data = [x.astype(wanted_dtype(dtype).name) for x in self._data]
                self._init_grad()

    # --- its arrays -----------------------------------------------------------------------------

    def data(self, ctx: Context | None = None) -> Any:
        """The array on `ctx`, by default the only context, or else the current one.

        Raises:
            DeferredInitializationError: the first forward pass has not been yet.
            GnomonError: not initialized, not on this context, or in row-sparse storage.
        """
        if self._stype != "default":
            raise self._only_rows("data")
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[Any]:
        """The arrays on all contexts, in the order of `initialize`.

        Raises:
            DeferredInitializationError, GnomonError: as `data`.
        """
        if self._stype != "default":
            raise self._only_rows("list_data")
        return list(self._all(self._data))

    def grad(self, ctx: Context | None = None) -> Any:
        """The gradient of the array on `ctx`.

        Raises:
            DeferredInitializationError, GnomonError: as `data`; `grad_req` is 'null'.
        """
        self._check_gradient()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[Any]:
        """The gradients on all contexts.

        Raises:
            DeferredInitializationError, GnomonError: as `grad`.
        """
        self._check_gradient()
        return list(self._all(self._grad))

    def list_ctx(self) -> list[Context]:
        """The contexts it is, or will be, initialized on.

        Raises:
            GnomonError: not initialized.
        """
        if self._data is not None:
            return [x.context for x in self._data]
        if self._deferred_init is None:
            raise self._missing()
        return self._deferred_init.ctx

    def zero_grad(self) -> None:
        """Set the gradients to 0, on all contexts."""
        for grad in self._grad or ():
            grad[:] = 0

    def row_sparse_data(self, row_id: Any) -> Any:
        """The array with these rows brought up to date, on the context of `row_id`.

        Raises:
            GnomonError: other storage, or no `Trainer` that has the rows.
        """
        arrays = [self._check_and_get(self._data, row_id.context)]
        return self._rows("row_sparse_data", arrays, row_id)[0]

    def list_row_sparse_data(self, row_id: Any) -> list[Any]:
        """The arrays on all contexts, with these rows brought up to date.

        Raises:
            GnomonError: as `row_sparse_data`.
        """
        return self._rows("list_row_sparse_data", self._all(self._data), row_id)

    def _rows(self, method: str, arrays: list[Any], row_id: Any) -> list[Any]:
        if self._stype != "row_sparse":
            expected = f"row_sparse storage, use {method.replace('row_sparse_', '')}()"
            where = f"Parameter {self.name!r}.{method}"
            raise GnomonError(complaint(where, "self", expected, self._stype))
        if self._trainer is None:
            raise GnomonError(
                f"Parameter {self.name!r}.{method}: rows come from a Trainer's store: make a "
                "Trainer with this parameter first"
            )
        with autograd.pause():
            self._trainer._row_sparse_pull(self, arrays, row_id)
        return arrays

    def _check_gradient(self) -> None:
        if self._data is not None and self._grad is None:
            raise GnomonError(f"Parameter {self.name!r} has no gradient: its grad_req is 'null'")

    def _only_rows(self, method: str) -> GnomonError:
        where = f"Parameter {self.name!r}.{method}"
        expected = f"default storage, use {method.replace('data', 'row_sparse_data')}(row_id)"
        return GnomonError(complaint(where, "self", expected, self._stype))

    def _all(self, arrays: list[Any] | None) -> list[Any]:
        """All of `arrays`, which there are once the parameter is initialized."""
        if arrays is None:
            raise self._missing()
        return arrays

    def _check_and_get(self, arrays: list[Any] | None, ctx: Any) -> Any:
        """That of `arrays` which is on `ctx`; all of them where `ctx` is the type list."""
        found = self._all(arrays) if arrays is None else arrays
        if len(found) == 1 and (ctx is None or found[0].context is ctx):
            return found[0]
        if ctx is list:
            return found
        wanted = ctx or current_context()
        for array in found:
            if array.context == wanted:
                return array
        got = ", ".join(str(x.context) for x in found)
        raise GnomonError(
            f"Parameter {self.name!r} is not initialized on {wanted}, only on {got}: initialize or "
            "reset_ctx it there, or move the input"
        )

    def _missing(self) -> GnomonError:
        """The error of a parameter without arrays."""
        if self._deferred_init is not None:
            return DeferredInitializationError(
                f"Parameter {self.name!r} has no array yet: its shape {self._shape} is decided by "
                "the first forward pass; pass a batch through the network, or give the layer the "
                "size of its input (in_units, in_channels...)"
            )
        return GnomonError(
            f"Parameter {self.name!r} has not been initialized: call initialize() on the block, or "
            "on collect_params(), which has the parameters of blocks inside too"
        )

    def _reduce(self) -> Any:
        """The mean of the arrays of all contexts, on the processor."""
        arrays = self._all(self._data)
        if self._stype != "default":
            return arrays[0].copyto(cpu()) if self._trainer is None else self._trainer._whole(self)
        total = arrays[0].copyto(cpu())
        for other in arrays[1:]:
            total += other.as_in_context(cpu())
        return total / len(arrays) if len(arrays) > 1 else total

    def _loadable(
        self, data: Any, ctx: Any, cast_dtype: bool = False, dtype_source: str = "current"
    ) -> Loadable:
        """The array of a file as `_load` takes it; nothing is changed.

        Raises:
            ShapeError, DTypeError: the file's array is another one.
            ParamError: other contexts than it is initialized on.
        """
        where = f"loading Parameter {self.name!r}"
        self._one_of("dtype_source", ("current", "saved"), dtype_source)
        if self._shape is not None and merged(self._shape, data.shape) != data.shape:
            got = f"{data.shape} in the file"
            raise ShapeError(complaint(where, "shape", self._shape, got))
        if cast_dtype and dtype_source == "current":
            data = data.astype(wanted_dtype(self._dtype).name)
        elif not cast_dtype and data._dtype is not wanted_dtype(self._dtype):
            expected = f"{wanted_dtype(self._dtype).name}, or cast_dtype=True"
            raise DTypeError(complaint(where, "dtype", expected, data._dtype.name))
        known = (
            self.list_ctx() if self._data is not None or self._deferred_init is not None else None
        )
        wanted = known or [cpu()] if ctx is None else contexts("initialize", "ctx", ctx)
        if known is not None and set(wanted) != set(known):
            raise ParamError(complaint(where, "ctx", f"{known}, where it was initialized", wanted))
        return Loadable(data, wanted)

    def _load_init(
        self, data: Any, ctx: Any, cast_dtype: bool = False, dtype_source: str = "current"
    ) -> None:
        """Take the elements of an array, and be initialized; libraries that load files call it."""
        self._load(self._loadable(data, ctx, cast_dtype, dtype_source))

    def _load(self, found: Loadable) -> None:
        """Take the elements of a file, and be initialized."""
        if found.data._dtype is not wanted_dtype(self._dtype):
            self.cast(found.data.dtype)
        self.shape = found.data.shape
        self._deferred_init = None
        if self._data is not None:
            self.set_data(found.data)
        else:
            with autograd.pause():
                self._init_impl(found.data, found.ctx)

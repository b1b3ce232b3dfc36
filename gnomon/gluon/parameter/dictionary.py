"""`ParameterDict`: the parameters of a block by name, in order, with a prefix for new ones."""

from __future__ import annotations

import os
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import ndarray as nd
from gnomon.base import FormatError, ParamError, UnknownNameError, complaint, nearest, shown
from gnomon.context import Context
from gnomon.gluon.parameter.constant import Constant
from gnomon.gluon.parameter.parameter import Parameter
from gnomon.gluon.parameter.shapes import as_shape, merged


class ParameterDict:
    """Parameters by name; `get` finds one or makes it, its name after the dictionary's prefix.

    >>> params = ParameterDict("net_")
    >>> params.get("weight", shape=(2, 3))
    Parameter net_weight (shape=(2, 3), dtype=<class 'numpy.float32'>)
    >>> list(params.keys())
    ['net_weight']

    `shared` is a dictionary whose parameters are taken before new ones are made.
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    def __repr__(self) -> str:
        head = f"{self._prefix} " if self._prefix else ""
        rows = "".join(f"  {p!r}\n" for p in self.values())
        return f"{head}(\n{rows})"

    def __getitem__(self, key: str) -> Parameter:
        if key not in self._params:
            raise UnknownNameError(
                f"ParameterDict {self._prefix!r}: no parameter {key!r}{nearest(key, self._params)}"
            )
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """Names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """What the names of new parameters begin with."""
        return self._prefix

    # --- making ---------------------------------------------------------------------------------

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter `prefix + name`, found here or among the shared, or made of `kwargs`.

        Raises:
            ParamError: it exists, and is not what `kwargs` say.
        """
        name = self._prefix + name
        found = self._found(name)
        if found is None:
            found = self._params[name] = Parameter(name, **kwargs)
            return found
        for key, value in kwargs.items():
            _agree(found, key, value)
        return found

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """The constant `prefix + name`, found here or among the shared, or made of `value`.

        Raises:
            UnknownNameError: there is none, and no value for one.
            ParamError: it exists, and has another value; or is no constant.
        """
        name = self._prefix + name
        found = self._found(name)
        where = f"ParameterDict {self._prefix!r}.get_constant"
        if found is None:
            if value is None:
                raise UnknownNameError(complaint(where, "value", f"one for the new {name!r}", None))
            made = self._params[name] = Constant(name, value)
            return made
        if not isinstance(found, Constant):
            raise ParamError(complaint(where, "name", "that of a constant", repr(found)))
        if value is not None:
            new = value.asnumpy() if isinstance(value, nd.NDArray) else np.asarray(value)
            if not np.array_equal(new, found.value.asnumpy()):
                raise ParamError(complaint(where, "value", f"that of {name!r}", shown(new)))
        return found

    def _found(self, name: str) -> Parameter | None:
        """The parameter of this name, taken over from the shared where it is there."""
        if name not in self._params and self._shared is not None:
            shared = self._shared._found(name)
            if shared is not None:
                self._params[name] = shared
        return self._params.get(name)

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Take over the parameters of another dictionary.

        Raises:
            ParamError: one of the same name is another parameter.
        """
        for name, param in other.items():
            if self._params.get(name, param) is not param:
                expected = f"the same parameter {name!r} in both"
                raise ParamError(complaint("ParameterDict.update", "other", expected, "two"))
        self._params.update(other.items())

    # --- all at once ----------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = "uniform",
        ctx: Any = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all; `init` is for those without an initializer of their own."""
        if verbose and hasattr(init, "set_verbosity"):
            init.set_verbosity(verbose=verbose)
        for param in self.values():
            param.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set the gradients of all to 0."""
        for param in self.values():
            param.zero_grad()

    def reset_ctx(self, ctx: Any) -> None:
        """Move all to other contexts."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """The contexts on which any of them is."""
        return list(dict.fromkeys(c for param in self.values() for c in param.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all, such as `grad_req` or `lr_mult`."""
        for param in self.values():
            setattr(param, name, value)

    # --- files ----------------------------------------------------------------------------------

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write all to a file, without `strip_prefix` at the beginning of their names.

        Raises:
            ParamError: a name that begins otherwise; nothing is written.
            GnomonError: one is not initialized; nothing is written.
        """
        for name in self.keys():
            if not name.startswith(strip_prefix):
                expected = f"a beginning of every name, {name!r} too"
                where = "ParameterDict.save"
                raise ParamError(complaint(where, "strip_prefix", expected, repr(strip_prefix)))
        nd.save(filename, {n[len(strip_prefix) :]: p._reduce() for n, p in self.items()})

    def load(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read all from a file of `save`, of `save_parameters`, or of a checkpoint.

        `restore_prefix` is put before the names of the file. With `cast_dtype`, types may differ:
        those of the parameters count, or those of the file for `dtype_source='saved'`.

        Raises:
            ParamError: names that are missing or unknown, unless allowed; nothing is changed.
            ShapeError, DTypeError: an array that does not fit.
        """
        named = read_named(filename)
        how = allow_missing, ignore_extra, restore_prefix, filename, cast_dtype, dtype_source
        self.load_dict(named, ctx, *how)

    def load_dict(
        self,
        param_dict: Mapping[str, Any],
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """As `load`, of arrays by name; `filename` is for messages."""
        source = "param_dict" if filename is None else f"the file {filename}"
        for name in self.keys():
            if not name.startswith(restore_prefix):
                expected = f"a beginning of every name, {name!r} too"
                where = "ParameterDict.load"
                raise ParamError(complaint(where, "restore_prefix", expected, repr(restore_prefix)))
        own = {restore_prefix + without_kind(k): k for k in param_dict}
        named = {name: param_dict[k] for name, k in own.items()}
        check_names(self.keys(), own, allow_missing, ignore_extra, source)
        pairs = [(self[name], array) for name, array in named.items() if name in self]
        load_all(pairs, ctx, cast_dtype, dtype_source)


def _agree(param: Parameter, key: str, value: Any) -> None:
    """Let a parameter that exists be what a layer says it is."""
    known = getattr(param, key, None)
    if known is None:
        setattr(param, key, value)
        return
    if key == "shape":
        shape = as_shape(value)
        both = None if shape is None else merged(param.shape, shape)
        if shape is None or both is not None:
            param._shape = param.shape if both is None else both
            return
    elif key == "dtype" and value is not None:
        if dtypes.of(value) is dtypes.of(known):
            return
    elif value is None or value == known:
        return
    raise ParamError(
        complaint(f"Parameter {param.name!r}", key, f"{known}, as it was made", f"{value!r}")
    )


def without_kind(name: str) -> str:
    """The name of an array in a file, without what checkpoints put before it.

    >>> without_kind("arg:fc_weight"), without_kind("fc_weight")
    ('fc_weight', 'fc_weight')
    """
    return name[4:] if name.startswith(("arg:", "aux:")) else name


def read_named(filename: Any) -> dict[str, Any]:
    """The arrays of a file by name.

    Raises:
        FormatError: they have no names.
    """
    found = nd.load(os.fspath(filename))
    if isinstance(found, dict):
        return found
    if not found:
        return {}
    raise FormatError(f"{filename}: expected arrays with names, got {len(found)} without")


def check_names(
    wanted: Any, found: Mapping[str, str], allow_missing: bool, ignore_extra: bool, source: str
) -> None:
    """Raises ParamError where names are missing in a file, or unknown, unless that is allowed.

    `found` has the names as they are looked for, each with what the file calls it.
    """
    missing = [] if allow_missing else [n for n in wanted if n not in found]
    if missing:
        there = shortened(found.values())
        raise ParamError(
            f"loading parameters: {shortened(missing)} not in {source}, which has {there}; is the "
            "network's prefix another one? allow_missing=True lets them be"
        )
    extra = [] if ignore_extra else [own for n, own in found.items() if n not in wanted]
    if extra:
        raise ParamError(
            f"loading parameters: {source} has {shortened(extra)}, which the network has not: its "
            f"parameters are {shortened(wanted)}; ignore_extra=True passes them over"
        )


def load_all(
    pairs: Sequence[tuple[Parameter, Any]], ctx: Any, cast_dtype: bool, dtype_source: str
) -> None:
    """Have parameters take the arrays of a file, if all of them fit."""
    fitting = [(p, p._loadable(array, ctx, cast_dtype, dtype_source)) for p, array in pairs]
    for param, found in fitting:
        param._load(found)


def shortened(names: Any, most: int = 10) -> str:
    """Names for a message, some left out where there are many."""
    found = [repr(n) for n in names]
    if len(found) > most:
        found = [*found[: most // 2], "...", *found[-most // 2 :]]
    return ", ".join(found) or "none"

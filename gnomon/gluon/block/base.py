"""`Block`: a part of a network, with parameters and with parts of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from gnomon import ndarray as nd
from gnomon.base import GnomonError, ParamError, check_kind, complaint, shown
from gnomon.gluon.block import saved
from gnomon.gluon.block.failure import NotBegun, not_begun, tell, warn_of_containers
from gnomon.gluon.block.hooks import HookHandle, attached
from gnomon.gluon.block.naming import BlockScope
from gnomon.gluon.block.summary import _indent, summarize
from gnomon.gluon.parameter import Parameter, ParameterDict
from gnomon.gluon.parameter.dictionary import check_names, load_all, read_named, without_kind
from gnomon.ground.arguments import CheckedArguments
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.lazy.predicted import Predicted


class Block(CheckedArguments):
    """A part of a network: subclasses say `forward`, and may hold parameters and other blocks.

    >>> import gnomon as mx
    >>> class Twice(Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.dense = mx.gluon.nn.Dense(3, in_units=3)
    ...     def forward(self, x):
    ...         return self.dense(self.dense(x))
    >>> net = Twice(prefix="net_")
    >>> net.initialize()
    >>> net(mx.nd.ones((2, 3))).shape, list(net.collect_params())
    ((2, 3), ['net_dense0_weight', 'net_dense0_bias'])

    Args:
        prefix: what the names of its parameters begin with; by default its kind and a number.
        params: a dictionary of parameters that it shares.
    """

    _in_summary: ClassVar[bool] = True  # whether `summary` shows blocks of this kind
    _active = False  # whether it is compiled
    _is_brief = False  # whether its operators are too few for a program to pay

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        if not (prefix is None or isinstance(prefix, str)):
            where = type(self).__name__
            raise TypeError(complaint(where, "prefix", "a string or None", repr(prefix)))
        self._empty_prefix = prefix == ""  # then what is in its scope is named as if outside
        self._prefix, self._params = BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = BlockScope(self)
        self._children: dict[str, Block] = {}
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def _alias(self) -> str:
        """What automatic names begin with."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        blocks = (
            f"  ({k}): {_indent(repr(v), 2)}" for k, v in self.__dict__.items() if _is_block(v)
        )
        rows = "\n".join(blocks)
        return f"{type(self).__name__}(\n{rows}\n)"

    def __setattr__(self, name: str, value: Any) -> None:
        known = self.__dict__.get(name)
        kinds = Block, Parameter
        if isinstance(value, kinds) and "_children" not in self.__dict__:
            raise not_begun(self, name)
        for kind in kinds:
            if isinstance(known, kind) and not isinstance(value, kind):
                where = f"{type(self).__name__} {self.name!r}"
                got = type(value).__name__
                raise TypeError(complaint(where, name, f"another {kind.__name__}", got))
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if self._reg_params.get(name, value) is not value:
                where = f"{type(self).__name__} {self.name!r}"
                expected = "a name without a parameter: it would be overwritten"
                raise ParamError(complaint(where, name, expected, shown(known)))
            self._reg_params[name] = value
        super().__setattr__(name, value)

    # --- what it is -----------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """What the names of its parameters begin with."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the underscore at its end."""
        return self._name

    def name_scope(self) -> BlockScope:
        """A scope in which blocks and parameters are named after this block."""
        return self._scope

    @property
    def params(self) -> ParameterDict:
        """Its own parameters, without those of blocks inside."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """All parameters, those of blocks inside too; or those whose names match `select`.

        Raises:
            ParamError: `select` is no regular expression.
        """
        found = ParameterDict(self._params.prefix)
        try:
            match = None if select is None else re.compile(select).match
        except (re.error, TypeError) as error:
            where, got = f"{type(self).__name__}.collect_params", f"{shown(select)} ({error})"
            expected = "a regular expression"
            raise ParamError(complaint(where, "select", expected, got)) from None
        for block in self._blocks():
            warn_of_containers(block)
            own = block.params
            if match is not None:
                own = ParameterDict(own.prefix)
                own._params.update({n: p for n, p in block.params.items() if match(n)})
            found.update(own)
        return found

    def _blocks(self) -> Iterator[Block]:
        """This block and those inside, each before its own."""
        yield self
        for child in self._children.values():
            yield from child._blocks()

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by the attributes that lead to them, as files of parameters have them."""
        start = prefix + "." if prefix else ""
        found = {start + name: param for name, param in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(start + name))
        return found

    # --- building -------------------------------------------------------------------------------

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Enter a block inside, under `name`, or under its number; attributes do so themselves.

        Raises:
            TypeError: it is no block.
        """
        check_kind(type(self).__name__, name or "block", block, Block, "a Block")
        self._children[str(len(self._children)) if name is None else name] = block
        self._is_brief = False

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have `hook(block, inputs)` called before each `forward`; the handle takes it away."""
        return attached(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have `hook(block, inputs, outputs)` called after each `forward`."""
        return attached(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Have `callback(name, operator, array)` told of the operators of hybridized blocks inside.

        It is told of outputs, with `monitor_all` of inputs too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call `fn` with every block inside, then with this one; the block."""
        if not callable(fn):
            where, got = f"{type(self).__name__}.apply", shown(fn)
            raise TypeError(complaint(where, "fn", "a function of a block", got))
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(
        self,
        init: Any = "uniform",
        ctx: Any = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initialize all parameters; `init` is for those without an initializer of their own."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Compile the hybrid blocks inside, or, with `active=False`, no longer."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: Any) -> None:
        """Have parameters of another type."""
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    # --- computing ------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Hooks, `forward`, hooks."""
        if self._forward_pre_hooks:
            for hook in [*self._forward_pre_hooks.values()]:
                hook(self, args)
        try:
            if mode.recording or mode.predicting or self._is_brief or self._active:
                found = self.forward(*args)
            else:
                with Predicted() as scope:
                    found = self.forward(*args)
                if scope.is_brief:
                    self.__dict__["_is_brief"] = True
        except (GnomonError, NotImplementedError) as error:
            tell(error, self, args)
            raise
        if self._forward_hooks:
            for hook in [*self._forward_hooks.values()]:
                hook(self, args, found)
        return found

    def forward(self, *args: Any) -> Any:
        """Hook: the outputs, computed from the inputs."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} {self.name!r}: the class must define forward(self, ...)")

    def summary(self, *inputs: Any) -> None:
        """Print the blocks with output shapes and numbers of parameters, as run on `inputs`.

        Raises:
            GnomonError: the block is hybridized.
        """
        summarize(self, inputs)

    # --- files ----------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write all parameters to a file, by the attributes that lead to them.

        With `deduplicate`, a parameter that several blocks share is written once.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            once = {id(param): name for name, param in params.items()}
            params = {name: p for name, p in params.items() if once[id(p)] == name}
        nd.save(filename, {name: param._reduce() for name, param in params.items()})

    def load_parameters(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read all parameters from a file of `save_parameters`, `ParameterDict.save` or `export`.

        With `cast_dtype`, types may differ: those of the parameters count, or those of the file
        for `dtype_source='saved'`.

        Raises:
            ParamError: names that are missing or unknown, unless allowed; nothing is changed.
            ShapeError, DTypeError: an array that does not fit.
        """
        loaded, params = read_named(filename), self._collect_params_with_prefix()
        if any("." in name or name in params for name in loaded) or not loaded:
            source = f"the file {filename}"
            missing = [] if allow_missing else _missing(params, loaded)
            own = dict(zip(loaded, loaded, strict=True))
            check_names(missing, own, False, True, source)
            check_names(params, own, True, ignore_extra, source)
            pairs = [(params[name], array) for name, array in loaded.items() if name in params]
            load_all(pairs, ctx, cast_dtype, dtype_source)
            return
        every = self.collect_params()
        start = "" if any(without_kind(name) in every for name in loaded) else self.prefix
        how = ignore_extra, start, filename, cast_dtype, dtype_source
        every.load_dict(loaded, ctx, allow_missing, *how)

    def save_params(self, filename: str) -> None:
        """The older `save_parameters`: names with prefixes, without this block's own."""
        warnings.warn("save_params is old: use save_parameters", DeprecationWarning, stacklevel=2)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
    ) -> None:
        """The older name of `load_parameters`."""
        warnings.warn("load_params is old: use load_parameters", DeprecationWarning, stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write the structure to `prefix-model.json`, the parameters to `prefix-model.params`."""
        saved.save(self, prefix)

    def load(self, prefix: str) -> None:
        """Take over structure and parameters of the files of `save`, into a block of that kind.

        Raises:
            FormatError: the files are not such files, or the blocks are others.
        """
        saved.load(self, prefix)

    def _trace_record(self) -> dict[str, Any]:
        """What files of `save` keep of its trace: there is none."""
        return {}

    def _rename(self, name: str) -> None:
        """Have another name, and parameters named after it."""
        before, self._prefix, self._name = self._prefix, f"{name}_" if name else "", name
        for old, param in list(self._params.items()):
            if param.name == old and old.startswith(before):
                param.name, param._var = self._prefix + old[len(before) :], None
        self._params._params = {p.name: p for p in self._params.values()}


for _own in (
    "_children",
    "_forward_pre_hooks",
    "_name",
    "_params",
    "_prefix",
    "_reg_params",
    "_scope",
):
    setattr(Block, _own, NotBegun(_own))


def _is_block(value: Any) -> bool:
    return isinstance(value, Block)


def _missing(params: Mapping[str, Parameter], loaded: Mapping[str, Any]) -> list[str]:
    """The names of parameters of which a file has no array, under any of their names."""
    there = {id(param) for name, param in params.items() if name in loaded}
    return [name for name, param in params.items() if id(param) not in there]

"""`Symbol`: a network before it is given data, composed of operators and variables.

A symbol is a tuple of entries of a graph. Symbols share nodes; composing makes new nodes and leaves
old ones as they are. Only `_set_attr` changes a node, for every symbol that contains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.attribute import AttrScope
from gnomon.base import (
    NotImplementedForSymbol,
    ParamError,
    check_kind,
    complaint,
    nearest,
)
from gnomon.context import Context, current_context
from gnomon.executor.bind import Arrays, Shared, Wanted, bind, simple_bind
from gnomon.executor.executor import Executor
from gnomon.graph import json, show
from gnomon.graph.legacy import HIDDEN, hidden_key
from gnomon.graph.node import Entry, Graph, Node
from gnomon.graph.passes.strip_casts import without_casts
from gnomon.graph.storage import STORAGE
from gnomon.ground.files import path_of, read_json, replacing
from gnomon.ground.frames import entrance
from gnomon.ops import signature
from gnomon.symbol import compose, inference
from gnomon.symbol.apply import single
from gnomon.symbol.arithmetic import Arithmetic
from gnomon.symbol.methods import Methods


class Symbol(Arithmetic, Methods):
    """Outputs of a network that is not computed yet.

    >>> import gnomon as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=10, name="fc1")
    >>> net, net.list_arguments()
    (<Symbol fc1>, ['data', 'fc1_weight', 'fc1_bias'])
    >>> net.infer_shape(data=(2, 3))
    ([(2, 3), (10, 3), (10,)], [(2, 10)], [])
    """

    __slots__ = ("_graph",)

    def __init__(self, entries: Iterable[Entry] | None) -> None:
        self._graph = Graph(entries or ())  # None: `__setstate__` follows

    @property
    def _entries(self) -> tuple[Entry, ...]:
        return self._graph.outputs

    # names ----------------------------------------------------------------------------------

    @property
    def name(self) -> str | None:
        """The name; None for a group."""
        names = {e.node: e.node.name for e in self._entries}
        return next(iter(names.values())) if len(names) == 1 else None

    def __repr__(self) -> str:
        if self.name is None:
            return f"<Symbol group [{', '.join(e.node.name for e in self._entries)}]>"
        return f"<Symbol {self.name}>"

    def list_arguments(self) -> list[str]:
        """Names of the inputs that are not states, in the order of a search from the outputs."""
        return [n.name for n in self._graph.arguments]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states, such as the moving averages of BatchNorm."""
        return [n.name for n in self._graph.auxiliary]

    def list_inputs(self) -> list[str]:
        """Names of all inputs, arguments and states."""
        return [n.name for n in self._graph.variables]

    def list_outputs(self) -> list[str]:
        """Names of the outputs, such as `fc1_output`."""
        return [output_name(e) for e in self._entries]

    # parts ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Symbol]:
        return (Symbol([e]) for e in self._entries)

    def __getitem__(self, index: int | str | slice) -> Symbol:
        """The output of this number or name, or a group of a slice of them.

        Raises:
            IndexError: no output of this number.
            ParamError: no output of this name, or several.
            TypeError: neither a number, nor a name, nor a slice; a slice of nothing.
        """
        if isinstance(index, str):
            return Symbol([self._named(index)])
        if isinstance(index, slice):
            return Group(list(self)[index])
        if not isinstance(index, int):
            raise TypeError(complaint(f"{self!r}[]", "index", "int, str or slice", repr(index)))
        if not -len(self) <= index < len(self):
            raise IndexError(complaint(f"{self!r}[]", "index", f"below {len(self)}", index))
        return Symbol([self._entries[index]])

    def _named(self, name: str) -> Entry:
        names = self.list_outputs()
        if names.count(name) != 1:
            what = "no output" if name not in names else "several outputs"
            raise ParamError(f"{self!r}: {what} of the name {name!r}{nearest(name, names)}")
        return self._entries[names.index(name)]

    def get_internals(self) -> Symbol:
        """A group of every output of every node and variable in here."""
        return Symbol(e for n in self._graph.topo for e in n.visible())

    def get_children(self) -> Symbol | None:
        """A group of what the output nodes read; None for variables."""
        nodes = dict.fromkeys(e.node for e in self._entries)
        entries = [e for n in nodes for e in n.inputs]
        return Symbol(entries) if entries else None

    # composition ----------------------------------------------------------------------------

    def __call__(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> Symbol:
        """A copy in which other symbols stand for variables: `net2(data=net1)`.

        Raises:
            ParamError: symbols without names, a name that is no input, a symbol of many outputs.
            TypeError: something else than symbols, or some with names and some without.
        """
        for given in args:
            single(f"{self!r}()", "args", given)
        if args:
            what = f"{len(args)} symbols without names"
            kind = TypeError if kwargs else ParamError
            raise kind(complaint(f"{self!r}()", "args", "symbols by name", what))
        by = {k: single(f"{self!r}()", k, s) for k, s in kwargs.items()}
        graph = compose.replaced(self._graph, f"{self!r}()", by)
        if name and len({e.node for e in graph.outputs}) == 1:
            graph.outputs[0].node.name = name
        return Symbol(graph.outputs)

    def __copy__(self) -> Symbol:
        return self()

    def __deepcopy__(self, memo: object) -> Symbol:
        return self()

    # attributes -----------------------------------------------------------------------------

    def attr(self, key: str) -> str | None:
        """The attribute `key`, or the name by `name`; None of a group, and where there is none."""
        if self.name is None or key == "name":
            return self.name
        attrs = self._entries[0].node.attrs
        return attrs.get(key, attrs.get(hidden_key(key)))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """The attributes of this symbol's own node, of a group's first; not of what it reads."""
        if recursive:
            raise DeprecationWarning("list_attr(recursive=True) is gone, use attr_dict")
        return shown(self._entries[0].node)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """The attributes of every node in here that has some, by its name."""
        return {n.name: shown(n) for n in self._graph.topo if n.attrs}

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of this symbol's own node, for all symbols that contain it.

        Raises:
            ParamError: a group; an attribute that is no string, or not the operator's.
        """
        if self.name is None:
            raise ParamError(complaint("Symbol._set_attr", "self", "one node", repr(self)))
        new, node = compose.attributes(f"{self!r}", kwargs), self._entries[0].node
        attrs = {**node.attrs, **new}
        if node.op is not None:
            node.op = node.op.with_parameters(json.parameters(attrs))
        node.attrs.update(new)

    # inference ------------------------------------------------------------------------------

    @entrance
    def infer_shape(self, *args: Any, **kwargs: Any) -> inference.Shapes:
        """Shapes of arguments, outputs and states, from those of some arguments.

        Three lists; three None, and a warning, when something stays unknown.

        Raises:
            ShapeError: shapes contradict; it names the node, its inputs and their shapes.
            ParamError: an argument of another name.
        """
        return inference.shapes(self._graph, args, kwargs, partial=False)

    @entrance
    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> inference.Shapes:
        """As `infer_shape`, but what is known is given: () is unknown, 0 an unknown dimension."""
        return inference.shapes(self._graph, args, kwargs, partial=True)

    @entrance
    def infer_type(self, *args: Any, **kwargs: Any) -> inference.Types:
        """NumPy types of arguments, outputs and states, from those of some arguments.

        Three lists; three None, and a warning, when something stays unknown.

        Raises:
            DTypeError: dtypes contradict; it names the node, its inputs and their dtypes.
            ParamError: an argument of another name.
        """
        return inference.types(self._graph, args, kwargs, partial=False)

    @entrance
    def infer_type_partial(self, *args: Any, **kwargs: Any) -> inference.Types:
        """As `infer_type`, but what is known is given: None is unknown."""
        return inference.types(self._graph, args, kwargs, partial=True)

    # files ----------------------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The text that MXNet 1.9 keeps networks in; casts that AMP put in are left out."""
        return json.dumps(without_casts(self._graph) if remove_amp_cast else self._graph)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write `tojson()` into a file.

        Raises:
            TypeError: `fname` is no path.
            GnomonError: the file cannot be written; what stood there is untouched.
        """
        text = self.tojson(remove_amp_cast)
        with replacing("Symbol.save", path_of("Symbol.save", fname, "fname")) as stream:
            stream.write(text.encode())

    def debug_str(self) -> str:
        """The nodes with what they read and their attributes, one after the other."""
        return show.listing(self._graph)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    def __setstate__(self, state: dict[str, str]) -> None:
        """The state of a pickle that MXNet wrote."""
        self._graph = load_json(state["handle"])._graph

    # execution ------------------------------------------------------------------------------

    @entrance
    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_exec: Executor | None = None,
    ) -> Executor:
        """An executor of this symbol on the arrays given.

        `args`, `args_grad` and `aux_states` are lists in the order of `list_arguments` and
        `list_auxiliary_states`, or dicts by name. `grad_req` is 'write', 'add' or 'null', or a list
        or dict of these. Arguments without an array in `args_grad` get no gradient.

        Raises:
            ParamError: arrays that are missing or too many, an unknown request.
            ShapeError, DTypeError: arrays that do not go together; it names the node.
        """
        arrays = Arrays(args, args_grad, grad_req, aux_states)
        return bind(self, ctx, arrays, group2ctx or {}, shared_exec)

    @entrance
    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_arg_names: Sequence[str] | None = None,
        shared_exec: Executor | None = None,
        shared_buffer: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Executor:
        """An executor on new arrays of zeros, whose shapes follow from those given by name.

        Names that are no input are passed over. With `shared_exec`, the arguments named in
        `shared_arg_names` (default: all) are the arrays of that executor where shapes agree, and
        both compute in the same memory. `shared_buffer` holds further arrays to use, by name.

        Raises:
            GnomonError: shapes or dtypes stay unknown; it names the inputs.
            ShapeError, DTypeError: they contradict; it names the node.
        """
        wanted = Wanted(grad_req, type_dict or {}, stype_dict or {}, kwargs)
        shared = Shared(shared_exec, shared_arg_names, shared_buffer)
        return simple_bind(self, ctx, wanted, group2ctx or {}, shared)

    def eval(self, ctx: Context | None = None, **kwargs: Any) -> list[Any]:
        """The outputs for these arguments: bound, computed and forgotten."""
        return self.bind(ctx or current_context(), kwargs, grad_req="null").forward()

    def as_nd_ndarray(self) -> Symbol:
        """The symbol itself: it is one of the classic kind."""
        return self

    def optimize_for(self, backend: str, *args: Any, **kwargs: Any) -> Symbol:
        """MXNet hands a symbol to a plug-in here; gnomon has none: its passes run at binding.

        Raises:
            ParamError: whatever `backend` is.
        """
        expected = "none: there are no plug-ins, bind the symbol and its passes run"
        raise ParamError(complaint("optimize_for", "backend", expected, repr(backend)))

    def get_backend_symbol(self, backend: str) -> Symbol:
        """As `optimize_for`."""
        return self.optimize_for(backend)

    def gradient(self, wrt: Sequence[str]) -> Symbol:
        """MXNet declares it and refuses it: bind the symbol, and call `backward`."""
        raise NotImplementedForSymbol(f"gradient of {wrt}: bind the symbol and call backward")


def output_name(entry: Entry) -> str:
    """The name of an output: `fc1_output`; a variable's is its own."""
    node = entry.node
    return node.name if node.op is None else f"{node.name}_{node.op.listed_outputs()[entry.index]}"


def shown(node: Node) -> dict[str, str]:
    """A node's attributes, those that files keep as `__lr_mult__` under `lr_mult` too."""
    plain = {k: node.attrs[hidden_key(k)] for k in HIDDEN if hidden_key(k) in node.attrs}
    return {**node.attrs, **plain}


def load_json(json_str: str) -> Symbol:
    """The symbol in a text that any version of MXNet from 0.5 to 1.9 wrote.

    Raises:
        TypeError: no text.
        FormatError: no symbol; an unknown operator or attribute; it names the node.
    """
    check_kind("load_json", "json_str", json_str, str, "a string")
    return Symbol(json.loads(json_str).outputs)


def load(fname: str) -> Symbol:
    """The symbol in a file that any version of MXNet from 0.5 to 1.9 wrote.

    Raises:
        TypeError: `fname` is no path.
        GnomonError: the file cannot be read.
        FormatError: no symbol; an unknown operator or attribute; it names file and node.
    """
    text = read_json("symbol.load", path_of("symbol.load", fname, "fname"))
    return Symbol(json.loads(text, str(fname)).outputs)


def Variable(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: Any = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """An input of a network, with what is known of it: its shape, dtype, how it starts.

    `lr_mult` and `wd_mult` scale its learning rate and weight decay; further attributes of the
    user are named `__like_this__`.

    Raises:
        TypeError: `name` is no string.
        ParamError: an attribute of another kind of name.
    """
    if not isinstance(name, str):
        raise TypeError(complaint("Variable", "name", "a string", repr(name)))
    attrs = compose.attributes(name, AttrScope.current.get(attr))
    for key, value in kwargs.items():
        if not compose.is_attribute(key):
            raise ParamError(complaint("Variable", key, "a name such as __this__", repr(value)))
    known = {
        "__shape__": shape,
        "__lr_mult__": lr_mult,
        "__wd_mult__": wd_mult,
        "__dtype__": None if dtype is None else dtypes.of(dtype).flag,
        "__init__": init.dumps() if hasattr(init, "dumps") else init,
        "__storage_type__": None if stype is None else storage_number(stype),
        **kwargs,
    }
    attrs.update((k, str(v)) for k, v in known.items() if v is not None)
    return Symbol([Entry(Node(None, name, (), attrs), 0)])


var = Variable


def storage_number(stype: str) -> int:
    """The number that files hold for a kind of storage; ParamError when there is no such kind."""
    if stype not in STORAGE:
        raise ParamError(complaint("Variable", "stype", f"one of {', '.join(STORAGE)}", stype))
    return STORAGE.index(stype)


def Group(symbols: Iterable[Symbol]) -> Symbol:
    """One symbol with the outputs of all.

    Raises:
        TypeError: no symbols, or something else among them.
    """
    check_kind("Group", "symbols", symbols, Iterable, "a list of symbols")
    parts = list(symbols)
    if not parts or not all(isinstance(s, Symbol) for s in parts):
        got = f"[{', '.join(map(signature.shown, parts))}]"
        raise TypeError(complaint("Group", "symbols", "a list of symbols", got))
    return Symbol(e for s in parts for e in s._entries)

"""The symbol that an import makes: values by name, node after node, what is constant folded.

A value is a constant, an array known now, or a symbol, known when the network runs. Shapes and
dtypes of symbols are inferred as they are made, so that what a model computes of shapes is folded.
Operators of MXNet know no scalars: theirs are arrays of shape (1,), and `Value.scalar` remembers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import symbol as sym
from gnomon.base import DTypeError, FormatError, GnomonError, shown
from gnomon.dtype import DType
from gnomon.graph.node import Entry, Node
from gnomon.onnx import fold
from gnomon.onnx.library import NAMES, element, onnx
from gnomon.onnx.table import Unsupported, imports
from gnomon.symbol import Symbol
from gnomon.symbol.apply import apply

UNKNOWN = -1
DEPTH = 32  # of functions within functions


class Value:
    """What a name of an ONNX graph stands for: an array, or one output of a symbol."""

    __slots__ = ("array", "name", "scalar", "symbol")

    def __init__(self, name: str, array: Any = None, symbol: Any = None, scalar: bool = False):
        self.name, self.array, self.symbol = name, array, symbol
        self.scalar = scalar if array is None else array.ndim == 0


class Scalar:
    """The mark of a translation's result that is a scalar in ONNX, of shape (1,) here."""

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol


class Shaped:
    """What has a `shape` of something: a symbol for the `Reader`, an input by number for a call."""

    def shape(self, of: Any = 0) -> Any:
        """The shape, -1 for a size that is not known; None where nothing is known."""
        raise NotImplementedError(f"{type(self).__name__} must define shape()")

    def rank(self, of: Any = 0) -> int:
        """The number of axes.

        Raises:
            Unsupported: it is not known.
        """
        shape = self.shape(of)
        if shape is None:
            raise Unsupported("the number of axes of an input is not known: give input_shapes")
        return len(shape)

    def dims(self, of: Any = 0) -> tuple[int, ...]:
        """The shape, every size of it.

        Raises:
            Unsupported: a size is not known.
        """
        shape = self.shape(of)
        if shape is None or UNKNOWN in shape:
            raise Unsupported(f"the shape {shape} must be known: give input_shapes")
        return tuple(shape)


class Reader(Shaped):
    """A network in the making: values by name, parameters, and what is known of symbols."""

    def __init__(self, opsets: Mapping[str, int], functions: Mapping[Any, Any]) -> None:
        self.opsets, self.functions = dict(opsets), functions
        self.params: dict[str, np.ndarray[Any, Any]] = {}
        self.states: set[str] = set()
        self._variables: dict[str, Symbol] = {}
        self._names: set[str] = set()
        self._shapes: dict[Entry, Any] = {}
        self._types: dict[Entry, DType | None] = {}
        self.depth = 0

    # making symbols -------------------------------------------------------------------------

    def unique(self, wish: str) -> str:
        """`wish` as the name of a node, with a number behind where it is taken."""
        wish = re.sub(r"[^\w./:-]", "_", wish) or "node"
        name, k = wish, 0
        while name in self._names:
            k += 1
            name = f"{wish}_{k}"
        self._names.add(name)
        return name

    def input(self, name: str, shape: Sequence[int] | None, dtype: DType) -> Value:
        """The value of an input of the model."""
        given = {} if dtype is dtypes.float32 else {"dtype": dtype.name}
        self._names.add(name)
        variable = sym.Variable(name, **given)
        entry = variable._entries[0]
        scalar = shape == ()
        self._shapes[entry] = (1,) if scalar else None if shape is None else tuple(shape)
        self._types[entry] = dtype
        return Value(name, symbol=variable, scalar=scalar)

    def variable(self, name: str, array: np.ndarray[Any, Any]) -> Symbol:
        """A parameter of the name of a constant, with its values.

        Raises:
            Unsupported: it has no elements, or sizes that are not known.
        """
        if name in self._variables:
            return self._variables[name]
        if array.dtype == object:
            raise Unsupported(f"{name!r} holds sizes that the inputs' shapes leave open")
        if array.size == 0:
            raise Unsupported(f"{name!r} has no elements: its shape is {array.shape}")
        own = self.unique(name)
        array = array.reshape(1) if array.ndim == 0 else array
        dtype = dtypes.of(array.dtype)
        given = {} if dtype is dtypes.float32 else {"dtype": dtype.name}
        variable = sym.Variable(own, **given)
        entry = variable._entries[0]
        self._shapes[entry], self._types[entry] = array.shape, dtype
        self.params[own] = array
        self._variables[name] = variable
        return variable

    def op(self, name: str, *inputs: Any, **params: Any) -> Any:
        """The operator `name` of MXNet on symbols, or on arrays, which become parameters."""
        symbols = [self._symbol(x) for x in inputs if x is not None]
        made = apply(Symbol, name, name, symbols, {}, params, self.unique(self._label or name))
        self._infer(made._entries[0].node)
        return made

    _label = ""

    def _symbol(self, value: Any) -> Symbol:
        if isinstance(value, np.ndarray):
            return self.variable(self.unique(f"{self._label}_constant"), value)
        return value  # type: ignore[no-any-return]

    def _infer(self, node: Node) -> None:
        """Learn the shapes and dtypes of a new node, whose inputs are known already."""
        op, count = node.op, len(node.op.arguments())
        shapes = [self._shapes.get(e) for e in node.inputs[:count]]
        types = [self._types.get(e) for e in node.inputs[:count]]
        entries = node.entries()
        self._shapes.update(
            zip(entries, op.infer_shape(shapes, zero_unknown=False)[1], strict=True)
        )
        self._types.update(zip(entries, op.infer_type(types)[1], strict=True))

    # asking ---------------------------------------------------------------------------------

    def shape(self, symbol: Symbol) -> Any:
        """The shape of a symbol, -1 for a size that is not known; None where nothing is known."""
        return self._shapes.get(symbol._entries[0])

    def dtype(self, symbol: Symbol) -> DType:
        """The dtype of a symbol."""
        return self._types.get(symbol._entries[0]) or dtypes.float32

    # a graph --------------------------------------------------------------------------------

    def run(self, nodes: Sequence[Any], scope: dict[str, Value]) -> list[str]:
        """Translate nodes one after the other into values of `scope`; what had no translation."""
        problems: list[str] = []
        broken: set[str] = set()
        for node in nodes:
            if broken & set(node.input):  # told already, by the node that makes them
                broken |= set(node.output)
                continue
            try:
                self.one(OnnxCall(self, node, scope))
            except Exception as error:  # a broken node may make a translation raise anything
                where = f"node {node.name or (list(node.output) or ['?'])[0]!r}: operator"
                why = str(error) if isinstance(error, GnomonError) else repr(error)
                problems.append(f"{where} {title(node)}: {why}")
                broken |= set(node.output)
        return problems

    def one(self, call: OnnxCall) -> None:
        """Translate one node: folded where what it reads is constant, else by the table."""
        self._label = call.name
        results = fold.folded(call)
        if results is not None:
            for name, array in zip(call.node.output, results, strict=False):
                call.scope[name] = Value(name, array)
            return
        found = imports().get(title(call.node))
        if found is None:
            self._inline(call)
            return
        results = found.read(self, call)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        scalar = found.elementwise and all(v.scalar for v in call.values if v is not None)
        for name, result in zip(call.node.output, results, strict=False):
            call.scope[name] = self._value(name, result, scalar)
        absent = [n for n in call.node.output[len(results) :] if n]
        if absent:
            raise Unsupported(f"its outputs {', '.join(map(repr, absent))} are not there")

    def _value(self, name: str, result: Any, scalar: bool) -> Value:
        if isinstance(result, np.ndarray):
            return Value(name, result)
        if isinstance(result, Value):
            return result
        if isinstance(result, Scalar):
            return Value(name, symbol=result.symbol, scalar=True)
        return Value(name, symbol=result, scalar=scalar)

    def _inline(self, call: OnnxCall) -> None:
        """Read a function of the model, or one that ONNX defines an operator by, in its place."""
        function = self.functions.get((call.node.domain, call.node.op_type))
        function = function or _definition(call)
        if function is None:
            raise Unsupported("is not known")
        if self.depth >= DEPTH:
            raise FormatError(f"functions within functions, more than {DEPTH} deep")
        pairs = zip(function.input, call.node.input, strict=False)
        scope = {inner: call.scope[outer] for inner, outer in pairs if outer}
        before = self.opsets
        self.opsets = {o.domain: o.version for o in function.opset_import} or before
        self.depth += 1
        try:
            given = {a.name: a for a in function.attribute_proto}
            given |= {a.name: a for a in call.node.attribute}
            problems = self.run([_bound(n, given, call.name) for n in function.node], scope)
        finally:
            self.depth -= 1
            self.opsets = before
        if problems:
            raise Unsupported("; ".join(problems))
        for inner, outer in zip(function.output, call.node.output, strict=False):
            if inner in scope:
                call.scope[outer] = scope[inner]


def title(node: Any) -> str:
    """The operator of a node, with its domain where that is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _definition(call: OnnxCall) -> Any:
    """The function by which ONNX defines an operator, where it does."""
    defs = onnx("defs")
    try:
        schema = defs.get_schema(call.node.op_type, call.opset, call.node.domain)
    except defs.SchemaError:
        return None
    if schema.has_function:
        function = schema.function_body
    elif schema.has_context_dependent_function:
        function = _made(schema, call)
    else:
        return None
    given = {a.name for a in call.node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            function.attribute_proto.append(attribute.default_value)
    return function


def _made(schema: Any, call: OnnxCall) -> Any:
    """The function of an operator that depends on the types of its inputs."""
    kinds = []
    for k, value in enumerate(call.values):
        kind = onnx().TypeProto()
        if value is not None:
            sizes = [size if size > 0 else None for size in call.shape(k) or ()]
            kind = onnx("helper").make_tensor_type_proto(element(call.dtype(k)), sizes)
        kinds.append(kind.SerializeToString())
    function = onnx().FunctionProto()
    function.ParseFromString(
        schema.get_context_dependent_function(call.node.SerializeToString(), kinds)
    )
    return function


def _bound(node: Any, given: Mapping[str, Any], prefix: str) -> Any:
    """A node of a function's body with the attributes of the call in it."""
    new = onnx().NodeProto()
    new.CopyFrom(node)
    del new.attribute[:]
    new.name = f"{prefix}/{node.name or node.op_type}"
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            new.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            new.attribute.append(given[attribute.ref_attr_name])
            new.attribute[-1].name = attribute.name
    return new


class OnnxCall(Shaped):
    """A node that is translated: its attributes, and the values it reads."""

    def __init__(self, reader: Reader, node: Any, scope: dict[str, Value]) -> None:
        self.reader, self.node, self.scope = reader, node, scope
        self.name = node.name or (node.output[0] if node.output else node.op_type)
        self.opset = reader.opsets.get(node.domain, reader.opsets.get("", 0))
        missing = [n for n in node.input if n and n not in scope]
        if missing:
            raise FormatError(f"{missing[0]!r} is read before it is made, or never made")
        self.values = [scope[n] if n else None for n in node.input]
        self._attributes = {a.name: a for a in node.attribute}

    # attributes -----------------------------------------------------------------------------

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute `name`; texts are decoded, tensors are arrays.

        Raises:
            FormatError: it is none of these.
        """
        if name not in self._attributes:
            return default
        attribute = self._attributes[name]
        value = onnx("helper").get_attribute_value(attribute)
        if default is not None and isinstance(value, bytes) != isinstance(default, (str, bytes)):
            raise FormatError(f"attribute {name!r}: expected as {default!r}, got {shown(value)}")
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return list(value) if isinstance(value, Sequence) else value

    def need(self, name: str) -> Any:
        """The attribute `name`, which must be there.

        Raises:
            FormatError: it is not.
        """
        if name not in self._attributes:
            raise FormatError(f"attribute {name!r} is missing")
        return self.attr(name)

    def unsupported(self, **usual: Any) -> None:
        """Raise Unsupported where an attribute is not what it usually is."""
        for name, value in usual.items():
            if self.attr(name, value) != value:
                raise Unsupported(f"attribute {name} = {self.attr(name)!r}: only {value!r}")

    # values ---------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        """How many outputs are named."""
        return max((k + 1 for k, n in enumerate(self.node.output) if n), default=0)

    def has(self, k: int) -> bool:
        """Whether there is an input `k`."""
        return k < len(self.values) and self.values[k] is not None

    def value(self, k: int) -> Value:
        """Input `k`.

        Raises:
            FormatError: it is missing.
        """
        if not self.has(k):
            raise FormatError(f"input {k} is missing")
        value = self.values[k]
        assert value is not None
        return value

    def symbol(self, k: int = 0) -> Symbol:
        """Input `k` as a symbol; a constant is a parameter."""
        value = self.value(k)
        if value.symbol is None:
            return self.reader.variable(value.name, value.array)
        return value.symbol  # type: ignore[no-any-return]

    def symbols(self) -> list[Symbol]:
        """All inputs that are there."""
        return [self.symbol(k) for k, v in enumerate(self.values) if v is not None]

    def const(self, k: int, default: Any = None) -> Any:
        """The array of input `k`, which must be constant; `default` where it is missing.

        Raises:
            Unsupported: it is known only when the network runs.
        """
        if not self.has(k):
            return default
        array = self.value(k).array
        if array is None:
            raise Unsupported(f"input {k} ({self.node.input[k]!r}) must be constant")
        return array

    def ints(self, name: str, k: int | None, default: Any = None) -> Any:
        """Integers that newer opsets give as input `k` and older ones as the attribute `name`."""
        if k is not None and self.has(k):
            array = self.const(k).reshape(-1)
            if array.dtype == object:
                raise Unsupported(f"input {k} holds sizes that the inputs' shapes leave open")
            return [int(v) for v in array]
        return self.attr(name, default)

    def number(self, k: int) -> Any:
        """The number of input `k` where that is a constant of one element and no more axes than
        a scalar needs; else None."""
        value = self.values[k]
        if value is None or value.array is None or value.array.dtype == object:
            return None
        return value.array.item() if value.array.size == 1 and value.array.ndim <= 1 else None

    def shape(self, k: int = 0) -> Any:
        """The shape of input `k` in ONNX, -1 for what is not known; None: nothing is known."""
        value = self.value(k)
        if value.array is not None:
            return value.array.shape
        return () if value.scalar else self.reader.shape(value.symbol)

    def dtype(self, k: int = 0) -> DType:
        """The dtype of input `k`."""
        value = self.value(k)
        if value.array is not None:
            return dtypes.int64 if value.array.dtype == object else dtypes.of(value.array.dtype)
        return self.reader.dtype(value.symbol)

    def axis(self, default: int, k: int = 0) -> int:
        """The attribute `axis`, counted from the front of input `k`."""
        return normal(self.attr("axis", default), self.rank(k))


def normal(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        FormatError: there is no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise FormatError(f"axis {axis} of {rank} axes")
    return axis % rank if rank else 0


def dtype_of(number: int) -> DType:
    """The dtype of ONNX's number.

    Raises:
        DTypeError: gnomon computes with no such type.
    """
    if number not in NAMES:
        raise DTypeError(f"ONNX's element type {number} is none that gnomon computes with")
    return dtypes.of(NAMES[number])

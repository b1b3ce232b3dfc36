"""Shapes and dtypes of a whole graph from what is known of some of it, in both directions.

Knowledge travels along the edges until nothing changes: a node is asked again when something it
reads or gives became better known. A shape that is not known is None, a dimension -1; 0 is a size.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint, nearest, shown
from gnomon.dtype import DType
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ground.record import record
from gnomon.ops import derive
from gnomon.ops.host import HostOp
from gnomon.ops.infer import UNKNOWN, from_border, show_shape, zero_is_unknown
from gnomon.ops.param import Dims, kind_of

T = TypeVar("T")
Shape = tuple[int, ...]
Known = dict[Entry, T]


@record(slots=False)
class Question(Generic[T]):
    """What differs between asking for shapes and for dtypes."""

    error: type[GnomonError]
    ask: Callable[[Any, Sequence[T | None], Sequence[T | None]], tuple[list[Any], ...]]
    merge: Callable[[T | None, T | None], T | None]  # ValueError when they contradict
    show: Callable[[T | None], str]


def shapes(graph: Graph, given: Mapping[Node, Shape | None] | None = None) -> Known[Shape | None]:
    """The shape of each entry, as far as it follows from `given` and from `__shape__` attributes.

    Raises:
        ShapeError: shapes contradict; it names the node, its inputs and what is known of them.
    """
    completed = {node: _completed(node, shape) for node, shape in (given or {}).items()}
    return _settle(_SHAPES, graph, _start(graph, completed, shape_attribute))


def types(graph: Graph, given: Mapping[Node, DType | None] | None = None) -> Known[DType | None]:
    """The dtype of each entry, as far as it follows from `given` and from `__dtype__` attributes.

    Raises:
        DTypeError: dtypes contradict; it names the node, its inputs and what is known of them.
    """
    known = _start(graph, given or {}, dtype_attribute)
    start = tuple(known.values())
    before = _typed.get(graph)
    if before is not None and before[0] == start:
        return dict(before[1])
    found = _settle(_TYPES, graph, known)
    if all(node.op is None or getattr(node.op, "is_expression", False) for node in graph.topo):
        _typed[graph] = start, dict(found)  # others may ask users, who may say something else
    return found


#: what the dtypes of a graph's entries were last, and what they were of: no size decides them
_typed: WeakKeyDictionary[Graph, tuple[tuple[Any, ...], Known[DType | None]]] = WeakKeyDictionary()


def complete(shape: Shape | None) -> bool:
    """Whether every dimension is known.

    >>> complete((2, 3)), complete((0, 3)), complete((-1, 3)), complete(None)
    (True, True, False, False)
    """
    return shape is not None and UNKNOWN not in shape


def by_values(graph: Graph, known: Mapping[Entry, Shape | None]) -> bool:
    """Whether values decide a shape: an operator on NumPy arrays leaves it open, given its inputs'.

    >>> from gnomon import symbol as sym
    >>> picked = sym.contrib.boolean_mask(sym.var("data", shape=(3, 2)), sym.var("index"))
    >>> by_values(picked._graph, shapes(picked._graph))
    True
    """
    return any(
        isinstance(node.op, HostOp)
        and all(complete(known[e]) for e in node.inputs)
        and not all(complete(known[e]) for e in node.entries())
        for node in graph.topo
    )


def given_by_name(graph: Graph, where: str, given: Mapping[str, Any]) -> dict[Node, Any]:
    """What is given of variables, without what is None.

    Raises:
        ParamError: a name that no variable has.
    """
    names = {n.name for n in graph.variables}
    for name, value in given.items():
        if name not in names:
            expected = f"one of {', '.join(sorted(names))}{nearest(name, names)}"
            raise ParamError(complaint(where, name, expected, shown(value)))
    return {n: given[n.name] for n in graph.variables if given.get(n.name) is not None}


def given_shape(where: str, name: str, given: Any) -> Shape | None:
    """A shape that a caller gives of `name`, where -1 is a dimension that is not known.

    Outside of `mx.util.np_shape` 0 is one, too, and () says nothing.

    Raises:
        TypeError: it is no tuple of integers.
    """
    if not isinstance(given, (tuple, list)) or not all(map(_is_size, given)):
        raise TypeError(complaint(where, name, "a tuple of ints", shown(given)))
    return from_border(given, zero_is_unknown())


def _is_size(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def shape_attribute(node: Node) -> Shape | None:
    """The shape that a variable's `__shape__` says; ShapeError where it says none."""
    text = node.attrs.get("__shape__")
    if text is None:
        return None
    try:
        shape = kind_of(Dims).parse(text)
    except (ValueError, TypeError):
        raise ShapeError(_attribute_complaint(node, "__shape__", "a tuple of ints")) from None
    return from_border(shape, zero_is_unknown())


def _completed(node: Node, given: Shape | None) -> Shape | None:
    """`given`, with sizes of the variable's own shape where it has none."""
    if given is None or UNKNOWN not in given:
        return given
    own = shape_attribute(node)
    if own is None or len(own) != len(given):
        return given
    return tuple(o if g == UNKNOWN else g for g, o in zip(given, own, strict=True))


def dtype_attribute(node: Node) -> DType | None:
    """The dtype that a variable's `__dtype__` says: a number of MXNet's, or a name."""
    text = node.attrs.get("__dtype__")
    if text is None or text == "-1":
        return None
    try:
        return dtypes.from_flag(int(text)) if text.isdecimal() else dtypes.of(text)
    except (DTypeError, ValueError):
        raise DTypeError(_attribute_complaint(node, "__dtype__", "a dtype")) from None


def _attribute_complaint(node: Node, key: str, expected: str) -> str:
    return complaint(f"variable {node.name}", key, expected, shown(node.attrs[key]))


def _start(
    graph: Graph, given: Mapping[Node, T | None], attribute: Callable[[Node], T | None]
) -> Known[T | None]:
    """What is known of the variables: `given` first, then their attributes."""
    known: Known[T | None] = dict.fromkeys(graph.entries)
    for node in graph.variables:
        value = given.get(node)
        known[Entry(node, 0)] = attribute(node) if value is None else value
    return known


def _settle(question: Question[T], graph: Graph, known: Known[T | None]) -> Known[T | None]:
    """Ask nodes, in order at first, until no answer brings anything new."""
    queue = deque(n for n in graph.topo if n.op is not None)
    waiting = set(queue)
    ask = functools.cache(question.ask)  # deep networks ask the same of many nodes
    while queue:
        node = queue.popleft()
        waiting.discard(node)
        for entry in _learn(question, ask, node, known):
            fresh = [n for n in _neighbours(graph, entry, node) if n not in waiting]
            waiting.update(fresh)
            queue.extend(fresh)
    return known


def _neighbours(graph: Graph, entry: Entry, told: Node) -> Iterator[Node]:
    """The nodes to ask again: all that touch `entry`, `told` itself only if it reads it twice."""
    readers = graph.consumers.get(entry, [])
    again = readers.count(told) > 1
    touching = readers if entry.node.op is None else [entry.node, *readers]
    return (n for n in dict.fromkeys(touching) if again or n is not told)


def _learn(
    question: Question[T], ask: Callable[..., Any], node: Node, known: Known[T | None]
) -> list[Entry]:
    """Ask one node; the entries of which more is known afterwards."""
    outputs = node.entries()
    count = len(node.op.arguments())
    try:
        ins, outs = (tuple([known[e] for e in es]) for es in (node.inputs[:count], outputs))
        answer = ask(node.op, ins, outs)
        changed = []
        pairs = zip(
            [*node.inputs[:count], *outputs, *node.inputs[count:]], _flat(answer), strict=True
        )
        for entry, value in pairs:
            before = known[entry]
            merged = before if value == before else question.merge(before, value)
            if merged != before:
                known[entry] = merged
                changed.append(entry)
        return changed
    except (GnomonError, ValueError) as error:
        raise question.error(_explain(question, node, known, error)) from error


def _flat(answer: tuple[list[Any], ...]) -> Iterator[Any]:
    for part in answer:
        yield from part


def _explain(question: Question[T], node: Node, known: Known[T | None], error: Exception) -> str:
    """An operator's complaint with the node's name, its inputs and what is known of them."""
    inputs = [
        f"{name} ({entry!r}) = {question.show(known[entry])}"
        for name, entry in zip(node.op.inputs(), node.inputs, strict=True)
    ]
    return f"node {node.name!r}: {error}; inputs so far: {', '.join(inputs) or 'none'}"


def merge_shapes(old: Shape | None, new: Shape | None) -> Shape | None:
    """What two partly known shapes say together.

    >>> merge_shapes((-1, 3), (2, -1)), merge_shapes(None, (2, -1))
    ((2, 3), (2, -1))

    Raises:
        ValueError: they contradict.
    """
    if old is None or new is None:
        return old if new is None else tuple(new)
    pairs = list(zip(old, new, strict=False))
    if len(old) != len(new) or any(a != b and UNKNOWN not in (a, b) for a, b in pairs):
        raise ValueError(f"shapes {show_shape(old)} and {show_shape(new)} contradict")
    return tuple(max(a, b) for a, b in pairs)


def merge_types(old: DType | None, new: DType | None) -> DType | None:
    """What two answers about one dtype say together; ValueError when they contradict."""
    if old is not None and new is not None and old is not new:
        raise ValueError(f"dtypes {old.name} and {new.name} contradict")
    return new if old is None else old


def _ask_shapes(op: Any, ins: Sequence[Any], outs: Sequence[Any]) -> tuple[list[Any], ...]:
    return derive.shapes_of(op, tuple(ins), tuple(outs))


def _ask_types(op: Any, ins: Sequence[Any], outs: Sequence[Any]) -> tuple[list[Any], ...]:
    return derive.types_of(op, tuple(ins), tuple(outs))


_SHAPES: Question[Shape] = Question(ShapeError, _ask_shapes, merge_shapes, show_shape)
_TYPES: Question[DType] = Question(
    DTypeError, _ask_types, merge_types, lambda t: t.name if t else "unknown"
)

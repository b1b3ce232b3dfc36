"""Composition: nodes made of an operator and what it reads, missing inputs as new variables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.attribute import AttrScope
from gnomon.base import ParamError, check_kind, complaint, nearest, shown
from gnomon.dtype import DType
from gnomon.graph.legacy import hidden_key, initial
from gnomon.graph.node import Entry, Graph, Node, rebuilt
from gnomon.name import NameManager
from gnomon.ops import precision, registry
from gnomon.ops.infer import check_count
from gnomon.ops.op import Op
from gnomon.ops.signature import refused_input

_LOG = logging.getLogger("gnomon")


def make(
    cls: type[Op],
    hint: str,
    inputs: Sequence[Entry | None],
    named: Mapping[str, Entry],
    params: Mapping[str, Any],
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
) -> Node:
    """A node that applies `cls` to `inputs` in order and `named` by name.

    What is missing becomes a variable named after the node: `fc1_weight`. `params` may hold
    attributes of the user too (`__these__`, and `lr_mult` and its like); `hint` begins an
    automatic name.

    Raises:
        TypeError: `name` is no string.
        ParamError: unknown parameters or inputs, values out of range.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(complaint(cls.name, "name", "a string", repr(name)))
    users = AttrScope.current.get(attr)
    given = {k: v for k, v in params.items() if not is_attribute(hidden_key(k))}
    given.update((k, v) for k, v in users.items() if not is_attribute(hidden_key(k)))
    op = cls.parse(given)
    attrs = op.attrs()
    attrs.update((hidden_key(k), str(v)) for k, v in params.items() if k not in given)
    attrs.update((hidden_key(k), _text(v)) for k, v in users.items() if k not in given)
    name = NameManager.current.get(name, hint.lower())
    entries = _filled(op, name, attrs, inputs, named)
    if precision.current is not None:
        entries = _cast(precision.current, op, entries)
    return Node(op, name, entries, attrs)


def _cast(now: precision.Precision, op: Op, entries: list[Entry]) -> list[Entry]:
    """Inputs cast to what mixed precision wants; states stay as they are."""
    if now.loss_scale is not None and type(op) in now.losses:
        _LOG.warning("%s: dynamic loss scaling does not reach losses of symbols", op.name)
    rule, count = now.rule(op), len(op.arguments())
    if rule is None or count == 0 or (rule == precision.WIDEST and count == 1):
        return entries
    arguments, states = entries[:count], entries[count:]
    if rule == precision.WIDEST:
        node = _named("amp_multicast", arguments, num_outputs=str(count))
        return [*node.entries(), *states]
    assert isinstance(rule, DType)
    return [*(_named("amp_cast", [e], dtype=rule.name).entries()[0] for e in arguments), *states]


def _named(name: str, inputs: Sequence[Entry], **attrs: str) -> Node:
    """A node of the operator `name`, called so with a number behind, with attributes of the scope:
    they say which body of a loop, or which group of devices, it belongs to."""
    op, users = registry.find(name).parse(attrs), AttrScope.current.get(None)
    scope = {k: v for k, v in users.items() if is_attribute(hidden_key(k))}
    attrs.update(attributes(name, scope))
    return Node(op, NameManager.current.get(None, name), inputs, attrs)


def is_attribute(key: str) -> bool:
    """Whether a key names an attribute of the user, not an operator's parameter.

    >>> is_attribute("__lr_mult__"), is_attribute("kernel")
    (True, False)
    """
    return key.startswith("__") and key.endswith("__")


def attributes(where: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Attributes under the keys that files hold them by; ParamError when one is no string."""
    for key, value in given.items():
        check_kind(where, "attr", key, str, "names as keys")
        if not isinstance(value, str):
            raise ParamError(complaint(where, key, "a string as attribute", shown(value)))
    return {hidden_key(k): v for k, v in given.items()}


def _text(value: Any) -> str:
    """An initializer as variables read it, anything else as it is printed."""
    return str(value.dumps() if hasattr(value, "dumps") else value)


def _filled(
    op: Op,
    name: str,
    attrs: Mapping[str, str],
    inputs: Sequence[Entry | None],
    named: Mapping[str, Entry],
) -> list[Entry]:
    """An entry for each input of `op`; automatic variables get the node's attributes."""
    names = op.inputs()
    if op.interleaved and len(inputs) == len(names):
        inputs = op.arranged(inputs)
    known = ", ".join(names) or "no inputs"
    # where the operator declares its names, they count: some parameters take inputs away
    places = op.input_names if set(names) <= set(op.input_names) else names
    given = {n: e for n, e in zip(places, inputs, strict=False) if e is not None}
    twice = given.keys() & named.keys()
    given.update(named)
    for key in given:
        if key in op.input_names and key not in names:
            raise ParamError(complaint(op.name, key, refused_input(op, key), "a symbol"))
        if key not in names or key in twice:
            what = "given twice" if key in twice else "a symbol" + nearest(key, names)
            raise ParamError(complaint(op.name, key, f"one of the inputs {known}", what))
    if len(inputs) > len(places):
        check_count(op.name, names, len(inputs))
    return [
        given[n]
        if n in given
        else Entry(Node(None, f"{name}_{n}", (), {**attrs, **initial(op.name, n)}), 0)
        for n in names
    ]


def replaced(graph: Graph, where: str, by: Mapping[str, Entry]) -> Graph:
    """A copy of `graph` with the entries `by` in place of the variables of those names.

    Raises:
        ParamError: a name that no variable has.
    """
    found: dict[Node, Entry] = {}
    for name, entry in by.items():
        nodes = [n for n in graph.variables if n.name == name]
        if not nodes:
            names = [n.name for n in graph.variables]
            expected = f"one of the inputs {', '.join(names)}{nearest(name, names)}"
            raise ParamError(complaint(where, name, expected, "a symbol"))
        found.update(dict.fromkeys(nodes, entry))
    return rebuilt(graph, found)

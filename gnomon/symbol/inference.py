"""`infer_shape` and `infer_type` of symbols: the graph's inference with MXNet's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ops.infer import to_border, zero_is_unknown

Shapes = tuple[list[tuple[int, ...] | None] | None, ...]
Types = tuple[list[Any] | None, ...]


def given_by(
    graph: Graph, where: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[Node, Any]:
    """What was given of each variable: arguments by position, or variables by name.

    Raises:
        ParamError: both at once, too many, or a name that no variable has.
    """
    if args and kwargs:
        raise ParamError(complaint(where, "args", "positional or named ones", "both"))
    if len(args) > len(graph.arguments):
        expected = f"at most {len(graph.arguments)} arguments"
        raise ParamError(complaint(where, "args", expected, len(args)))
    found = {n: v for n, v in zip(graph.arguments, args, strict=False) if v is not None}
    return found | infer.given_by_name(graph, where, kwargs)


def shapes(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Shapes:
    """Shapes of arguments, outputs and states; three None where they are not all known."""
    found = given_by(graph, "infer_shape", args, kwargs)
    given = {n: infer.given_shape("infer_shape", n.name, s) for n, s in found.items()}
    known = infer.shapes(graph, given)
    return _answer(graph, known, infer.complete, _shown, "shape", partial)


def _shown(shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """A shape as users get it: outside of `mx.util.np_shape` () is one that is not known."""
    unknown = zero_is_unknown()
    return () if shape is None and unknown else to_border(shape, unknown)


def types(graph: Graph, args: Sequence[Any], kwargs: Mapping[str, Any], partial: bool) -> Types:
    """NumPy types of arguments, outputs and states; three None where they are not all known."""
    found = given_by(graph, "infer_type", args, kwargs)
    known = infer.types(graph, {n: dtypes.of(t) for n, t in found.items()})
    scalar: Callable[[Any], Any] = lambda t: None if t is None else t.numpy.type  # noqa: E731
    return _answer(graph, known, lambda t: t is not None, scalar, "dtype", partial)


def _answer(
    graph: Graph,
    known: Mapping[Entry, Any],
    complete: Callable[[Any], bool],
    show: Callable[[Any], Any],
    what: str,
    partial: bool,
) -> tuple[list[Any] | None, ...]:
    """What is known of arguments, outputs and states, as three lists."""
    variables = [Entry(n, 0) for n in graph.variables]
    parts = (
        [Entry(n, 0) for n in graph.arguments],
        graph.outputs,
        [Entry(n, 0) for n in graph.auxiliary],
    )
    if not partial and not all(complete(known.get(e)) for part in parts for e in part):
        unknown = [f"{e!r}: {show(known.get(e))}" for e in variables if not complete(known.get(e))]
        hint = f"of these inputs: {'; '.join(unknown[:10])}" if unknown else "of outputs"
        warnings.warn(f"cannot decide the {what} {hint}", stacklevel=5)  # behind `entrance`
        return None, None, None
    return tuple([show(known.get(e)) for e in part] for part in parts)

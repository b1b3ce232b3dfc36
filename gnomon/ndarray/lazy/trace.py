"""Traces: what a chain of statements says, apart from the memory it is about.

A `TraceNode` is a trace up to one of its operators, reached from the empty one by saying each
operator in turn: which function, of which operands, in which layouts. The same statements lead to
the same trace, which keeps what was compiled for them; so a loop finds its kernel by as many
look-ups as it has operators. Operands are numbered: leaves -1, -2... as they come in, results of
operators 0, 1...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final

from gnomon.base import ShapeError
from gnomon.dtype import float32
from gnomon.expr.ext.reduce import Broadcast
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar, cast
from gnomon.expr.walk import postorder
from gnomon.ground.record import Frozen, put
from gnomon.native.words import whole
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.lazy.families import Outline, flat, recipe_like, spreading
from gnomon.ndarray.lazy.infer import infer
from gnomon.ndarray.lazy.numbers import Sharing, matched, probed, words_of
from gnomon.ndarray.lazy.recipe import Dest, Draws, Recipe, Work
from gnomon.shape import broadcast_shapes

SMALL = 1 << 16  # bytes of a result: beyond, a chain's memory traffic weighs more than its calls
MOST = 128  # operators in a trace
MOST_OF_SMALL = 24
_KEPT = 8192  # trace nodes and recipes in all; beyond, they are learnt anew

_UNKNOWN: Final = object()
_ASKED = {"train", "random"}  # what the value of a map does not depend on

Layouts = tuple[Layout, ...]
#: which leaves overlap memory that is written, and how far from it they lie
Near = tuple[tuple[int, int], ...]
#: where a value goes: its number, the layout there, and what lies near
Target = tuple[int, Layout, Near]
#: what lies near a result, by that one's place among the results
InPlace = tuple[tuple[int, Near], ...]


@whole
class Rule(Frozen):
    """How an operator joins a trace: its result, and the operands that must lie in memory.

    It is `even` where it is element-wise on operands of one shape, `flat` where these are dense: it
    is the same for every shape then.
    """

    __slots__ = ("even", "fields", "flat", "kind", "layout", "op", "shape", "spread")

    flat: bool
    shape: tuple[int, ...]

    def __init__(
        self,
        op: Any,
        sharing: Sharing,
        layout: Layout,
        layouts: Layouts,
        even: bool,
        spread: Collection[int] = (),
    ) -> None:
        """`layouts` are those of the operands."""
        put(self, "op", op)
        put(self, "even", even)
        put(self, "flat", even and all(x.strides is None for x in layouts))
        put(self, "kind", sharing.kind)
        put(self, "fields", sharing.fields)
        put(self, "layout", layout)
        put(self, "shape", layout.shape)
        put(self, "spread", spread)  # operands whose axes of 1 are stretched

    def value(self, args: Sequence[Expr], first: int, side: int) -> Expr:
        """The result as an expression; its numbers are stand-ins from place `first` on."""
        op = probed(self.op, self.fields, first)[side] if self.fields else self.op
        return rounded(op.apply(args)[0])


def rule_of(op: Any, sharing: Sharing, layouts: Layouts) -> Rule | None:
    """How an operator joins a trace on operands of these layouts; None where it does not.

    Raises:
        ShapeError, DTypeError: it does not take such operands.
    """
    if op.moves is not None or op.reduces is not None:
        return None
    rules = sharing.kind.rules
    known: Any = rules.get(layouts, _UNKNOWN)
    found: Rule | None = known
    if known is _UNKNOWN:  # no `except`: it would stand behind an error of the operator
        found = _rule(op, sharing, layouts)
        LEARNT.put(rules, layouts, found)
    return found


def is_even(op: Any, layouts: Layouts) -> bool:
    """Whether an operator is element-wise on operands of these layouts, all of one shape."""
    shape = layouts[0].shape
    return op.elementwise and [x.shape for x in layouts].count(shape) == len(layouts)


@functools.lru_cache(maxsize=1024)
def of_inputs_alone(kind: type[Any]) -> bool:
    """Whether an operator's outputs depend on nothing but its inputs, and it changes nothing."""
    forward = getattr(kind, "forward", None)  # the derivative of an operator has none
    if not forward or not kind.is_expression or kind.aux_names:
        return False
    return _ASKED.isdisjoint(inspect.signature(forward).parameters)


def _rule(op: Any, sharing: Sharing, layouts: Layouts) -> Rule | None:
    if not layouts or len(op.outputs()) != 1 or not of_inputs_alone(type(op)):
        return None
    known = _known_rule(op, sharing, layouts)
    if known is not None:
        return known
    ranked = tuple([(len(x.shape), x.dtype) for x in layouts])
    if ranked in sharing.kind.no_maps:  # of other sizes it may be one, which need not wait
        return None
    shape, dtype = infer(op, layouts)[0]
    if 0 in shape or "b" in (dtype.kind, *(x.dtype.kind for x in layouts)):
        return None
    leaves: list[Expr] = [Buffer(x.shape, x.dtype, x.strides) for x in layouts]
    value = op.apply(leaves)[0]
    spread: set[int] = set()
    for node in postorder([value]):
        if isinstance(node, Broadcast) and not node.src.children:
            spread.update(k for k, leaf in enumerate(leaves) if leaf is node.src)
        elif not isinstance(node, (Map, Cast, Scalar, Buffer)):
            sharing.kind.no_maps.add(ranked)
            return None
    if value.shape != shape or value.dtype is not dtype:
        return None
    if sharing.fields:
        ours, theirs = (x.apply(leaves) for x in probed(op, sharing.fields))
        numbers = matched(ours, theirs, len(sharing.fields))
        if numbers is None or any(first == second for first, second in map(words_of, numbers)):
            return None
    if op.elementwise:
        sharing.kind.results[tuple([x.dtype for x in layouts])] = dtype
    return Rule(op, sharing, dense(shape, dtype), layouts, is_even(op, layouts), spread)


def _known_rule(op: Any, sharing: Sharing, layouts: Layouts) -> Rule | None:
    """The rule of an element-wise operator that has one for operands of other shapes."""
    result = sharing.kind.results.get(tuple([x.dtype for x in layouts]))
    if result is None or not all(x.size for x in layouts):
        return None
    if is_even(op, layouts):
        return Rule(op, sharing, dense(layouts[0].shape, result), layouts, even=True)
    if not op.stretches:
        return None
    try:
        shape = broadcast_shapes(*[x.shape for x in layouts])
    except ShapeError:  # the usual way tells what is wrong
        return None
    spread = [k for k, x in enumerate(layouts) if x.shape != shape]
    return Rule(op, sharing, dense(shape, result), layouts, False, spread)


def rounded(value: Expr) -> Expr:
    """A value as memory of its dtype would hold it: half floats are computed in more bits."""
    half = value.dtype.kind == "f" and value.dtype.size == 2
    return cast(cast(value, float32), value.dtype) if half else value


@whole
class TraceNode(Frozen):
    """A trace up to one operator, the last of `count`."""

    __slots__ = (
        "after",
        "count",
        "flat",
        "full",
        "index",
        "layout",
        "leaves",
        "met",
        "numbers",
        "operands",
        "parent",
        "recipes",
        "rule",
        "single",
        "sole",
    )

    made = 0  # trace nodes and recipes in all

    after: dict[Any, TraceNode]
    count: int
    flat: bool  # it is the same for every shape
    full: bool
    index: int
    layout: Final[Layout]
    leaves: Layouts
    met: int  # how often it was computed operator by operator
    numbers: int
    operands: tuple[int, ...]
    parent: TraceNode | None
    recipes: dict[Any, Recipe]
    rule: Rule
    single: bool
    sole: Recipe | None  # the one that gives this operator's result alone

    def __init__(
        self, parent: TraceNode | None, rule: Any, operands: tuple[int, ...], leaves: Layouts
    ) -> None:
        count = 0 if parent is None else parent.count + 1
        small = rule is None or rule.layout.nbytes < SMALL
        put(self, "parent", parent)
        put(self, "rule", rule)
        put(self, "operands", operands)
        put(self, "leaves", leaves)
        put(self, "count", count)
        put(self, "index", count - 1)
        put(self, "single", count == 1)
        put(self, "numbers", 0 if parent is None else parent.numbers + len(rule.fields))
        put(self, "layout", rule and rule.layout)
        put(self, "flat", parent is None or (parent.flat and rule.flat))
        put(self, "full", count >= (MOST_OF_SMALL if small else MOST))
        put(self, "after", {})
        put(self, "recipes", {})
        put(self, "sole", None)
        put(self, "met", 0)

    def next(self, rule: Rule, operands: tuple[int, ...], layouts: Layouts) -> TraceNode:
        """The trace after one more operator, on operands of these numbers and layouts."""
        entry = (rule, *operands)
        return self.after.get(entry) or self._grown(entry, rule, operands, layouts)

    def _grown(
        self, entry: Any, rule: Rule, operands: tuple[int, ...], layouts: Layouts
    ) -> TraceNode:
        """A trace met for the first time, which is found as `entry` from now on."""
        _count()
        leaves = self.leaves
        for k, layout in zip(operands, layouts, strict=True):
            if ~k == len(leaves):
                leaves = (*leaves, layout)
        return self.after.setdefault(entry, TraceNode(self, rule, operands, leaves))

    def path(self) -> list[TraceNode]:
        """The trace nodes from the first operator to this one."""
        found, trace = list[TraceNode](), self
        while trace.parent is not None:
            found.append(trace)
            trace = trace.parent
        return found[::-1]

    def is_over(self, shape: tuple[int, ...]) -> bool:
        """Whether the last operator is a map of operands stretched to this shape, if at all."""
        return self.layout.shape == shape and (self.rule.even or self.rule.op.stretches)

    def recipe(
        self, outs: tuple[int, ...], target: Target | None = None, in_place: InPlace = ()
    ) -> Recipe:
        """The kernel that gives the results `outs`, and another one to `target`.

        Its operands are the leaves, the memory of `outs`, and that of the target.
        """
        key = outs, target, in_place
        found = self.recipes.get(key)
        if found is None:
            _count()
            work = self._work(outs, target, in_place)
            made = recipe_like(self._outline(outs, target, in_place), work, work.name)
            found = self.recipes[key] = made
            if key == ((self.count - 1,), None, ()):
                put(self, "sole", found)
        return found

    def _outline(
        self, outs: tuple[int, ...], target: Target | None, in_place: InPlace
    ) -> Outline | None:
        """What recipes of this trace for all shapes share; None where there are none such.

        What is written may be an operand, as a whole; where it overlaps one otherwise, or has gaps,
        the shape decides about the work.
        """
        shape, path = self.layout.shape, self.path()
        says = tuple([(trace.rule.kind, trace.operands) for trace in path])
        types = tuple([x.dtype for x in self.leaves])
        if not self.flat:
            if target is not None or in_place or not all(t.is_over(shape) for t in path):
                return None
            steps = [_stretched(x, shape) for x in self.leaves]
            return spreading((says, types, outs), shape, steps, results=len(outs))
        written = [(path[outs[k]].layout, near) for k, near in in_place]
        stored = None
        if target is not None:
            stored = target[0], target[1].dtype, target[2]
            written.append((target[1], target[2]))
        for layout, near in written:
            if layout.strides is not None or layout.shape != shape:
                return None
            if any(offset or self.leaves[leaf] is not layout for leaf, offset in near):
                return None
        return flat((says, types, outs, stored, in_place), self.layout)

    def _work(self, outs: tuple[int, ...], target: Target | None, in_place: InPlace) -> Work:
        path = self.path()
        count = len(self.leaves)
        layouts = [*self.leaves, *(path[k].layout for k in outs)]
        near = [(count + k, leaves) for k, leaves in in_place]
        stored = list(outs)
        if target is not None:
            value, layout, leaves = target
            near.append((len(layouts), leaves))
            layouts.append(layout)
            stored.append(value)
        anchors = [(k, 0) for k in range(len(layouts))]
        for dest, leaves in near:
            for leaf, offset in leaves:
                anchors[leaf] = (dest, offset)
        dests = [Dest(count + k, "saveto") for k in range(len(stored))]

        def express(side: int, buffers: Sequence[Buffer], draws: Draws) -> list[Expr | None]:
            values: list[Expr] = []
            for trace in path:
                args = [values[k] if k >= 0 else buffers[~k] for k in trace.operands]
                first = trace.numbers - len(trace.rule.fields)
                values.append(trace.rule.value(args, first, side))
            return [values[k] for k in stored]

        probes = [partial(express, side) for side in (0, 1)] if self.numbers else ()
        name = " ".join(dict.fromkeys(trace.rule.op.name for trace in path))
        return Work(name, layouts, partial(express, 0), dests, anchors, False, probes, self.numbers)


def _stretched(layout: Layout, shape: tuple[int, ...]) -> Sequence[int]:
    """The strides of an operand whose axes of 1, and missing ones, are stretched over a shape."""
    steps = layout.steps()
    if layout.shape == shape:
        return steps
    own = [0 if n == 1 else s for n, s in zip(layout.shape, steps, strict=True)]
    return [0] * (len(shape) - len(own)) + own


EMPTY = TraceNode(None, None, (), ())


def _count() -> None:
    """One more of what is kept; all of it is dropped when it is too much."""
    TraceNode.made += 1
    if TraceNode.made > _KEPT:
        TraceNode.made = 0
        EMPTY.after.clear()

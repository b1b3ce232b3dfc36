"""Splitting: calls (matrix products, convolutions) stand alone, on entries that have a place.

A library needs what it reads in memory, and gives its result there. What the plan does not know of
it cannot share, so a task with calls in it becomes several: operands that are no views of entries,
the calls, and what is left. A call without a library becomes its fallback expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from gnomon.expr.composite import Call
from gnomon.expr.ext.reshape import Reshape
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Node
from gnomon.graph.tasks.form import Form, Spec, seen_through
from gnomon.graph.tasks.task import Buffers, Task
from gnomon.plan.cut import laid_as

Supported = Callable[[Call], bool]
DEEPEST = 1000  # steps that each call may take: a cycle of fallbacks must end in an error


class Ref(NamedTuple):
    """A value within what a form is split into: read or made by the form, or `between` parts."""

    where: Literal["read", "made", "between"]
    number: int


class Piece(NamedTuple):
    """A part of a form: what it reads and makes."""

    form: Form
    reads: tuple[Ref, ...]
    made: tuple[Ref, ...]


class Pieces(NamedTuple):
    """What a form is split into, in order; `between` says the kind of each value on the way."""

    pieces: tuple[Piece, ...]
    between: tuple[tuple[str, Spec], ...]


def piece(values: Mapping[Ref, Expr], refs: Mapping[int, Ref]) -> Piece:
    """The part that makes `values`; `refs` says what the leaves are, by their ids."""
    every = postorder(list(values.values()))
    leaves = [n for n in every if isinstance(n, Buffer) and id(n) in refs]
    form = Form(list(values.values()), leaves, every)
    return Piece(form, tuple(refs[id(leaf)] for leaf in leaves), tuple(values))


def split(tasks: Sequence[Task], buffers: Buffers, supported: Supported) -> list[Task]:
    """`tasks`, with every call that is `supported` in a task of its own."""
    return [part for task in tasks for part in _parts(task, buffers, supported)]


def _parts(task: Task, buffers: Buffers, supported: Supported) -> list[Task]:
    form = task.form
    if form is None or not form.has_call:
        return [task]
    read = tuple([buffers.spec(e) if e in buffers else None for e in task.made])
    found = buffers.once((form, read, supported), lambda: _split(form, read, supported, task.name))
    return assembled(task, buffers, found)


def assembled(task: Task, buffers: Buffers, found: Pieces) -> list[Task]:
    """`task` as several: the pieces that its form is split into."""
    between = []
    for kind, spec in found.between:
        between.append(Entry(Node(None, f"{task.name}:{kind}"), 0))
        buffers.add(between[-1], spec)
    table = {"read": task.reads, "made": task.made, "between": between}
    return [
        Task(
            task.nodes,
            piece.form,
            tuple([table[r.where][r.number] for r in piece.reads]),
            tuple([table[r.where][r.number] for r in piece.made]),
        )
        for piece in found.pieces
    ]


def _split(form: Form, read: Sequence[Spec | None], supported: Supported, name: str) -> Pieces:
    """What `form` is split into; `read` are the specs of the values that others may read."""
    splitter = _Splitter(form, read, supported)
    splitter.split(name)
    between = splitter.between
    specs = tuple((kind, Spec(b.shape, b.dtype, b.strides)) for kind, b in between)
    return Pieces(tuple(splitter.done), specs)


class _Splitter:
    """Takes one form apart: `left` are the values still to be done."""

    def __init__(self, form: Form, read: Sequence[Spec | None], supported: Supported) -> None:
        self.supported = supported
        self.left = {Ref("made", k): v for k, v in enumerate(form.values)}
        self.done: list[Piece] = []
        self.between: list[tuple[str, Buffer]] = []
        self.again = {
            Ref("made", k): Buffer(*spec) for k, spec in enumerate(read) if spec is not None
        }
        self.refs = {id(leaf): Ref("read", k) for k, leaf in enumerate(form.leaves)}
        self.refs.update((id(b), r) for r, b in self.again.items())

    def split(self, name: str) -> None:
        """Leave in `done` the parts that together do what the form says, in order."""
        calls = self._calls()
        for _ in range(DEEPEST * len(calls)):
            self._take(calls[0])
            calls = self._calls()
            if not calls:
                break
        else:
            raise RecursionError(f"{name}: the fallback of a call leads back to itself")
        if self.left:
            self._add(self.left)

    def _calls(self) -> list[Call]:
        """The calls in what is left, innermost first."""
        return [n for n in postorder(list(self.left.values())) if isinstance(n, Call)]

    def _take(self, call: Call) -> None:
        """Make a part of `call`, or put its fallback in its place."""
        if not self.supported(call):
            self._replace({call: call.fallback()})  # type: ignore[attr-defined]
            return
        outside = {c: self._place(c) for c in call.children if seen_through(c) is None}
        if outside:
            self._replace(outside)
            return
        given = self._as_read(call)
        ref = next((r for r, v in self.left.items() if v is given), None)
        rest = [v for r, v in self.left.items() if r is not ref]
        again = any(n is given for n in postorder(rest))
        if ref is None or (again and ref not in self.again):
            self._replace({given: self._place(given)})
            return
        self._add({ref: self.left.pop(ref)})
        if again:
            self._replace({given: self.again[ref]})

    def _as_read(self, call: Call) -> Expr:
        """The transpose or reshape of `call` where that is all that is read of it, else `call`."""
        values = list(self.left.values())
        readers = {id(n): n for n in postorder(values) if any(c is call for c in n.children)}
        only = next(iter(readers.values())) if len(readers) == 1 else None
        turned = isinstance(only, Transpose | Reshape) and not any(v is call for v in values)
        return only if turned and only is not None else call

    def _replace(self, by: Mapping[Expr, Expr]) -> None:
        values = substitute(list(self.left.values()), by)
        self.left = dict(zip(self.left, values, strict=True))

    def _place(self, value: Expr) -> Buffer:
        """A buffer of its own for `value`, filled by a part before."""
        ref, found = Ref("between", len(self.between)), Buffer(value.shape, value.dtype)
        if isinstance(value, Call) and value.pictures:
            seen = seen_through(value.children[0])
            found = found if seen is None else laid_as(seen[1], found)
        self.between.append((type(value).__name__.lower(), found))
        self.refs[id(found)] = ref
        self._add({ref: value})
        return found

    def _add(self, values: Mapping[Ref, Expr]) -> None:
        self.done.append(piece(values, self.refs))

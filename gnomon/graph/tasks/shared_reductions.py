"""Shared reductions: what a task reduces and reads at many elements is made by a task before it.

A task of several values, such as a normalization and its mean, stores values of unlike shapes by
kernels of their own, and each would reduce anew. As a task before it, the reduction is done once,
and what is left is often a map, which is composed with its readers. A task of one value stays as it
is: its kernel reduces no more often than needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.expr.ext.reduce import Broadcast, Reduce
from gnomon.expr.ext.reshape import Reshape, reshape
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.graph.tasks.form import Form, Spec
from gnomon.graph.tasks.split import Piece, Pieces, Ref, assembled, piece
from gnomon.graph.tasks.task import Buffers, Task
from gnomon.shape import row_major


def cut_reductions(tasks: Sequence[Task], buffers: Buffers) -> list[Task]:
    """`tasks`, those of values of unlike shapes that share a reduction as two."""
    return [part for task in tasks for part in _parts(task, buffers)]


def _parts(task: Task, buffers: Buffers) -> list[Task]:
    form = task.form
    if form is None or form.has_call or len({v.shape for v in form.values}) < 2:
        return [task]
    read = tuple([buffers.spec(e) if e in buffers else None for e in task.made])
    found = buffers.once(("reductions", form, read), lambda: _cut_apart(form, read))
    return assembled(task, buffers, found) if len(found.pieces) > 1 else [task]


def _cut_apart(form: Form, read: Sequence[Spec | None]) -> Pieces:
    """The parts of `form`: the reductions, and what reads them; `read` as in `split`."""
    cuts = _cuts(form)
    made = {Ref("made", k): v for k, v in enumerate(form.values)}
    first = {r: v for r, v in made.items() if _shown(v) in cuts or not _reads(v, cuts)}
    rest = {r: v for r, v in made.items() if r not in first}
    refs = {id(leaf): Ref("read", k) for k, leaf in enumerate(form.leaves)}
    if not rest:
        return Pieces((Piece(form, (*refs.values(),), (*made,)),), ())
    between: list[tuple[str, Spec]] = []
    put: dict[Expr, Expr] = {}
    specs = {r: s for r in first if (s := read[r.number]) is not None}
    for cut in cuts:
        ref = next((r for r in specs if _shown(first[r]) is cut), None)
        if ref is None:
            ref = Ref("between", len(between))
            first[ref] = cut
            specs[ref] = Spec(cut.shape, cut.dtype, row_major(cut.shape))
            between.append(("reduce", specs[ref]))
        stored: Buffer = Buffer(*specs[ref])
        refs[id(stored)] = ref
        put[cut] = reshape(stored, cut.shape)
    values = substitute(list(rest.values()), put)
    return Pieces(
        (piece(first, refs), piece(dict(zip(rest, values, strict=True)), refs)), tuple(between)
    )


def _cuts(form: Form) -> dict[Expr, None]:
    """The reduced values to be stored: each is read at many elements of a value.

    Those that another value needs too, and those that a kernel would store for itself.
    """
    found: dict[Expr, None] = {}
    for value in form.values:
        others = set(postorder([v for v in form.values if v.shape != value.shape]))
        stack, seen = [value], {value}
        while stack:
            node = stack.pop()
            source = _repeated(node)
            if source is not None and (source in others or _is_apart(node)):
                found[source] = None
            elif not isinstance(node, Reduce):
                stack += [c for c in node.children if c not in seen]
                seen.update(node.children)
    return found


def _repeated(node: Expr) -> Expr | None:
    """The reduced value that `node` repeats; None where it does something else."""
    source = _shown(node.src) if isinstance(node, Broadcast) else None
    if source is None or not any(isinstance(n, Reduce) for n in postorder([source])):
        return None
    return source


def _shown(value: Expr) -> Expr:
    """What `value` shows in another shape."""
    while isinstance(value, Reshape):
        value = value.src
    return value


def _is_apart(node: Expr) -> bool:
    """Whether what is repeated belongs to no row: to elements that lie apart, or to all."""
    assert isinstance(node, Broadcast)
    wide = [a for a, n in enumerate(node.shape) if n > 1]
    kept = [a for a in wide if a not in node.along]
    return not kept or any(a < kept[-1] for a in wide if a in node.along)


def _reads(value: Expr, cuts: Iterable[Expr]) -> bool:
    return not set(postorder([value])).isdisjoint(cuts)

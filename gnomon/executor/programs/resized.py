"""Layouts for sizes that a graph was not bound for yet: two that it was bound for tell of a third.

The first two layouts of a graph, in which some sizes of what is bound differ, are made the usual
way. Each is a *sample*: a structure (tasks, what they read and make, and where that is stored) and
numbers (shapes, and what kernels and products are given). Where two samples have one structure,
and each number either is the same in both, or grew as a product of sizes or a number that is said
did, they are *kin*: for a third set of sizes, numbers are put in, and memory is planned anew. No
expression is read. What a library does as a whole is made anew, for the numbers of its call.

That numbers follow so is for the operators to say: all of them must be maps, movements,
reductions, or say which sizes do nothing but count (`Op.free`); other sizes need to stay as they
are. Said for any sizes are the shapes of all values, which are inferred, and what operators add.

A graph of which all bindings have the same sizes is not looked at.

States: a sample is *complete* once the steps of all its tasks were made, in both passes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from gnomon import config
from gnomon.executor.programs.draws import Draws
from gnomon.executor.programs.layout import Layout, Mode, Network, lay_out, size_of
from gnomon.expr.ext.philox import Philox
from gnomon.expr.ext.reduce import Broadcast, Reduce
from gnomon.expr.ext.reshape import Reshape
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.node import Buffer, Cast, Map
from gnomon.graph.node import Entry, Graph, Node
from gnomon.graph.tasks import memory
from gnomon.graph.tasks.form import Spec
from gnomon.graph.tasks.share import sharings
from gnomon.graph.tasks.task import Buffers, Task
from gnomon.ops.op import Op
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.kernel import Count, counted
from gnomon.runtime.kernels.rebind import Values, locator, pattern
from gnomon.runtime.statements.family import OfCall, read
from gnomon.runtime.statements.growth import Growth, Pair, Pairs, paired

if TYPE_CHECKING:
    from gnomon.runtime.statements.family import OfStep

Shape = tuple[int, ...]

MOST = 8  # kin of one structure, and structures of one graph
SAMPLES = 3  # kept of one structure: of some, sizes that are equal by chance make other kernels
NOWHERE = Buffer(())
COUNTING = Map, Cast, Broadcast, Philox, Reduce, Reshape, Transpose  # sizes are loops alone


class Done(NamedTuple):
    """What the steps of a task do with operands of so many bytes; None: that cannot be told.

    `stored` are the numbers of the values that they store: views lie where they belong.
    """

    steps: Sequence[OfStep] | None
    nbytes: int
    stored: list[int]


class Sample:
    """A layout that was made the usual way, without what has memory, and what its steps do."""

    def __init__(self, net: Network, layout: Layout) -> None:
        roles = {id(b): k for k, b in enumerate(_callers(net))}
        kept = [e for read in layout.kept.values() for e in read]
        tasks = (*layout.prepare, *layout.tasks)
        every = dict.fromkeys([*kept, *(e for t in tasks for e in (*t.reads, *t.made))])
        number = {e: k for k, e in enumerate(every)}
        used = [e for e in every if e not in layout.stores]
        self.sizes, self.shapes, self.said = _sizes(net), _shapes(net), _said(net)
        self.spans = [free.spans for free in net.free.values()]
        windowed = [node for node, free in net.free.items() if free.spans]
        self.plain = {node.op for node in net.graph.topo} - {node.op for node in windowed}
        self.owners, self.counts = layout.draws.owners, tuple(layout.draws.counts)
        self.specs = {e: layout.buffers.spec(e) for e in used}
        self.roles = {e: k for e in used if (k := roles.get(id(layout.buffers[e]))) is not None}
        self.stores = {e: roles[id(d.dest)] for e, d in layout.stores.items()}
        self.heads = [k for k, e in enumerate(net.heads) if e in layout.heads]
        self.structure = (
            [_structure(t, number) for t in tasks],
            [(s.dtype, len(s.shape), self.roles.get(e)) for e, s in self.specs.items()],
            [(number[e], k, layout.stores[e].saver) for e, k in self.stores.items()],
            [{number[e] for e in part} for part in (layout.homes, layout.added, layout.kept)],
            (layout.forward, layout.repeat, layout.repeatable, self.heads, self.owners),
        )
        self.values = [value for block in layout.plan.blocks for value in block.values]
        self.shared = sharings(layout.tasks)
        self.in_place = _in_place(layout.plan, self.shared)
        self.rest = replace(
            layout,
            buffers=Buffers({}, {}),
            draws=Draws(layout.draws.ctx),
            plan=memory.plan([]),
            stores={e: d._replace(dest=NOWHERE) for e, d in layout.stores.items()},
        )
        self.done: dict[Task, Done] = {}
        self.compared = False
        self.is_told = True  # as far as steps were made

    def note(
        self, task: Task, stored: list[int], operands: Sequence[Buffer], steps: Sequence[Step]
    ) -> None:
        """Keep what the steps of a task do, which store these of its values."""
        nbytes = sum(map(size_of, operands))
        done = self.done[task] = Done(read(steps, locator(operands)), nbytes, stored)
        self.is_told &= done.steps is not None

    @property
    def is_complete(self) -> bool:
        """Whether the steps of all tasks were made."""
        return len(self.done) == len(self.rest.tasks) + len(self.rest.prepare)


def _structure(task: Task, number: dict[Entry, int]) -> tuple[Any, ...]:
    """What a task is, beside numbers and what its steps are."""
    names = [(n.name, type(n.op)) for n in task.nodes]
    seen = None if task.form is None else task.form.seen
    return names, [number[e] for e in task.reads], [number[e] for e in task.made], seen


def _in_place(plan: memory.Plan, shared: Iterable[memory.Sharing]) -> list[bool]:
    """Which views lie where what they show does: nothing is done for these."""
    places = plan.places
    return [places.get(s.made) == places.get(s.source) for s in shared if s.view]


def _callers(net: Network) -> list[Buffer]:
    """The caller's buffers, and those of the gradients of outputs."""
    outputs, grads = (b for b in net.outputs if b is not None), (b for b, _ in net.grads.values())
    return [*net.inputs.values(), *outputs, *grads, *net.heads.values()]


def _sizes(net: Network) -> Shape:
    return tuple([n for b in net.inputs.values() for n in b.shape])


def _shapes(net: Network) -> Shape:
    """The sizes of all values, which are inferred."""
    return tuple([n for e in net.graph.entries for n in net.shapes[e]])


def _said(net: Network) -> Shape:
    """What operators say of their work beside."""
    return tuple([n for free in net.free.values() for n in free.said])


class Work(NamedTuple):
    """What is done by a step, and the numbers that it is given anew; `counts` come of them."""

    step: OfStep
    grown: dict[Hashable, Pair]
    counts: dict[Hashable, Count]

    def values(self, numbers: dict[Pair, int]) -> Values:
        """What is put in."""
        found = {name: numbers[pair] for name, pair in self.grown.items()}
        counts = {name: c._replace(whole=found[name]).word for name, c in self.counts.items()}
        return found | counts


class Part(NamedTuple):
    """What the steps of a task do with operands: the values of these entries, or where those are
    delivered; in the sample they had so many bytes."""

    work: list[Work]
    operands: list[Entry]
    nbytes: int


class Kin:
    """Two samples of one structure, of which the `last` is taken for other sizes."""

    def __init__(
        self, growth: Growth, first: Sample, last: Sample, work: dict[Task, list[Work]]
    ) -> None:
        self.growth, self.last = growth, last
        self.parts = {task: self._part(task, parts) for task, parts in work.items()}
        self.counts = paired(first.counts, last.counts)  # of draws
        both = zip(first.specs.values(), last.specs.values(), strict=True)
        every = [(paired(a.shape, b.shape), b.dtype, paired(a.strides, b.strides)) for a, b in both]
        self.kinds = {kind: k for k, kind in enumerate(dict.fromkeys(every))}  # of specs
        self.specs = {e: self.kinds[kind] for e, kind in zip(last.specs, every, strict=True)}

    def _part(self, task: Task, work: list[Work]) -> Part:
        done = self.last.done[task]
        entries = [*task.reads, *(task.made[k] for k in done.stored)]
        return Part(work, entries if work else [], done.nbytes)

    @property
    def is_told(self) -> bool:
        """Whether it is clear what all numbers are for other sizes."""
        parts = (part for shape, _, strides in self.kinds for part in (shape, strides))
        return all(map(self.growth.tells, chain([self.counts], parts)))

    def layout(self, net: Network, mode: Mode, draws: Draws) -> Layout | None:
        """The layout of a network of this structure; None where its sizes are none of these."""
        numbers = self.growth.numbers(_sizes(net), (*_shapes(net), *_said(net)))
        ready = None if numbers is None else self._ready(numbers)
        if numbers is None or ready is None:
            return None
        last, callers = self.last, _callers(net)
        buffers = Buffers({}, {})
        for head, buffer in net.heads.items():
            buffers.put(head, buffer)
        specs = [Spec(_put(s, numbers), t, _put(strides, numbers)) for s, t, strides in self.kinds]
        for entry, kind in self.specs.items():
            spec, role = specs[kind], last.roles.get(entry)
            if role is None:
                buffers.add(entry, spec)
            elif callers[role].shape != spec.shape:
                return None
            else:
                buffers.put(entry, callers[role])
        sizes = [size_of(spec) for spec in specs]
        nbytes = {e: sizes[kind] for e, kind in self.specs.items()}
        plan = memory.plan([_of_size(v, nbytes) for v in last.values], last.shared)
        if _in_place(plan, last.shared) != last.in_place:
            return None
        for owner, count in zip(last.owners, _put(self.counts, numbers), strict=True):
            draws.of(owner).state(count)
        dests = {e: callers[role] for e, role in last.stores.items()}
        nbytes |= {e: size_of(dest) for e, dest in dests.items()}
        stores = {e: d._replace(dest=dests[e]) for e, d in last.rest.stores.items()}
        heads, rest = frozenset([list(net.heads)[k] for k in last.heads]), last.rest
        made = replace(rest, mode=mode, buffers=buffers, draws=draws, stores=stores, heads=heads)
        made.plan = plan
        every = dict(buffers.items()) | dests
        made.resized = Resized(self.parts, ready, every, nbytes, draws.states)
        return made

    def _ready(self, numbers: dict[Pair, int]) -> dict[Task, list[Any]] | None:
        """What each step is made of; None where a library does not do the same with that."""
        found = dict[Task, list[Any]]()
        for task, part in self.parts.items():
            ready = found[task] = [work.step.ready(work.values(numbers)) for work in part.work]
            if None in ready:
                return None
        return found


def _of_size(value: memory.Value, nbytes: Mapping[Any, int]) -> memory.Value:
    """A value of the memory plan with the size that it has here."""
    key, born, dies = value.key, value.born, value.dies
    return memory.Value(key, nbytes[key], born, dies, value.buffer, value.branch)


class Resized:
    """Makes the steps of a layout whose numbers were put in.

    `buffers` are those of all values, or where they are delivered, `nbytes` their bytes.
    """

    def __init__(
        self,
        parts: Mapping[Task, Part],
        ready: Mapping[Task, list[Any]],
        buffers: Mapping[Entry, Buffer],
        nbytes: Mapping[Entry, int],
        states: Sequence[Buffer],
    ) -> None:
        self._parts, self._ready = parts, ready
        self._buffers, self._nbytes, self._states = buffers, nbytes, states

    def says_addresses(self, tasks: Iterable[Task]) -> bool:
        """Whether all addresses of these tasks' operands are where their steps say, not elsewhere.

        Those of kernels and products are.
        """
        every = (work.step for task in tasks for work in self._parts[task].work)
        return not any(isinstance(step, OfCall) for step in every)

    def steps(self, task: Task) -> list[Step]:
        """The steps of a task, on operands that have memory."""
        works, entries, before = self._parts[task]
        buffers, nbytes, found = self._buffers, self._nbytes, list[Step]()
        operands = [*[buffers[e] for e in entries], *self._states]
        times = sum([nbytes[e] for e in entries]) / max(before, 1)
        for work, ready in zip(works, self._ready[task], strict=True):
            owned = [operands[w.operand] for w in work.step.where]
            found += work.step.made([b.address for b in owned], ready, times, owned)
        return found


def _put(pairs: Pairs, numbers: dict[Pair, int]) -> Shape:
    return tuple([numbers.get(pair, pair[1]) for pair in pairs])


def related(first: Sample, last: Sample) -> Kin | None:
    """Two complete samples as kin; None where they do not tell of others."""
    if first.structure != last.structure or len(first.said) != len(last.said):
        return None
    shapes, said = paired(first.shapes, last.shapes), paired(first.said, last.said)
    growth = Growth(first.sizes, last.sizes, shapes, said)
    if not growth.is_clear:
        return None
    work, windows = {}, first.spans != last.spans
    both = [(*sample.rest.prepare, *sample.rest.tasks) for sample in (first, last)]
    for then, now in zip(*both, strict=True):
        found = _work(growth, first.done[then].steps, last.done[now].steps)
        if found is None or (windows and not _counts(now, found, last.plain)):
            return None
        work[now] = found
    kin = Kin(growth, first, last, work)
    return kin if kin.is_told else None


def _counts(task: Task, work: list[Work], plain: set[Any]) -> bool:
    """Whether a task does the same where windows go along other sizes: by a library, or by rules
    that look at no size, or where its operators, `plain` ones, have no windows."""
    if all(w.step.kernel is None for w in work):
        return True
    if all(getattr(node.op, "op", node.op) in plain for node in task.nodes):
        return True
    nodes = () if task.form is None else task.form.nodes
    return all(isinstance(node, COUNTING) for node in nodes if node.children)


def _work(growth: Growth, then: Any, now: Any) -> list[Work] | None:
    """What is done by the steps of a task in two samples; None where that is not the same."""
    if then is None or now is None or len(then) != len(now):
        return None
    found = [_grown(a, b) for a, b in zip(then, now, strict=True)]
    told = [work for work in found if work is not None and growth.tells(work.grown.values())]
    return told if len(told) == len(found) else None


def _grown(then: OfStep, now: OfStep) -> Work | None:
    """What a step of two samples is given; None where it is not one, or a number is no count."""
    if not now.is_like(then):
        return None
    before, found = then.values(), Work(now, {}, {})
    for name, n in now.values().items():
        if n == before[name] or name[0] in ("leaf", "scratch", "tasks"):
            continue
        found.grown[name] = before[name], n
        if name[0] == "scalar":
            first, last = counted(before[name]), counted(n)
            if first is None or last is None or first[1:] != last[1:]:
                return None
            found.grown[name], found.counts[name] = (first.whole, last.whole), last
    return found


class Known:
    """What is known of a structure: the last samples, the newest of them to be compared with those
    before, and kin."""

    def __init__(self, mode: Mode) -> None:
        self.mode, self.samples = mode, list[Sample]()
        self.taken = 0  # in all
        self.kin: list[Kin] = []

    def layout(self, net: Network, mode: Mode, draws: Draws) -> Layout | None:
        """That of kin, where there are such."""
        newest = self.samples[-1] if self.samples else None
        if newest is not None and newest.is_complete and not newest.compared:
            newest.compared = True
            before = [s for s in reversed(self.samples[:-1]) if s.is_complete]
            made = next((kin for s in before if (kin := related(s, newest)) is not None), None)
            self.kin = self.kin if made is None else [made, *self.kin[: MOST - 1]]
        return next((x for kin in self.kin if (x := kin.layout(net, mode, draws))), None)

    @property
    def is_told(self) -> bool:
        """Whether it can be told what all steps do, as far as they were made."""
        return all(s.is_told for s in self.samples)

    def learn(self, net: Network, layout: Layout) -> None:
        """Note a layout that was made the usual way."""
        native = all(t.is_expression for t in layout.tasks)
        hopeful = self.kin or self.taken < MOST  # some of the first were kin
        if hopeful and native:
            self.taken += 1
            made = layout.noted = Sample(net, layout)
            others = [s for s in self.samples if s.sizes != made.sizes]
            self.samples = [*others[1 - SAMPLES :], made]


class OfGraph(NamedTuple):
    """The sizes that a graph was bound for first, and what is known of its structures."""

    sizes: Shape
    known: dict[Hashable, Known]


_graphs: WeakKeyDictionary[Graph, OfGraph] = WeakKeyDictionary()


def laid_out(net: Network, mode: Mode, draws: Draws) -> Layout:
    """The layout of `net` for one mode, by those of the same graph for other sizes if that may be.

    Where all were for the same sizes, or steps did what cannot be told, nothing is noted.
    """
    of = _graphs.get(net.graph)
    if of is None:
        of = _graphs[net.graph] = OfGraph(_sizes(net), {})
    told = all(known.is_told for known in of.known.values() if known.mode == mode)
    several = told and not mode.alone and (of.known or of.sizes != _sizes(net))
    outline = _outline(net, mode, draws) if several else None
    if outline is None:
        return lay_out(net, mode, draws)
    if outline not in of.known and len(of.known) >= MOST:
        of.known.clear()
    known = of.known.setdefault(outline, Known(mode))
    found = known.layout(net, mode, draws)
    if found is None:
        found = lay_out(net, mode, draws)
        known.learn(net, found)
    return found


def _outline(net: Network, mode: Mode, draws: Draws) -> Hashable:
    """All that decides of a layout beside the sizes that do nothing but count; None: any size."""
    callers = _callers(net)
    nodes = [n for n in net.graph.topo if n.op is not None]
    decides = [decisive(n, net, mode) for n in nodes]
    same = pattern([b for b in callers if b.address])
    dense = all(b.contiguous and b.device == "cpu" for b in callers)
    if None in decides or same is None or not dense:
        return None
    savers = tuple([saver for _, saver in net.grads.values()])
    kept = tuple([b is None for b in net.outputs]), tuple(net.grads), savers, len(net.heads)
    types = tuple([(b.dtype, len(b.shape), bool(b.address)) for b in callers])
    how = mode, draws.ctx, threads.num_threads(), config.get("backward_do_mirror")
    return how, tuple(decides), same, kept, types


def decisive(node: Node, net: Network, mode: Mode) -> Hashable:
    """The sizes by which an operator, or its gradient, decides; None where any may be one."""
    op, shapes = node.op, [net.shapes[e] for e in node.inputs]
    if not isinstance(op, Op) or not op.is_expression or (op.guard and op.guard(*shapes)):
        return None
    if op.free is not None:
        free = net.free.get(node)
        return None if free is None else free.fixed
    if mode.differentiate and not op.derives:
        return None
    if op.moves is not None:
        return _cut(op.moves(shapes[0]), shapes[0])
    counts = op.elementwise or op.reshapes or op.reduces is not None
    return () if counts or not shapes else None  # of constants, parameters say the sizes


def _cut(moves: Any, shape: Shape) -> Hashable:
    """What is cut off of axes that do not come over as a whole; the size cut from only counts."""
    begin = (*moves.begin, *[0] * (len(shape) - len(moves.begin)))
    found: list[Hashable] = [n for axis, n in enumerate(shape) if axis not in moves.axes]
    for n, axis, step in zip(moves.shape, moves.axes, moves.steps, strict=True):
        if axis < 0:
            found.append((axis, n))
        elif step != 1 or begin[axis] or n != shape[axis]:
            found.append((axis, n, step, begin[axis]))
    return tuple(found)

"""The layout of a bound graph: which tasks in which order, and where every value lives.

Nothing is allocated or compiled here. The steps, one function each: gradient graph, expressions,
deliveries (what goes to the caller's arrays), splitting off calls, fusion, memory plan.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon import config
from gnomon.context import Context as Device
from gnomon.dtype import DType, float32
from gnomon.executor.programs.draws import Draws
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer, Expr
from gnomon.graph.gradient import Backward, backward
from gnomon.graph.node import Entry, Graph, Node, states_of
from gnomon.graph.passes.pipeline import rewritten
from gnomon.graph.place import contexts
from gnomon.graph.recompute import recomputed
from gnomon.graph.show import show_nodes, show_tasks, told
from gnomon.graph.tasks import memory
from gnomon.graph.tasks.cost_model import Cost, cost
from gnomon.graph.tasks.dce import alive
from gnomon.graph.tasks.form import Form, Spec
from gnomon.graph.tasks.fuse import fuse
from gnomon.graph.tasks.regions import Region, lasting, lighter, regions, show_regions, too_large
from gnomon.graph.tasks.share import aliases, sharings
from gnomon.graph.tasks.shared_reductions import cut_reductions
from gnomon.graph.tasks.split import split
from gnomon.graph.tasks.task import (
    Buffers,
    Context,
    Task,
    alike,
    express,
    lives,
    used_entries,
    whole,
)
from gnomon.graph.typed_graph import Kept, Purpose, TypedGraph
from gnomon.ground.record import cached_property, record
from gnomon.ops.create import full
from gnomon.ops.infer import Free
from gnomon.ops.property import PropertyOp
from gnomon.plan.cut import reach
from gnomon.runtime.devices import device as devices
from gnomon.runtime.execution import threads
from gnomon.runtime.statements.prepare import backend_of

if TYPE_CHECKING:
    from gnomon.executor.programs.resized import Resized, Sample

Shape = tuple[int, ...]


class Delivery(NamedTuple):
    """A value that is stored into an array of the caller, by `saver`."""

    entry: Entry
    dest: Buffer
    saver: str


@record(slots=False)
class Network:
    """A graph with everything known of it, and the caller's arrays as buffers.

    `outputs` are None where no array is to get one. `grads` holds the wanted gradients with their
    savers; `heads` the gradients of the outputs, or of the first ones: none flows from the others.
    Their buffers need memory only where a gradient reads them. `handed` holds, by operator object,
    of which each node on data has its own, what is handed on from forward to backward, and from one
    mode's program to another's.
    """

    graph: Graph
    shapes: Mapping[Entry, Shape]
    types: Mapping[Entry, DType]
    inputs: Mapping[Node, Buffer]
    outputs: Sequence[Buffer | None]
    grads: Mapping[Node, tuple[Buffer, str]]
    heads: Mapping[Entry, Buffer]
    handed: dict[object, object] = field(default_factory=dict)

    @cached_property
    def free(self) -> dict[Node, Free]:
        """What operators say of their sizes, where they do."""
        nodes = [n for n in self.graph.topo if n.op is not None and n.op.free is not None]
        said = ((n, n.op.free(*[self.shapes[e] for e in n.inputs])) for n in nodes)
        return {node: free for node, free in said if free is not None}


class Mode(NamedTuple):
    """What a program does: train or predict, with a backward pass or without, fused or not.

    One that is `alone` takes nothing from programs for other sizes: its forms are of its own.
    """

    train: bool
    differentiate: bool
    fuse: bool = True
    alone: bool = False


@record(frozen=False, slots=False)
class Layout:
    """Tasks and a place for each value.

    The first `forward` tasks are the forward pass; the last ones of these, from `repeat` on, change
    states, and are left out where the pass is done again. The last tasks of all change the states
    that the backward pass changes. `prepare` are done before, and only where
    a parameter has changed: they make the values of `kept`, each of the entries that it lists.
    `homes` live in the caller's arrays; `added` are those of them that are added to what is there.
    Where there are several contexts, `contexts` says that of each node. `regions` are the branches
    of those tasks that run side by side, by the first of them all; they are neighbours. Where it
    `keeps_forward`, the backward pass leaves all that it reads: classes of users compute, and a
    second backward pass calls no `forward` of theirs again.

    Forms have the sizes that they were made for: where it is `resized`, that makes the steps.
    What `noted` is takes notice of those that are made, for other sizes.
    """

    mode: Mode
    buffers: Buffers
    draws: Draws
    tasks: list[Task] = field(default_factory=list)
    forward: int = 0
    repeat: int = 0
    prepare: list[Task] = field(default_factory=list)
    kept: dict[Entry, tuple[Entry, ...]] = field(default_factory=dict)
    stores: dict[Entry, Delivery] = field(default_factory=dict)
    homes: set[Entry] = field(default_factory=set)
    added: set[Entry] = field(default_factory=set)
    aliases: Mapping[Entry, Entry] = field(default_factory=dict)
    plan: memory.Plan = field(default_factory=lambda: memory.plan([]))
    repeatable: bool = True
    keeps_forward: bool = False
    heads: frozenset[Entry] = frozenset()
    contexts: Mapping[Node, Device] = field(default_factory=dict)
    regions: dict[Task, tuple[Sequence[Task], ...]] = field(default_factory=dict)
    resized: Resized | None = None
    noted: Sample | None = None

    @cached_property
    def device(self) -> devices.Device:
        """What has the memory of all values: of several contexts, each is a processor."""
        return devices.find(self.draws.ctx)

    @cached_property
    def supported(self) -> Callable[[Call], bool]:
        """Which calls are tasks of their own: those of the device's libraries, and of those that
        would unroll there, the processor's."""
        here = backend_of(Buffer((), device=self.device.name)).libraries.supported
        return here if self.device.host else lambda call: call.unrolls or here(call)

    def place_of(self, task: Task) -> Device:
        """The context that a task belongs to: that of the node that ends it."""
        return self.contexts.get(task.nodes[-1], self.draws.ctx)

    @cached_property
    def lanes(self) -> dict[Device, int]:
        """The contexts of all tasks, numbered."""
        found = dict.fromkeys(map(self.place_of, self.tasks)) or {self.draws.ctx: None}
        return {ctx: k for k, ctx in enumerate(found)}

    @cached_property
    def branch_of(self) -> dict[Task, int]:
        """Which branch of its region a task is in."""
        return {t: k for chains in self.regions.values() for k, c in enumerate(chains) for t in c}


def lay_out(net: Network, mode: Mode, draws: Draws) -> Layout:
    """The layout of `net` for one mode."""
    device = devices.find(draws.ctx).name
    net = _rewritten(net, mode, device)
    back = _differentiated(net, mode)
    known = {**net.shapes, **back.shapes}, {**net.types, **back.types}
    layout = Layout(mode, Buffers(*known, device), draws)
    for node, buffer in net.inputs.items():
        layout.buffers.put(Entry(node, 0), buffer)
    for head, buffer in net.heads.items():
        layout.buffers.put(head, buffer)
    layout.contexts = contexts([*net.graph.topo, *back.nodes])
    every = [n for n in net.graph.topo if n.op is not None]
    nodes = _guarded([n for n in every if not isinstance(n.op, Kept)], *known)
    places = zip(net.graph.outputs, net.outputs, strict=True)
    outputs = [Delivery(e, b, "saveto") for e, b in places if b is not None]
    grads = [Delivery(back.grads[n], *net.grads[n]) for n in net.grads if n in back.grads]
    _settle_homes(layout, nodes, outputs)
    _settle_homes(layout, back.nodes, grads)
    updates, later = _updates(layout, nodes), _updates(layout, back.nodes)
    used = used_entries([*nodes, *back.nodes], (d.entry for d in (*outputs, *grads)))
    used.update(e for t in (*updates, *later) for e in t.reads)
    context = _context(layout, *known, used)
    _prepare(layout, [n for n in every if isinstance(n.op, Kept)], used, context)
    forward = express(nodes, layout.buffers, used, context)
    behind = express(back.nodes, layout.buffers, used, context) + _zeros(layout, net, back)
    forward = _delivered(layout, forward, outputs)
    behind = _delivered(layout, behind, grads)
    read_later = {e for t in (*updates, *behind, *later) for e in t.reads}
    layout.heads = frozenset(read_later & net.heads.keys())
    forward = _finished(layout, forward, read_later)
    behind = _finished(layout, behind, {e for t in later for e in t.reads})
    updates, later = _finished(layout, updates, ()), _finished(layout, later, ())
    layout.tasks = [*forward, *updates, *behind, *later]
    layout.repeat, layout.forward = len(forward), len(forward) + len(updates)
    changes = [e for t in (*updates, *later) for e in t.made]
    changed = {layout.stores[e].entry for e in changes if e in layout.stores}
    layout.repeatable = not any(e in changed for t in forward for e in t.reads)
    layout.keeps_forward = mode.differentiate and any(isinstance(n.op, PropertyOp) for n in nodes)
    arguments = frozenset((*layout.kept, *(Entry(n, 0) for n in net.graph.arguments)))
    plan_memory(layout, arguments)
    layout.buffers.known.clear()  # only passes ask
    _show(layout)
    return layout


def _rewritten(net: Network, mode: Mode, device: str) -> Network:
    """`net` as passes make it; its variables, outputs and their numbers stay what they are."""
    if not mode.fuse:
        return net
    purpose = Purpose(mode.train, mode.differentiate, device)
    typed = rewritten(TypedGraph(net.graph, net.shapes, net.types), purpose)
    return replace(net, graph=typed.graph, shapes=typed.shapes, types=typed.types)


def _differentiated(net: Network, mode: Mode) -> Backward:
    if not mode.differentiate:
        return Backward({}, (), {}, {})
    wrt, heads = list(net.grads), list(net.heads)
    nothing = Backward({}, (), {}, {})
    found = backward(net.graph, net.shapes, net.types, wrt, heads, mode.train)
    told("gradient", nothing, found, _show_backward)
    everywhere = bool(config.get("backward_do_mirror"))
    again = recomputed(net.graph, found, net.shapes, net.types, everywhere)
    return told("recompute", found, again, _show_backward)


def _show_backward(back: Backward) -> str:
    return show_nodes(back.nodes, back.shapes)


def _settle_homes(layout: Layout, nodes: Collection[Node], wanted: Iterable[Delivery]) -> None:
    """Let values live in the caller's arrays from the start.

    These are the ones delivered by writing, and those that operators on data can add themselves.
    """
    made = set(nodes)
    read = {e for node in nodes for e in node.inputs}
    for entry, dest, saver in wanted:
        node = entry.node
        if node not in made:
            continue
        added = saver == "plusto" and entry not in read
        added = added and not layout.buffers.takes_expression(node.op)
        alike = layout.buffers[entry].dtype is dest.dtype  # else it is converted on the way
        if (saver == "saveto" or added) and alike and entry not in layout.homes:
            layout.homes.add(entry)
            layout.buffers.put(entry, dest)
            if added:
                layout.added.add(entry)


def _context(
    layout: Layout,
    shapes: Mapping[Entry, Shape],
    types: Mapping[Entry, DType],
    used: Collection[Entry],
) -> Context:
    """What operators may ask for while they say their expressions."""

    def context(node: Node) -> Mapping[str, Any]:
        entries = node.entries()
        return {
            "train": layout.mode.train,
            "random": layout.draws.of(node.name),
            "out_shapes": [shapes[e] for e in entries],
            "out_types": [types[e] for e in entries],
            "used": [e in used for e in entries],
        }

    return context


def _prepare(
    layout: Layout, nodes: Iterable[Node], used: Collection[Entry], context: Context
) -> None:
    """Tasks for what is made of parameters alone, and kept."""
    made = express(nodes, layout.buffers, used, context)
    layout.kept = {e: t.nodes[0].inputs for t in made for e in t.made}
    layout.prepare = _finished(layout, made, layout.kept)


def _guarded(
    nodes: Sequence[Node], shapes: dict[Entry, Shape], types: dict[Entry, DType]
) -> list[Node]:
    """`nodes`, and before each that has one its guard, which enters what it gives."""
    found = []
    for node in nodes:
        if node.op.guard is not None:
            guard = node.op.guard(*(shapes[e] for e in node.inputs))
            if guard is not None:
                made = Node(guard, f"{node.name}_guard", node.inputs[1:2], node.attrs)
                shapes[Entry(made, 0)], types[Entry(made, 0)] = (1,), float32
                found.append(made)
        found.append(node)
    return found


def _updates(layout: Layout, nodes: Iterable[Node]) -> list[Task]:
    """Tasks that change states, at the end of the pass that `nodes` are of."""
    stateful = (n for n in nodes if n.op.is_expression and n.op.auxiliary())
    return [task for node in stateful for task in _update(layout, node)]


def _update(layout: Layout, node: Node) -> list[Task]:
    states, train = states_of(node), layout.mode.train
    first, last = len(node.inputs) - len(states), len(node.inputs)
    everything = [*node.inputs, *node.entries()]

    def values(given: Sequence[Buffer]) -> dict[int, Expr]:
        inputs, aux, outputs = given[:first], given[first:last], given[last:]
        found: dict[int, Expr] = node.op.updates(inputs, aux, outputs, train=train)
        return found

    what = "update", node.op, train
    reads, parts = alike(what, everything, layout.buffers, values, whole)
    goals = [Entry(Node(None, f"{e.node.name}_update"), 0) for e in states]
    for number in (k for part in parts for k in part.made):
        dest = layout.buffers[states[number]]
        layout.stores[goals[number]] = Delivery(states[number], dest, "saveto")
    return [part.task(node, reads, goals) for part in parts]


def _zeros(layout: Layout, net: Network, back: Backward) -> list[Task]:
    """Tasks that write zeros into wanted gradients that nothing reaches."""
    tasks = []
    for node, (dest, saver) in net.grads.items():
        if layout.mode.differentiate and node not in back.grads and saver == "saveto":
            entry = Entry(Node(None, f"{node.name}_no_gradient"), 0)
            layout.stores[entry] = Delivery(entry, dest, saver)
            zeros = Form([full(dest.shape, 0, dest.dtype)], ())
            tasks.append(Task((node,), zeros, (), (entry,)))
    return tasks


def _delivered(layout: Layout, tasks: list[Task], wanted: Iterable[Delivery]) -> list[Task]:
    """`tasks` and, after the one that makes it, a task for each value delivered elsewhere too."""
    after: dict[Entry, list[Task]] = {}
    for delivery in wanted:
        entry, dest, _ = delivery
        if layout.buffers[entry] is dest:
            continue
        goal = Entry(Node(None, f"{entry!r}_delivered"), 0)
        layout.stores[goal] = delivery
        spec = layout.buffers.spec(entry)
        form = layout.buffers.once(spec, functools.partial(Form.itself, spec))
        task = Task((entry.node,), form, (entry,), (goal,))
        after.setdefault(entry, []).append(task)
    found: list[Task] = []
    for task in tasks:
        found.append(task)
        for entry in task.made:
            found += after.pop(entry, ())
    return [*(t for ts in after.values() for t in ts), *found]  # variables first: they are ready


def _finished(layout: Layout, tasks: list[Task], read_later: Collection[Entry]) -> list[Task]:
    """`tasks` of one pass, with calls split off and fused."""
    kept = {*layout.homes, *layout.stores, *read_later}
    if layout.mode.fuse:
        tasks = told("dead nodes", tasks, alive(tasks, kept), show_tasks)
        tasks = told("shared reductions", tasks, cut_reductions(tasks, layout.buffers), show_tasks)
    tasks = told("calls", tasks, split(tasks, layout.buffers, layout.supported), show_tasks)
    if layout.mode.fuse:
        fused = fuse(tasks, layout.buffers, kept, layout.place_of)
        tasks = told("fusion", tasks, fused, show_tasks)
    return tasks


def plan_memory(layout: Layout, arguments: frozenset[Entry]) -> None:
    """Decide which values are views of arguments, places for all that have none yet, and regions:
    those for which there is memory."""
    buffers, tasks = layout.buffers, layout.tasks
    outside = {*layout.homes, *layout.stores}
    layout.aliases = aliases(tasks, arguments, outside)
    life = lives(tasks, _kept_forward(layout))
    lane_of = [layout.lanes[layout.place_of(task)] for task in tasks]
    entries = [e for e in life.born if e not in outside and e not in layout.aliases]
    sizes, shared = {e: size_of(buffers[e]) for e in entries}, sharings(tasks)

    def planned(found: Sequence[Region]) -> memory.Plan:
        last = lasting(tasks, life, found)
        rows = ((e, last(e)) for e in entries)
        values = [
            memory.Value(e, sizes[e], t.born, t.dies, lane_of[life.born[e]], t.branch)
            for e, t in rows
        ]
        return memory.plan(values, shared)

    layout.plan = without = planned(())
    found = _regions(layout, arguments)
    while found and too_large((plan := planned(found)).total, without.total):
        found = lighter(tasks, found, sizes)
    layout.plan = plan if found else without
    layout.regions = {
        tasks[r.begin]: tuple([tasks[k] for k in chain] for chain in r.chains) for r in found
    }


def _kept_forward(layout: Layout) -> set[Entry]:
    """What the backward pass reads of the forward pass, where it is to leave that."""
    if not layout.keeps_forward:
        return set()
    made = {e for task in layout.tasks[: layout.forward] for e in task.made}
    return made.intersection(e for task in layout.tasks[layout.forward :] for e in task.reads)


def _regions(layout: Layout, arguments: Iterable[Entry]) -> list[Region]:
    """Which tasks of each pass run side by side.

    None where the caller's arrays overlap, where memory counts more than time, or where no threads
    of the processor's compute.
    """
    several = len(layout.lanes) > 1 and not all(task.is_expression for task in layout.tasks)
    scarce = bool(config.get("backward_do_mirror"))
    rules_out = not layout.mode.fuse or not layout.device.host or several or scarce
    if rules_out or _entangled(layout, arguments):
        return []
    count = threads.num_threads()

    def estimate(task: Task) -> Cost | None:
        form = task.form
        assert form is not None
        return layout.buffers.once((cost, form), lambda: cost(form, count))

    found = [
        Region(r.begin + start, r.end + start, tuple(tuple(k + start for k in c) for c in r.chains))
        for start, end in ((0, layout.repeat), (layout.forward, len(layout.tasks)))
        for r in regions(layout.tasks[start:end], estimate, count)
    ]
    names = {k: task.name for k, task in enumerate(layout.tasks)}
    return told("regions", [], found, lambda x: show_regions(x, names))


def _entangled(layout: Layout, arguments: Iterable[Entry]) -> bool:
    """Whether something is stored where the caller has another array too."""
    spans = {reach(layout.buffers[e]) for e in arguments if e not in layout.kept}
    stored = [*(d.dest for d in layout.stores.values()), *(layout.buffers[e] for e in layout.homes)]
    every = sorted([*spans, *map(reach, stored)])
    return any(begin < end for (_, end), (begin, _) in pairwise(every))


def size_of(buffer: Buffer | Spec) -> int:
    """The bytes of a dense array."""
    return prod(buffer.shape) * buffer.dtype.size


def _show(layout: Layout) -> None:
    if config.get("debug") >= 3:
        print(f"{layout.mode}: {layout.plan.total} bytes", file=sys.stderr)
        print(show_tasks(layout.tasks), file=sys.stderr)

"""Steps: what was noted while recording, with its gradients, as one bound graph (see `notes.py`).

Variables are read where they lie, and their gradients written where those belong, as long as both
stay there; all other operands are fed, as inputs of an executor are. The values that the program
holds are copied into new arrays, as the next run overwrites what is bound. Heads are losses of the
graph, but those whose gradient is given. Both passes are one call, or two where values were asked
for in between (`ndarray/lazy/forwarded.py`).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from gnomon.base import GnomonError
from gnomon.context import Context
from gnomon.executor.arena import Arena
from gnomon.executor.inputs import hidden
from gnomon.executor.network import Bound
from gnomon.executor.passes import Passes
from gnomon.executor.programs.draws import Positions
from gnomon.executor.train_step import Gift
from gnomon.graph.gradient import Flow, flow_of
from gnomon.graph.node import Entry, Graph, Node
from gnomon.ground.collector import resting
from gnomon.ndarray.core.array import Array, of_zeros
from gnomon.ndarray.core.layout import dense
from gnomon.ndarray.core.tape import Leaf, leads, passes
from gnomon.ndarray.lazy.marks import Key, Mark, Operand, Structure, needed
from gnomon.ndarray.lazy.notes import Shares
from gnomon.ndarray.lazy.recorded import ways
from gnomon.ops import registry
from gnomon.runtime.devices import pool

NBYTES, OPERATOR = 64 << 10, 1 << 10  # of a program, beside what libraries keep for it
TRIES = 4  # plans for one step whose variables move

Drawn = Mapping[int, Positions]  # the random numbers of each operator that drew some


class Unplanned(GnomonError):
    """No program may do a step: its operators are applied one by one."""


class Outline:
    """What steps of one structure share, whatever their sizes: the graph, and its variables.

    `operands` are its variables by the number of the operand, `reached` those that heads depend on,
    `draws` the operators that draw random numbers. The outputs are the `losses`, so many, then the
    values that are held. Programs of one graph learn from each other (`programs/resized.py`).
    """

    def __init__(self, path: Sequence[Mark], key: Key) -> None:
        heads, is_given, held, _ = key
        self.operands: dict[int, Node] = {}
        self.states: set[int] = set()  # those that are states of an operator
        entries: dict[int, Entry] = {}
        self.draws: dict[str, int] = {}
        for number in needed(path, [*heads, *held]):
            mark = path[number]
            inputs = [entries[k] if k >= 0 else self._operand(~k) for k in mark.operands]
            node = Node(mark.op, f"{mark.op.name}{number}", inputs, mark.op.attrs())
            entries.update((mark.first + k, Entry(node, k)) for k in range(len(mark.layouts)))
            self.states.update(~k for k in mark.operands[len(mark.op.arguments()) :])
            if mark.draws:
                self.draws[node.name] = number
        outputs = [
            entries[k] if g else _loss(f"head{number}", entries[k])
            for number, (k, g) in enumerate(zip(heads, is_given, strict=True))
        ]
        self.losses = len(outputs)
        nodes = set(Graph(outputs).topo if outputs else ())
        self.reached = {k for k, node in self.operands.items() if node in nodes}
        self.followed = {k for k, entry in entries.items() if entry.node in nodes}
        self.graph = Graph([*outputs, *(entries[k] for k in held)])

    def _operand(self, number: int) -> Entry:
        if number not in self.operands:
            self.operands[number] = Node(None, f"operand{number}")
        return Entry(self.operands[number])


class Network:
    """What was noted as a graph, with what an executor asks of a symbol.

    The values that are held have these `layouts`; `constants` tells of each whether it is a
    constant once the gradients were computed, and `leads` whether it leads to a variable. `flow` is
    that of gradients of the heads to all operands of the record; the states that change with them
    are `moving`.
    """

    name = "step"

    def __init__(
        self,
        outline: Outline,
        path: Sequence[Mark],
        key: Key,
        operands: Sequence[Operand],
        train: bool,
    ) -> None:
        heads, _, held, _ = key
        self.train = train
        self._path, self._heads, self._held = path, heads, held
        self._layouts: list[Any] = [x for mark in path for x in mark.layouts]
        self.layouts = [self._layouts[k] for k in held]
        self.operands, self.states, self.draws = outline.operands, outline.states, outline.draws
        self.losses, self.reached = outline.losses, outline.reached
        self._graph, self._followed = outline.graph, outline.followed
        if any(self._is_argument(k) for k in self.states):
            raise Unplanned("step: a state is an argument, too")
        self.constants = self._constants()
        flows, leading = self._flows(operands)
        self.flow, self.moving = self._flow(flows, len(operands))
        self.leads = [k in leading for k in held]

    def _is_argument(self, number: int) -> bool:
        """Whether an operand is read otherwise than as a state."""
        return any(~number in mark.operands[: len(mark.op.arguments())] for mark in self._path)

    def _constants(self) -> list[bool]:
        """Which of the values that are held are constants once the gradients were computed.

        Those that heads depend on. Gradients of the others are refused from then on, even where
        they are 0: the operators that both depend on were followed.

        Raises:
            Unplanned: not those of a value whose operators share none with the heads.
        """
        shares = dict.fromkeys(self._followed, True)  # whether results share some with the heads
        for mark in self._path:
            found = any(k >= 0 and shares[k] for k in mark.operands[: len(mark.op.arguments())])
            for k in range(mark.first, mark.results):
                shares[k] = shares.get(k, False) or found
        if self._heads and not all(shares[k] for k in self._held):
            raise Unplanned("step: a value is held that no head shares an operator with")
        return [not self._heads or k in self._followed for k in self._held]

    def _flows(self, operands: Sequence[Operand]) -> tuple[list[Flow], set[int]]:
        """How gradients flow through each operator, and what leads to variables.

        Of predictions nothing does.
        """
        leading = {~k for k, x in enumerate(operands) if self._heads and leads(x.place)}
        flows = []
        for mark in self._path:
            arguments = mark.operands[: len(mark.op.arguments())]
            wanted = tuple(k in leading for k in arguments)
            flow = Flow(wanted)
            if True in wanted:
                inputs = [self._layouts[k] if k >= 0 else operands[~k].layout for k in arguments]
                shapes, types = tuple(x.shape for x in inputs), tuple(x.dtype for x in inputs)
                flow = flow_of(mark.op, shapes, types, wanted, self.train)
            flows.append(flow)
            if flow.leads:
                leading.update(range(mark.first, mark.results))
        return flows, leading

    def _flow(self, flows: Sequence[Flow], count: int) -> tuple[Flow, frozenset[int]]:
        """How gradients of the heads flow through all operators, and the states that change.

        Raises:
            Unplanned: one of them is read before, by another operator.
        """
        found, moving, kept = set(self._heads), set[int](), set[int]()
        for mark, flow in zip(reversed(self._path), reversed(flows), strict=True):
            if not found.isdisjoint(range(mark.first, mark.results)):
                pairs = zip(mark.operands, flow.gives, strict=False)
                found.update(k for k, given in pairs if given)
            changes = flow.changes and mark.first in self._followed
            states = mark.operands[len(flow.gives) :]
            (moving if changes else kept).update(self.states.intersection(~k for k in states))
        if moving & kept:
            raise Unplanned("step: a state that changes is read before")
        gives = tuple(~k in found for k in range(count))
        return Flow(gives, len(moving) > 0), frozenset(moving)

    def list_arguments(self) -> list[str]:
        """The names of operands."""
        return [n.name for n in self._graph.arguments]

    def list_auxiliary_states(self) -> list[str]:
        """The names of operands that an operator may change."""
        return [n.name for n in self._graph.auxiliary]

    def list_outputs(self) -> list[str]:
        """The names of heads and held values."""
        return [e.node.name for e in self._graph.outputs]


def _loss(name: str, entry: Entry) -> Entry:
    """An output whose gradient is ones."""
    return Entry(Node(registry.find("MakeLoss").parse({}), name, [entry]))


class Plan:
    """A network bound to variables where they lie, but those in `loose`, and to their gradients.

    `stays` are the numbers of operands with where they lie, `stores` those with where their
    gradients do, `read` all that are on the tape. Where operands are results on the tape, gradients
    are `shares`, stored nowhere; those that no gradient flows to have none. `flow`, `moving`,
    `constants` and `leads` are as for `Network`. `turn` counts forward passes, `depth` is as for
    `_arena`.
    """

    def __init__(
        self, network: Network, operands: Sequence[Operand], loose: Collection[int], depth: int
    ) -> None:
        self.layouts, self.constants = network.layouts, network.constants
        self.flow, self.moving, self.leads = network.flow, network.moving, network.leads
        self.turn, self.depth = 0, depth
        self.ctx = operands[0].chunk.ctx
        arguments = [k for k in network.operands if k in network.reached - network.states]
        places = {k: operands[k].place for k in arguments if operands[k].place is not None}
        self.read = frozenset(places)
        leaves = {k: place for k, place in places.items() if isinstance(place, Leaf)}
        self.shares = list(places) if len(leaves) < len(places) else []
        if self.shares:
            leaves = {}
        _check(operands, network.operands, leaves, self.moving)
        self.stores = [(k, x.grad._chunk, x.grad._offset) for k, x in leaves.items()]
        self.stays = [
            (k, operands[k].chunk, operands[k].offset)
            for k in ((*leaves, *self.moving) if network.losses else network.operands)
            if k not in loose and operands[k].layout.strides is None
        ]
        fixed = {k for k, _, _ in self.stays}
        if not fixed.issuperset(self.moving):
            raise Unplanned("step: a state that changes does not stay where it lies")
        self.fed = [k for k in network.operands if k not in fixed]
        self.passes, self._shared = self._bound(network, operands, leaves)
        self._draws: list[tuple[int, int]] = []  # the operator of each draw, and which of its
        for k, name in enumerate(self.passes.draws):
            if name not in network.draws:
                raise Unplanned(f"step: {name} draws random numbers of its own")
            self._draws.append((network.draws[name], self.passes.draws[:k].count(name)))

    def _bound(
        self, network: Network, operands: Sequence[Operand], leaves: dict[int, Leaf]
    ) -> tuple[Passes, list[tuple[int, Any]]]:
        """The executor, and those of its gradients that are shares, with their operands."""
        args: dict[Node, Any] = {}
        grads: dict[Node, Any] = {}
        requests: dict[Node, str] = {}
        shares: list[tuple[int, Any]] = []
        for k, node in network.operands.items():
            x = operands[k]
            if k not in self.fed:
                args[node] = x.remade()._detached()
            else:
                args[node] = self._input(x.layout)
            if k in leaves:
                grads[node], requests[node] = leaves[k].grad._detached(), leaves[k].req
            elif k in self.shares and leads(x.place) and (self.flow.gives[k] or self.flow.changes):
                grads[node] = of_zeros(x.layout.shape, x.layout.dtype, self.ctx)
                requests[node] = "write"
                if self.flow.gives[k]:  # if not, states between it and the heads change
                    shares.append((k, grads[node]))
        order = network._graph.arguments
        bound = Bound(
            [args[n] for n in order],
            [grads.get(n) for n in order],
            [args[n] for n in network._graph.auxiliary],
            [requests.get(n, "null") for n in order],
        )
        inputs = [args[network.operands[k]] for k in self.fed]
        train, arena = network.train, _arena(self.ctx, self.depth)
        return Passes(network, self.ctx, bound, inputs, train, arena, network.losses), shares

    def _input(self, layout: Any) -> Any:
        """An array for what is fed; read once where both passes are one call."""
        return hidden(of_zeros(layout.shape, layout.dtype, self.ctx), once=not self.depth)

    @property
    def may_go_back(self) -> bool:
        """Whether `backward` may come next."""
        return self.passes.may_go_back

    def moved(self, operands: Sequence[Operand]) -> list[int]:
        """The variables that do not lie, or whose gradients do not, where they did."""
        found = []
        for k, chunk, offset in self.stays:
            x = operands[k]
            if x.chunk is not chunk or x.offset != offset:
                found.append(k)
        for k, chunk, offset in self.stores:
            grad = operands[k].place.grad
            if grad._chunk is not chunk or grad._offset != offset:
                found.append(k)
        return found

    def run(
        self, operands: Sequence[Operand], grads: Sequence[Any], drawn: Drawn
    ) -> tuple[list[tuple[Any, bool]], Shares]:
        """The values that are held, with whether they are constants, and the shares of gradients.

        All other gradients are stored.
        """
        what = self._begun(operands, drawn)
        shares = self._shares(operands)
        self.passes.both_into(what[0], grads, what[1], self._into(shares), what[2])
        values = list(zip(what[1], self.constants, strict=True))
        return values, self._stored(operands, shares)

    def forward(self, operands: Sequence[Operand], drawn: Drawn) -> list[Any]:
        """The values that are held; `backward` with the same operands gives the rest."""
        self.turn += 1
        what = self._begun(operands, drawn)
        self.passes.forward_into(*what)
        return what[1]

    def backward(self, operands: Sequence[Operand], grads: Sequence[Any]) -> Shares:
        """The shares of gradients; all other gradients are stored."""
        shares = self._shares(operands)
        self.passes.backward_into(grads, self._into(shares))
        return self._stored(operands, shares)

    def _begun(
        self, operands: Sequence[Operand], drawn: Drawn
    ) -> tuple[list[Any], list[Any], Positions]:
        """What a forward pass takes: what is fed, where values go, and random numbers."""
        fed = map(operands.__getitem__, self.fed)
        given = [Array._at(x.chunk, x.layout, x.offset) for x in fed]
        made = [Array._new(layout, self.ctx) for layout in self.layouts]
        return given, made, [drawn[number][k] for number, k in self._draws]

    def _shares(self, operands: Sequence[Operand]) -> dict[int, Any]:
        """New arrays for the gradients that are stored nowhere, by operand."""
        return {k: _like(operands[k].layout, self.ctx) for k, _ in self._shared}

    def _into(self, shares: Mapping[int, Any]) -> list[Gift]:
        """The gradients that are shares, and where they are copied."""
        return [(grad, shares[k]) for k, grad in self._shared]

    def _stored(self, operands: Sequence[Operand], shares: Mapping[int, Any]) -> Shares:
        """Tell variables that their gradients were stored; the others, with their places."""
        for k, _, _ in self.stores:
            operands[k].place.stored = passes.count
        return [(operands[k].place, shares.get(k)) for k in self.shares]


class Planned:
    """The plan for a step, made again where its variables have moved, which are fed from then on.

    It is forgotten when the first of its variables goes.
    """

    def __init__(
        self,
        network: Network,
        operands: Sequence[Operand],
        forget: Callable[..., object],
        depth: int,
        loose: Collection[int],
    ) -> None:
        self._network, self._loose, self._depth = network, set(loose), depth
        self._left = TRIES
        self._plan = self._made(operands)
        owners: list[Any] = [x.place for x in operands if isinstance(x.place, Leaf)]
        if not network.losses:
            owners = [operands[k].array for k, _, _ in self._plan.stays]
        self._refs = [weakref.ref(owner, forget) for owner in owners]

    def _made(self, operands: Sequence[Operand]) -> Plan:
        """A plan for operands that lie where these do.

        Raises:
            Unplanned: there were enough of them already.
        """
        if not self._left:
            raise Unplanned("step: its variables move each time")
        self._left -= 1
        with resting():
            return Plan(self._network, operands, self._loose, self._depth)

    @property
    def is_resized(self) -> bool:
        """Whether programs for other sizes have told how it is made."""
        return self._plan.passes.is_resized

    @property
    def kept_bytes(self) -> int:
        """About what it keeps."""
        return NBYTES + OPERATOR * len(self._network._path) + self._plan.passes.held

    def run(
        self, operands: Sequence[Operand], grads: Sequence[Any], drawn: Drawn
    ) -> tuple[list[tuple[Any, bool]], Shares] | None:
        """As `Plan.run`; None where it may not be run on these, and nothing was done.

        Raises:
            Unplanned: nor may it later.
        """
        plan = self.ready(operands)
        return None if plan is None else plan.run(operands, grads, drawn)

    def ready(self, operands: Sequence[Operand]) -> Plan | None:
        """The plan for operands that lie where these do; None where it may not be run on them.

        Raises:
            Unplanned: nor may it later.
        """
        plan = self._plan
        if not plan.passes.is_poisoned and ways.lie_there(operands, plan.stays, plan.stores):
            return plan
        moved = plan.moved(operands)
        if moved or plan.passes.is_poisoned:
            self._loose.update(moved)
            self._plan = self._made(operands)
        for x in operands:
            if x.chunk.failure is not None:  # it would fail all of it
                return None
        return self._plan


class _Thread(threading.local):
    """Where the steps of a thread work, one after the other, by device and depth."""

    def __init__(self) -> None:
        self.arenas: dict[tuple[Context, int], Arena] = {}


_here = _Thread()


def _arena(ctx: Context, depth: int) -> Arena:
    """The working memory for steps of this thread; another one where something failed in it.

    Steps whose gradients come later have one of their own, so that those in between leave what
    they keep: `depth` is 0 for all others, and counts how many a step is behind.
    """
    found = _here.arenas.get((ctx, depth))
    if found is None or found.var.failure is not None:
        found = _here.arenas[ctx, depth] = Arena(ctx)
    return found


def _like(layout: Any, ctx: Context) -> Any:
    """New dense memory for the elements of a layout."""
    return Array._new(dense(layout.shape, layout.dtype), ctx)


def planned(
    structure: Structure,
    path: Sequence[Mark],
    key: Key,
    train: bool,
    operands: Sequence[Operand],
    forget: Callable[..., object],
    depth: int = 0,
    loose: Collection[int] = (),
) -> Planned | None:
    """What does a step from now on; None where no program may. `forget` drops it.

    Where gradients are asked for, variables are read where they lie, else all operands but `loose`.

    What has no gradient, or is refused otherwise, is so when operators are applied one by one, too:
    their errors are those that programs expect. `depth` is as for `_arena`. The memory that these
    worked in is given back first: the step has its own from then on.
    """
    pool.release_all(operands[0].chunk.ctx)
    try:
        outline = structure.outline = structure.outline or Outline(path, key)
        network = Network(outline, path, key, operands, train)
        made = Planned(network, operands, forget, depth, loose)
    except GnomonError:
        made = None
    structure.learn(made is not None and made.is_resized)
    return made


def _check(
    operands: Sequence[Operand],
    numbers: Collection[int],
    leaves: Mapping[int, Leaf],
    moving: Collection[int],
) -> None:
    """Refuse gradients, and states that change, that lie where something else of the step does.

    Raises:
        Unplanned: there are such, or they are sparse, or no variable is differentiated by.
    """
    grads = [x.grad for x in leaves.values()]
    if len(set(leaves.values())) < len(grads):
        raise Unplanned("step: a variable comes as several arrays")
    if any(x.__class__ is not Array.main or x._chunk.shared for x in grads):
        raise Unplanned("step: a gradient is sparse, or others may write it")
    ends = [(x._span(), True) for x in grads]
    ends += [(operands[k].remade()._span(), k in moving) for k in numbers]
    ends.sort()
    for ((_, end), is_written), ((start, _), is_too) in pairwise(ends):
        if start < end and (is_written or is_too):
            raise Unplanned("step: a gradient, or a state, lies where another array does")

"""backward: gradients follow the tape from heads to leaves.

Nodes are visited in descending number, so each has all its gradients when its turn comes. A node's
`flow` says where its gradients go, and whether it is visited though none comes, as states change.
Each gradient is one recipe, of what the node kept (`derivative.py`). A leaf that is read once gets
its gradient written where it belongs; shares of several readers are added up first. The tape lets
go of its arrays behind the visit, unless it is to be followed again.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence, Set
from operator import attrgetter
from typing import Any

import numpy as np

from gnomon.base import GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.graph.gradient import Flow
from gnomon.ground.record import put
from gnomon.ndarray import derivative
from gnomon.ndarray.api.methods import copied
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.mode import recording
from gnomon.ndarray.core.tape import (
    DIRECT,
    Bundle,
    Call,
    Leaf,
    Node,
    Output,
    Place,
    leads,
    passes,
    placed,
)
from gnomon.ndarray.lazy.forwarded import Forwarded, Met, behind
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.lazy.notes import Record, Shares
from gnomon.ops import registry
from gnomon.runtime.ffi import ffi, pointer

Dest = tuple[Any, str]  # an array, and the saver that stores into it
_AGAIN = "backward: the tape was followed already; use retain_graph=True to follow it again"
_LEADS = attrgetter("leads")
_NUMBER = attrgetter("number")
_BRIEF = 1 << 12  # elements: fewer are written at once


def backward(
    heads: Sequence[Any],
    head_grads: Sequence[Any] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Store the gradients of all variables that `heads` depend on, as their `grad_req` says.

    A head's own gradient is ones where none is given; one on another device, or of another dtype,
    is copied. Dropout and its like are differentiated as
    they were recorded, whatever `train_mode`.

    Raises:
        GnomonError: a head is not on the tape, or the tape was followed already.
        ShapeError: a head's gradient has another shape.
    """
    passes.count += 1
    shares = None if retain_graph else _followed(heads, head_grads)
    if shares is not None and not shares:
        return
    if shares is None:
        walk = Walk(_given(heads, head_grads), False, retain_graph)
    else:
        walk = Walk(shares, True)
    ends = walk.ends
    with recording(False):
        walk.run()
        _finish(walk, ends, passes.count)


def gradients(
    heads: Sequence[Any],
    variables: Sequence[Any],
    head_grads: Sequence[Any] | None,
    retain_graph: bool,
    create_graph: bool,
) -> list[Any]:
    """The gradients of `variables`, as new arrays; their `grad` stays as it is.

    With `create_graph` all of them are on the tape, those too that depend on no variable.

    Raises:
        GnomonError: a head or a variable is not on the tape, or the tape was followed already.
    """
    opened(p for p in map(placed, (*heads, *variables)) if p is not None)
    given, places = _given(heads, head_grads), []
    for number, variable in enumerate(variables):
        if (place := behind(placed(variable))) is None:
            expected = "an array with attach_grad, or one computed while recording"
            raise ParamError(complaint("grad", f"variables[{number}]", expected, "another"))
        places.append(place)
    walk = Walk(given, False, retain_graph, create_graph, places)
    with recording(create_graph):
        walk.run()
    zeros = registry.find("zeros_like").parse({})
    found = []
    for place, variable in zip(places, variables, strict=True):
        total = walk.sums.get(place)
        made = invoke(zeros, (variable._detached(),)) if total is None else total
        found.append(_constant(made, place) if create_graph and made._tape is None else made)
    return found


def _constant(array: Any, place: Place) -> Any:
    """An array on the tape whose gradient by what is at `place` is 0."""
    made = array._detached()
    kind = made._layout, made.context
    node = Node(Call(lambda grad: [None]), [place], Flow((False,)), (), [kind])
    put(made, "_tape", Output(node, 0))
    return made


def _direct(walk: Walk) -> dict[Place, Dest]:
    """Which of the leaves and bundles at its ends have one share alone, and where that goes."""
    readers, sums, ends = walk.readers, walk.sums, walk.ends
    once = [p for p in ends if readers.get(p) == 1 and p not in sums]
    bundles = [p for p in ends if type(p) is Bundle]
    alone = [b for b in bundles if b in once and _is_alone(b, ends)] if bundles else bundles
    direct: dict[Place, Dest] = dict.fromkeys(alone, DIRECT)
    if len(alone) < len(once):
        several = {leaf for b in bundles if b not in alone for leaf in b.leaves}
        for place in once:
            if isinstance(place, Leaf) and place not in several and _is_dense(place):
                direct[place] = place.grad, _saver(place)
    return direct


def _finish(walk: Walk, ends: Iterable[Place], number: int) -> None:
    """Store what goes to leaves and does not stand there yet."""
    leaves: dict[Leaf, None] = {}
    for place in ends:
        if isinstance(place, Leaf):
            leaves[place] = None
        elif isinstance(place, Bundle) and place in walk.written:
            place.store(number)
        elif isinstance(place, Bundle):
            leaves.update(dict.fromkeys(place.leaves))
    for leaf in leaves:
        leaf.stored = number
        if leaf not in walk.written:
            _deliver(leaf, walk.sums.get(leaf))


def _is_alone(bundle: Bundle, ends: Iterable[Place]) -> bool:
    """Whether no other of the places is one of a bundle's leaves, or has one."""
    mine = bundle.members
    for place in ends:
        if isinstance(place, Bundle):
            if place is not bundle and not mine.isdisjoint(place.members):
                return False
        elif place in mine:
            return False
    return True


def _is_dense(leaf: Leaf) -> bool:
    """Whether a gradient may be stored where it is computed."""
    return leaf.grad.__class__ is Array.main


def _saver(leaf: Leaf) -> str:
    """How a gradient is stored into a leaf's."""
    return "plusto" if leaf.req == "add" else "saveto"


def _deliver(leaf: Leaf, total: Any) -> None:
    """Store a leaf's whole gradient; nothing came is 0."""
    if total is None:
        if leaf.req == "write":
            leaf.grad[:] = 0
    elif leaf.req == "add":
        leaf.grad += total
    else:
        copied(total, leaf.grad)


class Walk:
    """One way along the tape: what each place has received so far, of `shares` at first.

    A place that was reached has an entry in `sums`, which is None where no gradient flows there.
    `nodes` are those that depend on what was received, with their inputs, `readers` count the reads
    of each place, and `ends` are the leaves and bundles among these. `keep` are the places whose
    sums the caller wants; without such, gradients are stored, and `direct` are the ends whose only
    share goes straight to its destination. With `retain` the tape may be followed again, with
    `create` the gradients go on the tape.
    """

    def __init__(
        self,
        shares: Shares,
        ours: bool,
        retain: bool = False,
        create: bool = False,
        keep: Iterable[Place] = (),
    ) -> None:
        self.sums: dict[Place, Any] = {}
        self.own: set[Place] = set()  # whose sums are ours to add into
        self.create, self.retain, self.keep = create, retain or create, set(keep)
        self.written: set[Place] = set()
        met: Met = {}
        for place, grad in shares:
            self.receive(behind(place, met), grad, ours)
        self._reach(met)

    def _reach(self, met: Met) -> None:
        """Find what depends on what was received, by way of those `met`, too.

        Raises:
            GnomonError: the tape was followed beyond here already, whether gradients flow or not.
        """
        self.nodes = reachable(self.sums, met)
        if any(node.saved is None for node in self.nodes):
            raise GnomonError(_AGAIN)
        for node, outputs in met.items():
            node.meet((tuple(sorted(outputs)), (True,) * len(outputs)))
        self.readers: dict[Place, int] = {}
        for inputs in self.nodes.values():
            for place in inputs:
                if place is not None:
                    self.readers[place] = self.readers.get(place, 0) + 1
        self.ends = [p for p in dict.fromkeys((*self.readers, *self.sums)) if type(p) is not Output]
        self.direct: dict[Place, Dest] = {} if self.keep else _direct(self)
        closed = _closed(self.nodes)
        received = self._received() if closed else set()
        wrong = [n for n in closed if self.retain or not self._takes(n, received)]
        for node in wrong:
            node.open()
        if wrong:
            self._reach_anew()

    def _reach_anew(self) -> None:
        """Go on by way of the operators of nodes that were opened."""
        sums, self.sums = self.sums, {}
        for place, grad in sums.items():
            self.receive(behind(place), grad, place in self.own)
        self._reach({})

    def _received(self) -> set[Place]:
        """The places that gradients flow to."""
        found = {place for place, grad in self.sums.items() if grad is not None}
        for node, inputs in self.nodes.items():
            if any(Output(node, k) in found for k in range(len(node.outputs))):
                pairs = zip(inputs, node.flow.gives, strict=True)
                found.update(place for place, given in pairs if given and place is not None)
        return found

    def _takes(self, node: Forwarded, received: Set[Place]) -> bool:
        """Whether a program gives the gradients of a node, given those that it will receive.

        It does not where the gradient of an output is stopped before it comes there, though it
        would lead to variables: the operators change their states then all the same, and have to be
        on the tape for that.
        """
        places = [Output(node, k) for k in range(len(node.outputs))]
        reached = [p for p in places if p in self.readers or p in self.sums]
        outputs = tuple(p.index for p in reached)
        return received.issuperset(filter(leads, reached)) and node.takes(outputs, self.direct)

    def run(self) -> None:
        """Visit the nodes that lead to a gradient that is wanted."""
        is_wanted = self._leading().__contains__ if self.keep else _LEADS
        for node in self.nodes:
            places = [Output(node, k) for k in range(len(node.outputs))]
            grads = [self.sums[p] if p in self.keep else self.sums.pop(p, None) for p in places]
            follows = node.flow.changes or any(g is not None for g in grads)
            if follows and is_wanted(node) and not self.visit(node, grads):
                reached = [p for p in self.readers if type(p) is Output]
                left = dict.fromkeys(p for p in reached if p.node.number <= node.number)
                came = {p: g for p, g in zip(places, grads, strict=True) if g is not None}
                self.sums = left | self.sums | came
                self._reach_anew()
                return self.run()
            if not self.retain:
                node.let_go()
        return None

    def _leading(self) -> set[Node]:
        """The nodes from which gradients flow to a place that is wanted."""
        wanted = self.keep
        found: set[Node] = set()
        for node, inputs in reversed(self.nodes.items()):
            flow = node.flow
            for place, given in zip(inputs, flow.gives, strict=True):
                if (given or flow.changes) and _leads(place, wanted, found):
                    found.add(node)
        return found

    def visit(self, node: Node, grads: Sequence[Any]) -> bool:
        """Send on what a node received; whether that could be done."""
        if node.saved is None:
            raise GnomonError(_AGAIN)
        inputs = self.nodes[node]
        dests = [None if p is None else self.direct.get(p) for p in inputs]
        found = derivative.of(node, grads, dests, self.create)
        if found is None:
            return False
        for place, grad, dest in zip(inputs, found, dests, strict=True):
            if place is None or grad is None:
                continue
            if dest is not None:
                self.written.add(place)
            elif isinstance(place, Bundle):
                for leaf, share in zip(place.leaves, grad, strict=True):
                    self.receive(leaf, share)
            else:
                self.receive(place, grad)
        return True

    def receive(self, place: Place, grad: Any, ours: bool = True) -> None:
        """`grad` is one reader's share of the gradient of `place`.

        With None it is reached, so that states behind it change, though no gradient flows there.
        """
        before = self.sums.get(place)
        if grad is None:
            self.sums.setdefault(place, None)
        elif before is None:
            self.sums[place] = grad
            if ours:
                self.own.add(place)
        elif self.create:
            self.sums[place] = before + grad
        elif place in self.own:
            invoke(registry.find("elemwise_add").parse({}), (before, grad), before)
        else:
            self.sums[place] = before + grad
            self.own.add(place)


def _given(heads: Sequence[Any], head_grads: Sequence[Any] | None) -> Shares:
    """The places of heads with their gradients."""
    grads = head_grads or [None] * len(heads)
    if len(grads) != len(heads):
        expected = f"{len(heads)} gradients, one a head"
        raise ShapeError(complaint("backward", "head_grads", expected, len(grads)))
    pairs = enumerate(zip(heads, grads, strict=True))
    return [(_place(head, number), _head_grad(head, grad)) for number, (head, grad) in pairs]


def _followed(heads: Sequence[Any], head_grads: Sequence[Any] | None) -> Shares | None:
    """Have a program do all that was noted, as `Record.follow` says; None where there is none."""
    found, place = heads[0]._pending_in, heads[0]._tape
    grads = head_grads or [None] * len(heads)
    if type(found) is not Record:
        found = place.node if type(place) is Output else None
    if not isinstance(found, (Record, Forwarded)) or len(grads) != len(heads):
        return None
    given = zip(heads, grads, strict=True)
    return found.follow(heads, [None if g is None else _head_grad(h, g) for h, g in given])


def opened(starts: Iterable[Place]) -> None:
    """Have the operators on the tape that `starts` depend on, where programs stand for them."""
    starts = list(starts)
    while closed := _closed(reachable(map(behind, starts))):
        for node in closed:
            node.open()


def _place(head: Any, number: int) -> Place:
    """The place of a head on the tape."""
    place = placed(head)
    if place is None:
        raise GnomonError(
            f"backward: heads[{number}] was not computed from a variable with attach_grad within "
            "autograd.record()"
        )
    return place


def _head_grad(head: Any, grad: Any) -> Any:
    """The gradient of a head, of its dtype and on its device: ones where none is given."""
    if grad is None:
        if head.stype == "default":  # it may wait on: only what was saved of it must be there
            layout = head._layout
            if layout.strides is not None:
                layout = dense(layout.shape, layout.dtype)
            made = Array._new(layout, head.context)  # no other code has it yet
            if layout.size <= _BRIEF and made.__class__ is Array.main:
                ffi.memmove(pointer(made._address), _ones(layout), layout.nbytes)
            else:
                made[:] = 1
            return made
        return invoke(registry.find("ones_like").parse({}), (head._detached(),))
    if not isinstance(grad, Array) or grad.shape != head.shape:
        expected = f"an NDArray of shape {head.shape}"
        raise ShapeError(complaint("backward", "head_grads", expected, shown(grad)))
    grad = grad.as_in_context(head.context)
    return grad if grad._dtype is head._dtype else grad.astype(head._dtype)


@functools.lru_cache(maxsize=256)
def _ones(layout: Layout) -> Any:
    """The bytes of ones."""
    return np.ones(layout.shape, layout.dtype.numpy).reshape(-1).view(np.uint8)


def _leads(place: Place | None, wanted: Collection[Place], leading: Collection[Node]) -> bool:
    """Whether a place is wanted, or depends on one that is."""
    if type(place) is Output and place.node in leading:
        return True
    return place in wanted or (type(place) is Bundle and not place.members.isdisjoint(wanted))


def _closed(nodes: Iterable[Node]) -> list[Forwarded]:
    """The nodes where a program stands for operators that are not on the tape."""
    return [node for node in nodes if type(node) is Forwarded and node.is_closed]


def reachable(
    starts: Iterable[Place | None], met: Met | None = None
) -> dict[Node, Sequence[Place | None]]:
    """The nodes that `starts` depend on, readers first, with their inputs.

    Inputs are those behind nodes that are open, which `met` gets, as `behind` does. What another
    thread opens from then on stays among the nodes.
    """
    work = [p.node for p in starts if isinstance(p, Output)]
    found: dict[Node, Sequence[Place | None]] = {}
    while work:
        node = work.pop()
        if node in found:
            continue
        inputs = node.inputs
        outputs = [p for p in inputs if type(p) is Output]
        if Forwarded in [type(p.node) for p in outputs]:
            inputs = [behind(p, met) for p in inputs]
            outputs = [p for p in inputs if type(p) is Output]
        found[node] = inputs
        work += [p.node for p in outputs if p.node not in found]
    return {n: found[n] for n in sorted(found, key=_NUMBER, reverse=True)}

"""The tape: what recorded operators did, so that gradients can follow them backward.

A `Leaf` stands for a variable that wants a gradient, a `Node` for what was recorded as one: an
operator (entered by `record`, for `ndarray/lazy/invoke.py`), a user's function, a compiled block,
or all that a program computed (`ndarray/lazy/forwarded.py`). An array on the tape has as its place
a leaf, or a node and the number of one of its outputs. How gradients pass a node is its `flow`,
said by who makes it and asked by `ndarray/backward.py`. A node keeps of its inputs and outputs
those that its gradient reads, and nothing once the tape was followed without `retain_graph`. Nodes
are numbered as they are made, so that descending numbers are an order in which every node comes
after its readers.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gnomon.graph.gradient import Flow, Gradient, flow_of
from gnomon.ground.record import put

_numbers = itertools.count()
_variables = itertools.count()


def reserved(count: int) -> list[int]:
    """Numbers of nodes that are to stand before all that are made from now on."""
    return [next(_numbers) for _ in range(count)]


class Leaf:
    """A variable: `grad` is the array its gradient goes to, as `req` says.

    `stored` is the number of the backward pass that stored a gradient there last, and `used` that
    of the last one before the gradient was used up, as by a step of a trainer.
    """

    __slots__ = ("__weakref__", "bundle", "grad", "number", "req", "stored", "used")

    grad: Any
    number: int

    def __init__(self, grad: Any, req: str) -> None:
        self.grad = grad
        self.req = req
        self.bundle: Bundle | None = None
        self.stored = self.used = 0
        self.number = next(_variables)

    @property
    def is_fresh(self) -> bool:
        """Whether a backward pass stored a gradient, alone or with others, that is not used up."""
        used, bundle = self.used, self.bundle
        return self.stored > used or (bundle is not None and bundle.stored > used)

    @is_fresh.setter
    def is_fresh(self, value: bool) -> None:
        self.used = self.stored - 1 if value else passes.count


class Bundle:
    """The variables that a compiled network reads, as one argument of it.

    Where nothing else reads any of them, their gradients are stored at once; `stored` is the number
    of the backward pass that did so last. That is told of each variable where another bundle has it
    too.
    """

    __slots__ = ("is_sole", "leaves", "members", "stored")

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.leaves = tuple(leaves)
        self.members = frozenset(leaves)
        self.stored = 0
        self.is_sole = True
        for leaf in leaves:
            if leaf.bundle is None:
                leaf.bundle = self
            else:
                leaf.bundle.is_sole = self.is_sole = False

    def store(self, number: int) -> None:
        """Gradients of all were stored by this backward pass."""
        if self.is_sole:
            self.stored = number
        else:
            for leaf in self.leaves:
                leaf.stored = number


class Count:
    """How often something has happened."""

    count = 0


changes = Count()  # variables got another place on the tape, or parameters other arrays
passes = Count()  # backward passes


class Output(NamedTuple):
    """One output of a recorded operator."""

    node: Node
    index: int


class Noted:
    """The place of all arrays that are noted and not computed; it is asked for by `placed`."""

    __slots__ = ()


NOTED = Noted()
Place = Leaf | Bundle | Output | Noted


def placed(array: Any) -> Place | None:
    """The place of an array on the tape; what is only noted is computed."""
    while array._tape is NOTED:
        array._pending_in.materialize(array)
    place: Place | None = array._tape
    return place


def source(array: Any) -> Place | None:
    """The place that gradients of what is recorded of an array flow to.

    What was followed is a constant from then on, as a state that goes from step to step is.
    """
    place: Place | None = array._tape
    if place is NOTED:
        place = placed(array)
    return None if type(place) is Output and place.node.is_over(place.index) else place


def leads(place: Place | None) -> bool:
    """Whether gradients that come to a place are wanted: a variable, or states, lie behind it.

    States change with the gradients of a variable alone.
    """
    return place.node.output_leads(place.index) if type(place) is Output else place is not None


class Node:
    """What was recorded as one.

    `inputs` are the places of the arguments, None for those that are not on the tape, and `flow`
    says how gradients go there; `saved` are the arrays that `gradient` reads after the gradients of
    the outputs. `leads` says whether anything is to be done behind it when gradients are followed.
    """

    __slots__ = ("context", "flow", "gradient", "inputs", "leads", "number", "outputs", "saved")

    def __init__(
        self,
        gradient: Any,
        inputs: Sequence[Place | None],
        flow: Flow,
        saved: Sequence[Any],
        outputs: Sequence[Any],
        context: Any = None,
    ) -> None:
        self.gradient = gradient
        self.inputs = inputs
        self.flow = flow
        self.saved: Sequence[Any] | None = saved
        self.outputs = outputs  # layout and context of each visible output
        self.context = context
        self.number = next(_numbers)
        self.leads = False
        # states change, and gradients are refused, though no argument gets one
        acts = flow.changes or flow.refuses
        for place in inputs if acts else itertools.compress(inputs, flow.gives):
            if leads(place):
                self.leads = True
                break

    def output_leads(self, index: int) -> bool:
        """Whether anything is to be done behind an output."""
        return self.leads

    def is_over(self, index: int) -> bool:
        """Whether the tape was followed beyond an output."""
        return self.saved is None

    def let_go(self) -> None:
        """The tape was followed, and nothing is kept."""
        self.saved = None

    def place(self, index: int) -> Output | None:
        """The place of an output; None of a hidden one."""
        return Output(self, index) if index < len(self.outputs) else None


def _computed(behind: Sequence[Place], saved: Any) -> Output:
    """The place of what a program computed that has followed the tape."""
    node = Node(None, behind, Flow((True,) * len(behind)), (), (None,))
    node.saved = saved
    return Output(node, 0)


#: the place of what a program computed with all of its gradients: there is nothing to follow
FOLLOWED = _computed((), None)
#: that of a value that it computed beside: no constant, but the tape was followed behind it
BESIDE = _computed((FOLLOWED,), ())


class Call:
    """A gradient that is a Python function of the outputs' gradients."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function


class BundledCall(Call):
    """A gradient of many arguments at once: `function(node, grads, dests, create)`.

    It stores into `dests` itself, where these are not None. The first argument is a `Bundle`, or
    None: its gradient is a list of those of its leaves, its destination `DIRECT`.
    """

    __slots__ = ()


def record_copy(given: Any, dest: Any) -> None:
    """Record that `dest` is a copy of `given` on another device: so its gradient comes back."""
    place = source(given)
    if place is not None:
        there, kind = given.context, (dest._layout, dest.context)
        back = Call(lambda grad: [grad.as_in_context(there)])
        put(dest, "_tape", Node(back, [place], Flow((True,)), (), [kind]).place(0))


DIRECT: Any = (None, "bundle")  # the destination of a bundle: where each of its leaves wants it


@functools.lru_cache(maxsize=4096)
def gradient_of(
    op: Any, shapes: Any, types: Any, wanted: tuple[bool, ...], train: bool
) -> Gradient:
    """The gradient of an operator on such inputs, to those of the `wanted` arguments."""
    count = len(op.arguments())
    flow = flow_of(op, shapes[0][:count], types[0][:count], wanted, train)
    return Gradient(op, flow, shapes, types)


def record(
    op: Any, inputs: Sequence[Any], outputs: Sequence[Any], train: bool, context: Any = None
) -> None:
    """Enter an operator that was just applied; `outputs` are all of them, hidden ones too."""
    arguments = inputs[: len(op.arguments())]
    places = [source(x) for x in arguments]
    if places.count(None) == len(places):
        return
    shapes = tuple([x.shape for x in inputs]), tuple([x.shape for x in outputs])
    types = tuple([x._dtype for x in inputs]), tuple([x._dtype for x in outputs])
    wanted = tuple([place is not None for place in places])
    gradient = gradient_of(op, shapes, types, wanted, train)
    flow = gradient.flow
    saved = [inputs[k]._saved() for k in flow.reads.inputs]
    saved += [outputs[k]._saved() for k in flow.reads.outputs]
    saved += [inputs[k]._detached() for k in gradient.states]
    visible = outputs[: op.num_visible_outputs]
    kinds = [(x._layout, x.context) for x in visible]
    node = Node(gradient, places, flow, saved, kinds, (train, context))
    for k, x in enumerate(visible):
        put(x, "_tape", Output(node, k))

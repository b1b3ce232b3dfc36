"""The backward graph: each operator on a path to a wanted variable gets a node, its gradient.

A gradient node reads what its expression reads, of the gradients of the outputs, the inputs and
the outputs, and nothing else: what no gradient reads may be freed early. Gradients that come from
several readers are added up; where none comes, states change and nothing else is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gnomon.base import DTypeError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Graph, Node, search
from gnomon.ground.record import cached_property, record
from gnomon.ops import registry
from gnomon.ops.derive import Needs, among, check_values, leaves_of
from gnomon.ops.host import check_differentiable, refuses_gradients
from gnomon.ops.op import Op, numbered

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
Types = tuple[DType, ...]

SUM_AT_ONCE = 8  # more gradients than that are added up as they come, to let go of them


@record()
class Flow:
    """How gradients flow through a part of what is differentiated, and what happens beside that.

    `gives` says of each argument whether a gradient flows to it from those of the outputs; what
    computes them reads `reads`. `changes` says whether states may change then, which is to be done
    even where no gradient comes; `refuses` that one that comes is an error. That of an operator is
    `flow_of`; that of a function, a compiled block or a recorded step is said where it is made.
    This module asks for it, and the tape.
    """

    gives: tuple[bool, ...]
    changes: bool = False
    reads: Needs = Needs((), (), ())
    refuses: bool = False

    @property
    def leads(self) -> bool:
        """Whether anything is to be done behind the outputs."""
        return self.changes or True in self.gives


@record(slots=False)
class Gradient:
    """The operator whose outputs are the gradients of the arguments of `op`, as `flow` says.

    What it does not read is known by shape and dtype alone. States that it changes are its own.
    """

    op: Any
    flow: Flow
    shapes: tuple[Shapes, Shapes]  # of the inputs, of the outputs
    types: tuple[Types, Types]

    @property
    def name(self) -> str:
        """MXNet's name of it."""
        return f"_backward_{self.op.name}"

    @property
    def is_expression(self) -> bool:
        """Whether it can be composed with others; otherwise it runs on data."""
        return bool(self.op.is_expression)

    @property
    def has_expression(self) -> bool:
        """The same of devices with memory of their own."""
        return bool(self.op.has_expression)

    @property
    def num_visible_outputs(self) -> int:
        """One for each argument of `op`."""
        return len(self.op.arguments())

    def outputs(self) -> tuple[str, ...]:
        """`output`, or `output0, output1...`."""
        return numbered(len(self.op.arguments()))

    def inputs(self) -> tuple[str, ...]:
        """Names of what it reads: gradients of outputs, inputs, outputs, then states."""
        return (*self.arguments(), *self.auxiliary())

    def arguments(self) -> tuple[str, ...]:
        """Names of what it reads and leaves as it is."""
        ins, outs, reads = self.op.inputs(), self.op.outputs(), self.flow.reads
        grads = (f"{outs[k]}_grad" for k in reads.out_grads)
        return (*grads, *(ins[k] for k in reads.inputs), *(outs[k] for k in reads.outputs))

    def auxiliary(self) -> tuple[str, ...]:
        """Names of the states that it changes."""
        return tuple(self.op.inputs()[k] for k in self.states)

    @cached_property
    def states(self) -> range:
        """The numbers of the inputs of `op` that it changes: all of its states, or none."""
        count = len(self.shapes[0])
        return range(len(self.flow.gives) if self.flow.changes else count, count)

    def parts(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """`inputs` as gradients of outputs, inputs, outputs of `op`; None where nothing is read."""
        found, reads = iter(inputs), self.flow.reads
        grads: list[Any] = [None] * self.op.num_visible_outputs
        ins: list[Any] = [None] * len(self.shapes[0])
        outs: list[Any] = [None] * len(self.shapes[1])
        for part, numbers in (
            (grads, reads.out_grads),
            (ins, reads.inputs),
            (outs, reads.outputs),
            (ins, self.states),
        ):
            for k in numbers:
                part[k] = next(found)
        return grads, ins, outs

    def filled(self, parts: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any], list[Any]]:
        """`parts` with leaves in place of what is not read: they give shape and dtype alone."""
        grads, ins, outs = parts
        count = len(grads)
        return (
            _filled(grads, self.shapes[1][:count], self.types[1][:count]),
            _filled(ins, self.shapes[0], self.types[0]),
            _filled(outs, self.shapes[1], self.types[1]),
        )

    def apply(self, inputs: Sequence[Any], **context: Any) -> tuple[Expr | None, ...]:
        """The gradients as expressions, None where an argument has none."""
        grads, ins, outs = self.filled(self.parts(inputs))
        # the operator's own; dtypes are others where integers are taken as reals
        context |= {"out_shapes": self.shapes[1], "out_types": ()}
        found = self.op.backward(grads, ins, outs, **context)
        return tuple(g if given else None for g, given in zip(found, self.flow.gives, strict=True))

    def updates(
        self, inputs: Sequence[Any], aux: Sequence[Any], outputs: Any, train: bool = True
    ) -> dict[int, Expr]:
        """New values of the states by their index."""
        _, ins, outs = self.filled(self.parts([*inputs, *aux]))
        return moved(self.op, ins, outs, train) if self.flow.changes else {}


def moved(op: Any, inputs: Sequence[Any], outputs: Sequence[Any], train: bool) -> dict[int, Expr]:
    """What a backward pass makes of the states of an operator, by their index."""
    count = len(op.arguments())
    found: dict[int, Expr] = op.updates_backward(inputs[:count], inputs[count:], outputs, train)
    return found


def _filled(part: Sequence[Any], shapes: Shapes, types: Types) -> list[Any]:
    return [Buffer(s, t) if x is None else x for x, s, t in zip(part, shapes, types, strict=True)]


@record(slots=False)
class Backward:
    """The gradient's entry of each wanted variable that has one, and the new nodes in order.

    `shapes` and `types` know the entries of the new nodes.
    """

    grads: dict[Node, Entry]
    nodes: tuple[Node, ...]
    shapes: dict[Entry, Shape]
    types: dict[Entry, DType]


def backward(
    graph: Graph,
    shapes: Mapping[Entry, Shape],
    types: Mapping[Entry, DType],
    wrt: Collection[Node],
    heads: Sequence[Entry],
    train: bool = True,
) -> Backward:
    """The gradients of the variables `wrt`, given those of the first outputs of `graph` by `heads`.

    `shapes` and `types` know every entry of `graph`; `train` says which mode is differentiated. A
    variable that no gradient reaches is not among the result's. Operators between `wrt` and heads
    change their states even where the gradient is stopped above them, but not where it would be
    stopped below.
    """
    sums = _Sums(shapes, types, train)
    for entry, head in zip(graph.outputs, heads, strict=False):
        sums.receive(entry, head)
    followed = tuple(search(e.node for e in graph.outputs[: len(heads)]))
    for node, wanted in reversed(_reached(followed, wrt, sums).items()):
        _differentiate(node, wanted, sums)
    grads = {n: e for n in wrt if (e := sums.total(Entry(n, 0))) is not None}
    return Backward(grads, _needed(sums.nodes, grads.values()), sums.new_shapes, sums.new_types)


def _reached(
    nodes: Sequence[Node], wrt: Collection[Node], sums: _Sums
) -> dict[Node, tuple[bool, ...]]:
    """The operators that depend on `wrt`, and whether each argument's gradient leads there."""
    found: dict[Node, tuple[bool, ...]] = {}
    leading = set(wrt)
    for node in nodes:
        wanted = tuple(e.node in leading for e in _arguments(node))
        if any(wanted):
            found[node] = wanted
            if sums.flow_of(node, wanted).leads:
                leading.add(node)
    return found


def _arguments(node: Node) -> Sequence[Entry]:
    return () if node.op is None else node.inputs[: len(node.op.arguments())]


def _needed(nodes: Sequence[Node], wanted: Collection[Entry]) -> tuple[Node, ...]:
    """Those of `nodes` that `wanted` depend on, or that change states, in their order."""
    used = {e.node for e in wanted}
    used.update(n for n in nodes if n.op.auxiliary())
    for node in reversed(nodes):
        if node in used:
            used.update(e.node for e in node.inputs)
    return tuple(n for n in nodes if n in used)


class _Sums:
    """What each entry has received so far, and the nodes made for it."""

    def __init__(
        self, shapes: Mapping[Entry, Shape], types: Mapping[Entry, DType], train: bool
    ) -> None:
        self.shapes, self.types, self.train = shapes, types, train
        self.nodes: list[Node] = []
        self.new_shapes: dict[Entry, Shape] = {}
        self.new_types: dict[Entry, DType] = {}
        self._received: dict[Entry, list[Entry]] = {}

    def flow_of(self, node: Node, wanted: tuple[bool, ...]) -> Flow:
        """How the `wanted` gradients flow through a node."""
        arguments = _arguments(node)
        shapes, types = _of(self.shapes, arguments), _of(self.types, arguments)
        return flow_of(node.op, shapes, types, wanted, self.train)

    def add(self, node: Node, like: Sequence[Entry]) -> Node:
        """Keep a new node, whose outputs are like these entries."""
        self.nodes.append(node)
        for entry, other in zip(node.entries(), like, strict=True):
            self.new_shapes[entry], self.new_types[entry] = self.shapes[other], self.types[other]
        return node

    def receive(self, entry: Entry, grad: Entry) -> None:
        """`grad` is one reader's share of the gradient of `entry`."""
        shares = self._received.setdefault(entry, [])
        shares.append(grad)
        if len(shares) == SUM_AT_ONCE:
            shares[:] = [self._sum(entry, shares)]

    def total(self, entry: Entry) -> Entry | None:
        """The whole gradient of `entry`, None where nothing came."""
        shares = self._received.get(entry)
        if shares and len(shares) > 1:
            shares[:] = [self._sum(entry, shares)]
        return shares[0] if shares else None

    def zeros(self, entry: Entry) -> Entry:
        """Zeros like `entry`."""
        given = {"shape": self.shapes[entry], "dtype": self.types[entry].name}
        name = f"{entry.node.name}_no_gradient"
        return Entry(self.add(Node(registry.find("_zeros").parse(given), name), [entry]), 0)

    def _sum(self, entry: Entry, shares: Sequence[Entry]) -> Entry:
        op = registry.find("add_n").parse({"num_args": len(shares)})
        node = Node(op, "sum_grad", shares)
        return Entry(self.add(node, [entry]), 0)


def _differentiate(node: Node, wanted: tuple[bool, ...], sums: _Sums) -> None:
    """Send what `node` received on to its `wanted` arguments."""
    shapes = _of(sums.shapes, node.inputs), _of(sums.shapes, node.entries())
    types = _of(sums.types, node.inputs), _of(sums.types, node.entries())
    flow = sums.flow_of(node, wanted)
    grads = [sums.total(e) for e in node.visible()]
    if any(grads):
        check_differentiable(node.op)
    if flow.reads.out_grads and not any(grads):  # what it changes is all that there is to do
        flow = sums.flow_of(node, (False,) * len(wanted))
    if not flow.leads:
        return
    op = Gradient(node.op, flow, shapes, types)
    reads = [grads[k] or sums.zeros(Entry(node, k)) for k in flow.reads.out_grads]
    reads += [node.inputs[k] for k in flow.reads.inputs]
    reads += [Entry(node, k) for k in flow.reads.outputs]
    reads += [node.inputs[k] for k in op.states]
    arguments = _arguments(node)
    made = sums.add(Node(op, f"{node.name}_backward", reads, node.attrs), arguments)
    for k, entry in enumerate(arguments):
        if flow.gives[k]:
            sums.receive(entry, Entry(made, k))


def _of(known: Mapping[Entry, Any], entries: Sequence[Entry]) -> tuple[Any, ...]:
    return tuple(known[e] for e in entries)


def flow_of(
    op: Any, in_shapes: Shapes, in_types: Types, wanted: tuple[bool, ...], train: bool
) -> Flow:
    """How gradients of the `wanted` arguments flow through an operator."""
    if isinstance(op, Op) and op.derives:
        if op.elementwise and len(set(in_shapes)) == 1:
            in_shapes = ((2,),) * len(in_shapes)  # that is the same for every shape
        elif (op.moves is not None or op.reshapes) and wanted[0] and in_types[0].kind == "f":
            return Flow(wanted, False, Needs((0,), (), ()))
    decides = _deciding(op, in_shapes) if isinstance(op, Op) else None
    if decides is None:
        return _look(op, in_shapes, in_types, wanted, train)
    key = op, tuple(map(len, in_shapes)), decides, in_types, wanted, train
    if key not in _looked:
        if len(_looked) >= KEPT:
            _looked.clear()
        _looked[key] = _look(op, in_shapes, in_types, wanted, train)
    return _looked[key]


KEPT = 4096
_looked: dict[Any, Flow] = {}  # by what of the sizes decides


def _deciding(op: Any, shapes: Shapes) -> Shape | None:
    """The sizes that decide what a gradient reads; None: all."""
    if op.free is not None:
        found = op.free(*shapes)
        if found is None or 0 in found.sizes:
            return None
        return *found.fixed, *found.spans, 1 in found.sizes
    if op.reduces is not None and op.derives:
        return tuple([min(n, 2) for n in shapes[0]])
    return None


@functools.lru_cache(maxsize=4096)
def _look(
    op: Any, in_shapes: Shapes, in_types: Types, wanted: tuple[bool, ...], train: bool
) -> Flow:
    if not op.is_expression:
        return _look_at_data_operator(op, in_shapes, in_types, wanted)
    inputs, outputs = leaves_of(op, in_shapes, in_types)
    out_grads = [Buffer(o.shape, o.dtype) for o in outputs[: op.num_visible_outputs]]
    context = {"train": train, "out_shapes": [o.shape for o in outputs]}
    changed = moved(op, inputs, outputs, train) if len(inputs) > len(in_shapes) else {}
    found = op.backward(out_grads, inputs, outputs, **context)
    if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
        got = f"{len(found)} of them" if isinstance(found, (tuple, list)) else repr(found)
        expected = f"a tuple of {len(wanted)} gradients"
        raise ShapeError(complaint(f"{op.name}.backward", "result", expected, got))
    where = f"{op.name}.backward"
    for name, grad in zip(op.arguments(), found, strict=True):
        if grad is not None and not isinstance(grad, Expr):
            expected, got = "an expression, or None", f"a {type(grad).__name__}: {shown(grad)}"
            raise DTypeError(complaint(where, name, expected, got))
    leaves = inputs[: len(wanted)]
    told = [x.shape for x in leaves], [x.dtype for x in leaves]
    check_values(where, op.arguments(), found, *told)
    gives = tuple(w and g is not None for w, g in zip(wanted, found, strict=True))
    made = [g for g, given in zip(found, gives, strict=True) if given]
    read = {id(n) for n in postorder([*made, *changed.values()])}
    kept = inputs[: len(wanted)] if changed else inputs
    reads = Needs(*(among(read, leaves) for leaves in (out_grads, kept, outputs)))
    return Flow(gives, bool(changed), reads)


def _look_at_data_operator(
    op: Any, in_shapes: Shapes, in_types: Types, wanted: tuple[bool, ...]
) -> Flow:
    """The same of an operator that runs on data: what it says, and its states always."""
    reads, count = op.backward_needs(in_shapes, in_types), len(in_shapes)
    if not (reads.out_grads or reads.inputs or reads.outputs):
        return Flow((False,) * len(wanted), refuses=refuses_gradients(op))  # it has no gradient
    inputs = tuple(k for k in reads.inputs if k < count)
    changes = len(op.auxiliary()) > 0
    return Flow(wanted, changes, Needs(reads.out_grads, inputs, reads.outputs))

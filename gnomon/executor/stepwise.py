"""Executors without a program: operators one after the other, as NDArray statements.

A program works on all elements of arrays, in one memory, whose sizes are known before it runs. So
where an array is sparse, values decide a shape, or nodes run on several devices of which one has a
memory of its own, there is none: the operators of the graph are applied to the arrays, which gives
each its form for sparse storage where it has one (`ndarray/sparse/rules.py`), copies stand in the
graph wherever a value is read on another context than it is made on (`graph/place.py`), and
`backward` follows the tape. State: `_heads_on_tape` are the outputs of the last pass that was
recorded; a new pass drops them. `_shapes` of what values decide are those of the last pass, and
so are outputs of such shapes: new arrays, empty ones before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import autograd
from gnomon import ndarray as nd
from gnomon.base import GnomonError
from gnomon.context import Context
from gnomon.executor import arrays
from gnomon.executor.arena import Arena
from gnomon.executor.executor import Executor, hidden_heads, listed
from gnomon.executor.network import Bound, Known, contexts_of, inferred
from gnomon.executor.train_step import Feed, Follower, check_feeds
from gnomon.graph import infer
from gnomon.graph.node import Entry, Node
from gnomon.graph.place import CrossDeviceCopy, contexts, place, with_copies
from gnomon.graph.storage import storage
from gnomon.ndarray.core.elsewhere import check_together


class StepwiseExecutor(Executor):
    """A symbol without a program: on sparse arrays, on several devices, or of shapes by values.

    >>> import gnomon as mx
    >>> x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w")
    >>> e = mx.sym.dot(x, w).simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    >>> e.arg_dict["x"].stype, e.grad_dict["w"].stype
    ('csr', 'row_sparse')
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Context,
        bound: Bound,
        groups: Mapping[str, Context],
        arena: Arena | None = None,
        known: Known | None = None,
        outputs: Sequence[Any] = (),
    ) -> None:
        self._symbol, self._ctx, self._group2ctx = symbol, ctx, groups
        self.arg_arrays, self.grad_arrays, self.aux_arrays, self._grad_req = bound
        self.arena = arena or Arena(ctx)
        self._monitor, self._monitor_all = None, False
        placed = place(symbol._graph, ctx, groups, contexts_of(symbol._graph, bound))
        self._check_states(placed)
        self._graph = graph = with_copies(symbol._graph, placed)
        self._where = contexts(graph.topo) or placed
        self._wanted = [k for k, request in enumerate(self._grad_req) if request != "null"]
        self._differentiates = bool(self._wanted)
        self._check_gradients()
        tables = self._tables(self.arg_arrays)
        if known is None or graph is not symbol._graph:
            known = inferred(graph, list(tables.items()), stepwise=True)
        shapes, types = known
        self._shapes, self._types = dict(shapes), types
        kinds = storage(graph, {n: a.stype for n, a in tables.items()})
        self._open = [not infer.complete(shapes[e]) for e in graph.outputs]
        given = outputs or [None] * len(graph.outputs)
        self.outputs = [
            arrays.zeros(_empty_where_open(shapes[e]), self._where[e.node], types[e], kinds[e])
            if x is None
            else x
            for e, x in zip(graph.outputs, given, strict=True)
        ]
        self._heads_on_tape: list[Any] | None = None
        self._trained = False  # whether the last pass was one of training

    def _check_gradients(self) -> None:
        """Refuse arrays for gradients of another shape, or on another context, than arguments."""
        names = self._symbol.list_arguments()
        for k in self._wanted:
            name, array, grad = f"args_grad[{names[k]}]", self.arg_arrays[k], self.grad_arrays[k]
            arrays.check("bind", name, array, grad)
            arrays.check_context("bind", name, array.context, grad)

    def _check_states(self, placed: Mapping[Node, Context]) -> None:
        """Refuse states that are elsewhere than the operator that changes them."""
        states = dict(zip(self._symbol._graph.auxiliary, self.aux_arrays, strict=True))
        for node in self._symbol._graph.topo:
            count = 0 if node.op is None else len(node.op.auxiliary())
            for entry in node.inputs[len(node.inputs) - count :]:
                if entry.node not in states:  # it is computed
                    continue
                name, whose = f"aux_states[{entry.node.name}]", f"operator {node.name!r}"
                check_together("bind", name, states[entry.node], placed[node], whose)

    def lend(self) -> Arena:
        """The working memory for another executor; this one needs none."""
        return self.arena

    def _tables(self, args: Sequence[Any]) -> dict[Node, Any]:
        """Arguments and states by variable."""
        pairs = zip(self._graph.arguments, args, strict=True)
        return dict([*pairs, *zip(self._graph.auxiliary, self.aux_arrays, strict=True)])

    # computing ------------------------------------------------------------------------------

    def forward_on(self, feeds: Sequence[Feed], is_train: bool = False) -> None:
        check_feeds(feeds)
        for dest, value in feeds:
            arrays.assign(dest, value)
        self._trained = bool(is_train)
        self._compute(self._trained and self._differentiates)

    def _compute(self, record: bool) -> None:
        """The outputs, on the tape if they are to be differentiated."""
        self._heads_on_tape = None
        args = [x._detached() for x in self.arg_arrays]
        wanted = self._wanted if record else []
        autograd.mark_variables(
            [args[k] for k in wanted],
            [self.grad_arrays[k] for k in wanted],
            [self._grad_req[k] for k in wanted],
        )
        scope = autograd.record if record else autograd.pause
        with scope(train_mode=self._trained):
            values = self._walk(self._tables(args))
        for k, (dest, value) in enumerate(zip(self.outputs, values, strict=True)):
            if self._open[k]:
                self.outputs[k] = value._detached().copy()
            else:
                dest[:] = value
        self._heads_on_tape = values if record else None

    def _walk(self, inputs: Mapping[Node, Any]) -> list[Any]:
        """The values of the outputs; others are let go after their last reader."""
        graph = self._graph
        values = {Entry(node, 0): array for node, array in inputs.items()}
        readers = Counter(e for node in graph.topo for e in node.inputs)
        readers.update(graph.outputs)
        for node in graph.topo:
            if node.op is None:
                continue
            given = [values[e] for e in node.inputs]
            self._tell_inputs(node, given)
            found = _applied(node.op, given, self._where[node])
            values.update(zip(node.visible(), found, strict=True))
            self._shapes.update((e, values[e].shape) for e in node.visible())
            self._tell(node, node.op.outputs(), found)
            for entry in node.inputs:
                readers[entry] -= 1
                if not readers[entry]:
                    del values[entry]
        return [values[e] for e in graph.outputs]

    def forward_backward(self, feeds: Sequence[Feed] = (), out_grads: Any = None) -> None:
        self.forward_on(feeds, is_train=True)
        self.backward(out_grads)

    def follow(self, after: Follower, numbers: Any) -> bool:
        return False

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        if not self._differentiates:
            return
        names = self._symbol.list_outputs()
        given = listed(names, out_grads, hidden_heads(self._graph))
        if self._heads_on_tape is None:
            self._compute_again()
        for name, output, head, entry in zip(
            names, self.outputs, given, self._graph.outputs, strict=True
        ):
            if head is not None:
                arrays.check("backward", f"out_grads[{name}]", output, head)
            elif _reads_head(entry.node, self._shapes, self._types):
                text = "no gradient given, and the operator is no loss"
                raise GnomonError(f"backward: output {name!r}: {text}: pass it as out_grads")
        for k in self._wanted:
            if self._grad_req[k] == "write":
                self.grad_arrays[k][:] = 0  # what no gradient reaches
        pairs = zip(self._heads_on_tape or (), given, strict=True)
        reached = [(x, head) for x, head in pairs if x._tape is not None]
        if reached:
            heads, grads = zip(*reached, strict=True)
            autograd.backward(list(heads), list(grads), retain_graph=True)

    def _compute_again(self) -> None:
        """The last pass once more, now recorded."""
        if self._trained and self.aux_arrays:
            raise GnomonError(
                "backward: computing forward again would change states twice: call "
                "forward(is_train=True) right before backward"
            )
        self._compute(record=True)

    # looking inside -------------------------------------------------------------------------

    def _tell_inputs(self, node: Node, given: Sequence[Any]) -> None:
        if self._monitor is not None and self._monitor_all:
            names = node.op.inputs()
            for entry, name, array in zip(node.inputs, names, given, strict=True):
                if entry.node.op is None:
                    self._monitor(entry.node.name, array._detached().copy())
                self._tell(node, (name,), (array,))

    def _tell(self, node: Node, names: Sequence[str], values: Sequence[Any]) -> None:
        if self._monitor is not None:
            for name, array in zip(names, values, strict=False):
                self._monitor(f"{node.name}_{name}", array._detached().copy())

    def memory_plan(self, is_train: bool | None = None) -> Any:
        raise GnomonError(_PLANLESS.format("memory_plan"))

    def report(self, path: Any, is_train: bool | None = None) -> None:
        raise GnomonError(_PLANLESS.format("report"))

    def debug_str(self) -> str:
        told = "There is no program: the operators are applied one after the other."
        nodes = (node for node in self._graph.topo if node.op is not None)
        rows = (f"{n.name} = {n.op.name}({', '.join(map(repr, n.inputs))})" for n in nodes)
        return "\n".join([told, *rows])


_PLANLESS = (
    "Executor.{}: arrays are sparse or on several devices, or values decide shapes, so operators "
    "are applied one after the other: there is no plan"
)


def _applied(op: Any, given: Sequence[Any], ctx: Context) -> list[Any]:
    """The visible outputs of an operator."""
    if op.name == "cast_storage":
        return [given[0].tostype(op.stype)]
    if isinstance(op, CrossDeviceCopy):
        return [given[0].as_in_context(ctx)]
    found = nd.invoke(op, given, None, ctx)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _empty_where_open(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without elements where one is open: what values decide is not known yet."""
    return tuple([max(size, 0) for size in shape])


def _reads_head(node: Node, shapes: Mapping[Entry, Any], types: Mapping[Entry, Any]) -> bool:
    """Whether gradients read that of an output of `node`; those of losses do not."""
    if node.op is None:
        return True
    ins = node.inputs[: len(node.op.arguments())]
    needs = node.op.backward_needs([shapes[e] for e in ins], [types[e] for e in ins])
    return bool(needs.out_grads)

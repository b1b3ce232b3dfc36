"""Operators that run on data (custom operators, classic properties), as work of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.base import Later
from gnomon.context import Context
from gnomon.engine import Var
from gnomon.expr.node import Buffer
from gnomon.graph.gradient import Gradient
from gnomon.graph.node import Entry, Node, states_of
from gnomon.graph.tasks.task import Buffers
from gnomon.ops.property import OpContext
from gnomon.ops.requests import OpReqType
from gnomon.resource import request

if TYPE_CHECKING:
    from gnomon import shadow
else:
    shadow = Later("gnomon.shadow")


class DataTask:
    """One node's run, on the memory that the plan gave its entries.

    Every output is written but for the gradients that are `added` to the caller's arrays. `kept`
    holds, by operator object, what one run hands to the next. Resources are those of `ctx`, else of
    the current context.
    """

    def __init__(
        self,
        node: Node,
        buffers: Buffers | Mapping[Entry, Buffer],
        train: bool,
        kept: dict[object, object],
        added: Sequence[bool],
        ctx: Context | None = None,
    ) -> None:
        self.ctx = ctx
        self.node, self.buffers, self.train = node, buffers, train
        self.kept, self.added = kept, added
        self.states = [buffers[e] for e in states_of(node)]
        self.requested = self._requested(isinstance(node.op, Gradient))

    def _requested(self, backward: bool) -> list[Any]:
        """The resources that the operator asked for."""
        op = self.node.op.op if backward else self.node.op
        count = len(op.arguments())
        if backward:
            shapes = self.node.op.shapes[0][:count]
        else:
            shapes = tuple(self.buffers[e].shape for e in self.node.inputs[:count])
        return [request(r, self.ctx) for r in op.resources(list(shapes), backward)]

    @property
    def variables(self) -> list[Var]:
        """The engine variables of these resources, which no other code may use meanwhile."""
        return [r.var for r in self.requested]

    def run(self) -> None:
        """Compute all outputs of the node, or all gradients."""
        op = self.node.op
        if isinstance(op, Gradient):
            self._backward(op)
        else:
            self._forward(op)

    def _forward(self, op: Any) -> None:
        arguments = self.node.inputs[: len(op.arguments())]
        made = [self.buffers[e] for e in self.node.entries()]
        context = self._context(op)
        ins = [shadow.TBlob(self.buffers[e]) for e in arguments]
        requests = [OpReqType.kWriteTo] * len(made)
        op.run(
            context,
            ins,
            requests,
            list(map(shadow.TBlob, made)),
            list(map(shadow.TBlob, self.states)),
        )

    def _backward(self, gradient: Gradient) -> None:
        op = gradient.op
        grads, ins, outs = gradient.parts([shadow.TBlob(self.buffers[e]) for e in self.node.inputs])
        made = [self.buffers[e] for e in self.node.entries()]
        context = self._context(op)
        requests = [
            OpReqType.kNullOp if not given else OpReqType.kAddTo if added else OpReqType.kWriteTo
            for given, added in zip(gradient.flow.gives, self.added, strict=True)
        ]
        blobs, states = (list(map(shadow.TBlob, part)) for part in (made, self.states))
        op.run_backward(context, grads, ins[: len(op.arguments())], outs, requests, blobs, states)

    def _context(self, op: Any) -> OpContext:
        state = self.kept.setdefault(id(op), {})
        assert isinstance(state, dict)
        return OpContext(is_train=self.train, requested=self.requested, state=state)

"""Operators that run on data (custom operators, classic properties), as work of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.graph.gradient import Gradient
from gnomon.graph.node import Node, states_of
from gnomon.graph.task import Buffers
from gnomon.ops.property import OpContext
from gnomon.ops.requests import OpReqType
from gnomon.resource import request
from gnomon.shadow import TBlob


class DataTask:
    """One node's run, on the memory that the plan gave its entries.

    Every output is written; what is added to the caller's array is added by a task after.
    `kept` holds, by operator node, what forward hands to backward.
    """

    def __init__(self, node: Node, buffers: Buffers, train: bool, kept: dict[object, object]):
        self.node, self.buffers, self.train = node, buffers, train
        self.kept = kept
        self.states = [buffers[e] for e in states_of(node)]

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
        shapes = [self.buffers[e].shape for e in arguments]
        context = self._context(self.node.name, op, shapes, backward=False)
        ins = [TBlob(self.buffers[e]) for e in arguments]
        requests = [OpReqType.kWriteTo] * len(made)
        op.run(context, ins, requests, list(map(TBlob, made)), list(map(TBlob, self.states)))

    def _backward(self, gradient: Gradient) -> None:
        op = gradient.op
        grads, ins, outs = gradient.parts([TBlob(self.buffers[e]) for e in self.node.inputs])
        count = len(op.arguments())
        made = [self.buffers[e] for e in self.node.entries()]
        context = self._context(self.forward_name, op, gradient.shapes[0][:count], backward=True)
        write, skip = OpReqType.kWriteTo, OpReqType.kNullOp
        gives = gradient.gives or (True,) * count
        requests = [write if given else skip for given in gives]
        states = ins[count:]
        blobs = list(map(TBlob, made))
        op.run_backward(context, grads, ins[:count], outs, requests, blobs, states)

    @property
    def forward_name(self) -> str:
        """The name of the node whose gradient this is."""
        return self.node.name.removesuffix("_backward")

    def _context(self, key: str, op: Any, shapes: Sequence[Any], backward: bool) -> OpContext:
        state = self.kept.setdefault(key, {})
        wanted = [request(r) for r in op.resources(list(shapes), backward)]
        assert isinstance(state, dict)
        return OpContext(is_train=self.train, requested=wanted, state=state)

"""Any registered operator through the classic interface: its property, and the object that works.

meaning = property_of("FullyConnected", num_hidden=10)
meaning.infer_shape([(32, 784), None, None])
meaning.create_operator(ctx).forward(ctx, in_data, req, out_data, aux_states)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.expr.node import Expr
from gnomon.ops import registry
from gnomon.ops.op import Op
from gnomon.ops.property import Blobs, OpContext, Operator, OperatorProperty, Requests
from gnomon.ops.requests import assign_all, check_requests, kAddTo, kWriteTo
from gnomon.resource import ResourceRequest


def property_of(name: str, **params: Any) -> OperatorProperty:
    """The property of the operator `name` with these parameters.

    >>> property_of("FullyConnected", num_hidden=10).list_arguments()
    ['data', 'weight', 'bias']
    """
    cls = registry.find(name)
    made_from = getattr(cls, "made_from", None)
    meaning = made_from() if made_from else RecordProperty(cls)
    meaning.init(params)
    return meaning


class RecordProperty(OperatorProperty):
    """An operator record seen as a property."""

    op: Op

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.shapes: Sequence[Any] | None = None
        self.types: Sequence[Any] | None = None

    def init(self, kwargs: Mapping[str, Any]) -> None:
        self.op = self.cls.parse(kwargs)

    def get_params(self) -> dict[str, str]:
        return self.op.attrs()

    def list_arguments(self) -> list[str]:
        return list(self.op.arguments())

    def list_outputs(self) -> list[str]:
        return list(self.op.outputs())

    def list_auxiliary_states(self) -> list[str]:
        return list(self.op.auxiliary())

    def num_visible_outputs(self) -> int:
        return self.op.num_visible_outputs

    def infer_shape(
        self, in_shape: list[Any], out_shape: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], list[Any]] | bool:
        found = self.op.infer_shape(in_shape, out_shape or None)
        whole = all(s is not None and 0 not in s for part in found for s in part)
        self.shapes = found[0] if whole else None
        return found if whole else False

    def infer_type(
        self, in_type: list[Any], out_type: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], list[Any]] | bool:
        found = self.op.infer_type(in_type, out_type or None)
        whole = all(t is not None for part in found for t in part)
        self.types = found[0] if whole else None
        return found if whole else False

    def forward_resource(self, in_shape: list[Any]) -> list[Any]:
        return [ResourceRequest("kRandom")] if self.op.is_random else self.op.resources(in_shape)

    def declare_backward_dependency(
        self, out_grad: list[int], in_data: list[int], out_data: list[int]
    ) -> list[int]:
        """Exact once shapes and dtypes have been inferred; until then, everything."""
        if self.shapes is None or self.types is None:
            return [*out_grad, *in_data, *out_data]
        needs = self.op.backward_needs(self.shapes, self.types)
        groups = ((out_grad, needs.out_grads), (in_data, needs.inputs), (out_data, needs.outputs))
        return [group[k] for group, which in groups for k in which]

    def forward_inplace_option(
        self, in_data: list[int], out_data: list[Any]
    ) -> list[tuple[int, Any]]:
        if self.shapes is None or self.types is None:
            return []
        pairs = self.op.inplace(self.shapes, self.types)
        return [(in_data[i], out_data[o]) for i, o in pairs]

    def create_operator(self, ctx: Any) -> Operator:
        return RecordOperator(self.op)


class RecordOperator(Operator):
    """An operator record at work on TBlobs."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def forward(
        self, ctx: OpContext, in_data: Blobs, req: Requests, out_data: Blobs, aux_states: Blobs
    ) -> None:
        """Store the outputs, and the states' new values, as one group of statements."""
        op = self.op
        check_requests(op.name, req, out_data)
        if not op.is_expression:
            op.run(ctx, in_data, req, out_data, aux_states)
            return
        arguments, states = tensors(in_data), tensors(aux_states)
        context = (
            {"random": ctx.requested[0].get_random()} if op.is_random and ctx.requested else {}
        )
        shapes = [b.tensor.shape for b in out_data]
        values = op.apply([*arguments, *states], train=ctx.is_train, out_shapes=shapes, **context)
        updates = op.updates(arguments, states, values, ctx.is_train)
        assign_all(
            [*out_data, *(aux_states[k] for k in updates)],
            [*req, *(kWriteTo for _ in updates)],
            [*values, *updates.values()],
        )

    def backward(
        self,
        ctx: OpContext,
        out_grad: Blobs,
        in_data: Blobs,
        out_data: Blobs,
        req: Requests,
        in_grad: Blobs,
        aux_states: Blobs,
    ) -> None:
        """Store the gradients, and the states' new values; without a gradient there is 0."""
        op = self.op
        check_requests(op.name, req, in_grad)
        if not op.is_expression:
            op.run_backward(ctx, out_grad, in_data, out_data, req, in_grad, aux_states)
            return
        arguments, states, outputs = tensors(in_data), tensors(aux_states), tensors(out_data)
        train = ctx.is_train
        grads = op.backward(tensors(out_grad), [*arguments, *states], outputs, train=train)
        wanted = [r if g is not None or r != kAddTo else 0 for r, g in zip(req, grads, strict=True)]
        updates = op.updates_backward(arguments, states, outputs, train)
        assign_all(
            [*in_grad, *(aux_states[k] for k in updates)],
            [*wanted, *(kWriteTo for _ in updates)],
            [*(0 if g is None else g for g in grads), *updates.values()],
        )


def tensors(blobs: Blobs) -> list[Expr]:
    """The data of TBlobs as expressions."""
    return [blob.tensor for blob in blobs]

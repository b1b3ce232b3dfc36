"""Folding for prediction: a normalization by known statistics becomes part of the layer before it.

`gamma * (conv(x, w) + b - mean) / sqrt(var + eps) + beta` is a convolution with another weight and
bias. These are made of parameters alone: a program keeps them, and makes them again when one of the
parameters has changed (`executor/prepared.py`).
"""

from __future__ import annotations

from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.graph.node import Entry, Node
from gnomon.graph.typed_graph import Kept, Purpose, Rewriter, TypedGraph
from gnomon.ops.op import describe
from gnomon.ops.param import param


class FoldedNorm(Kept):
    """The weight and bias of a layer that normalizes its output, too.

    No operator of the users: what a pass makes of a normalization.
    """

    name = "_folded_norm"
    output_names = ("weight", "bias")

    eps: float = param(0.001, low=0, doc="Added to the variance.")
    fix_gamma: bool = param(True, doc="Take gamma as 1.")
    no_bias: bool = param(True, doc="Whether the layer had no bias.")

    def arguments(self) -> tuple[str, ...]:
        bias = () if self.no_bias else ("bias",)
        return ("weight", *bias, "gamma", "beta", "mean", "var")

    def forward(self, weight: Expr, *others: Expr) -> tuple[Expr, Expr]:
        *bias, gamma, beta, mean, variance = others
        scale = fn.rsqrt(variance + self.eps)
        scale = scale if self.fix_gamma else scale * gamma
        center = bias[0] - mean if bias else -mean
        whole: Expr = weight * ext.broadcast_axis(scale, weight.shape, 0)
        return whole, beta + center * scale


describe(FoldedNorm)


def fold_norm(typed: TypedGraph, purpose: Purpose) -> TypedGraph:
    """`typed` with normalizations in the layers whose outputs only they read."""
    if purpose.differentiate:
        return typed
    rewriter = Rewriter(typed)
    for old in typed.graph.topo:
        if old.op is None:
            continue
        if _folds(typed, purpose, old):
            rewriter.put(old.entries()[:1], [_folded(rewriter, old)])
        else:
            rewriter.put(old.entries(), rewriter.reread(old).entries())
    return rewriter.done()


def _folds(typed: TypedGraph, purpose: Purpose, norm: Node) -> bool:
    """Whether `norm` normalizes, by statistics that are known, what a layer gives to it alone."""
    if norm.op.name != "BatchNorm" or norm.op.batch(purpose.train):
        return False
    read, layer = norm.inputs[0], norm.inputs[0].node
    if layer.op is None or not _channels_are(layer.op, norm.op.axis, len(typed.shapes[read])):
        return False
    consumers, outputs = typed.graph.consumers, typed.graph.outputs
    alone = len(consumers[read]) == 1 and read not in outputs
    unread = not any(e in consumers or e in outputs for e in norm.entries()[1:])
    parameters = (*layer.inputs[1:], *norm.inputs[1:])
    known = all(e.node.op is None for e in parameters)
    same = len({typed.types[e] for e in (read, *parameters)}) == 1
    return alone and unread and known and same


def _channels_are(op: Any, axis: int, ndim: int) -> bool:
    """Whether `axis` of the output is that of the weight's rows."""
    if op.name == "Convolution":
        return axis % ndim == 1 and (op.layout is None or op.layout.startswith("NC"))
    return bool(op.name == "FullyConnected" and axis % ndim == ndim - 1)


def _folded(rewriter: Rewriter, norm: Node) -> Entry:
    """The layer that does both."""
    layer = norm.inputs[0].node
    source, *parameters = layer.inputs
    given = {k: getattr(norm.op, k) for k in ("eps", "fix_gamma")}
    op = FoldedNorm.parse({**given, "no_bias": layer.op.no_bias})
    made = Node(op, f"{norm.name}_folded", (*parameters, *norm.inputs[1:]))
    rewriter.made(made, (parameters[0], norm.inputs[2]))
    both = type(layer.op).parse({**layer.op.attrs(), "no_bias": False})
    inputs = (rewriter.now(source), *made.entries())
    new = Node(both, f"{layer.name}+{norm.name}", inputs, norm.attrs)
    return Entry(rewriter.made(new, norm.entries()[:1]), 0)

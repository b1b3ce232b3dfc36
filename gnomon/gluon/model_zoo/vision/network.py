"""What the networks share: features before an output, blocks in a row, branches side by side."""

from __future__ import annotations

from typing import Any

from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.contrib.nn import HybridConcurrent


class Network(HybridBlock):
    """A network of `features`, all layers but the last, and an `output`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


def chain(*blocks: HybridBlock) -> nn.HybridSequential:
    """Blocks one after the other, without a scope of their own."""
    out = nn.HybridSequential(prefix="")
    out.add(*blocks)
    return out


def beside(*blocks: HybridBlock) -> HybridConcurrent:
    """Blocks side by side, whose channels are joined."""
    out = HybridConcurrent(axis=1, prefix="")
    out.add(*blocks)
    return out


def relu() -> nn.Activation:
    """The activation of most layers."""
    return nn.Activation("relu")

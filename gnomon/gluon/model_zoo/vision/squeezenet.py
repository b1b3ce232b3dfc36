"""SqueezeNet: few parameters by squeezing channels before every 3x3 convolution."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.contrib.nn import HybridConcurrent
from gnomon.gluon.model_zoo.model_store import ROOT, load_pretrained, named

# version -> channels and kernel of the first convolution, squeezed channels (0: pooling)
SPECS = {
    "1.0": (96, 7, (0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64)),
    "1.1": (64, 3, (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64)),
}


def _activated(channels: int, kernel: int, padding: int = 0) -> nn.HybridSequential:
    part = nn.HybridSequential(prefix="")
    part.add(nn.Conv2D(channels, kernel, padding=padding))
    part.add(nn.Activation("relu"))
    return part


def _fire(squeezed: int) -> nn.HybridSequential:
    """Squeeze the channels, and widen them by convolutions of two sizes side by side."""
    part = nn.HybridSequential(prefix="")
    part.add(_activated(squeezed, 1))
    both = HybridConcurrent(axis=1, prefix="")
    both.add(_activated(4 * squeezed, 1))
    both.add(_activated(4 * squeezed, 3, 1))
    part.add(both)
    return part


class SqueezeNet(HybridBlock):
    """SqueezeNet.

    Args:
        version: "1.0" or "1.1".
        classes: how many there are.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in SPECS:
            raise ParamError(
                complaint("SqueezeNet", "version", f"one of {[*SPECS]}", repr(version))
            )
        channels, kernel, squeezed = SPECS[version]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(channels, kernel_size=kernel, strides=2))
            self.features.add(nn.Activation("relu"))
            for width in squeezed:
                pool = nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True) if width == 0 else None
                self.features.add(pool or _fire(width))
            self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            self.output.add(nn.Conv2D(classes, kernel_size=1))
            self.output.add(nn.Activation("relu"))
            self.output.add(nn.AvgPool2D(13))
            self.output.add(nn.Flatten())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


def get_squeezenet(
    version: str,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> SqueezeNet:
    """SqueezeNet "1.0" or "1.1"; `pretrained` reads its parameters from the folder `root`."""
    net = SqueezeNet(version, **kwargs)
    if pretrained:
        load_pretrained(net, f"squeezenet{version}", root, ctx)
    return net


squeezenet1_0 = named("squeezenet1_0", get_squeezenet, "1.0")
squeezenet1_1 = named("squeezenet1_1", get_squeezenet, "1.1")

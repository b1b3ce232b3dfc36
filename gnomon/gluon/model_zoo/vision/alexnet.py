"""AlexNet."""

from __future__ import annotations

from typing import Any

from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock  # noqa: F401  MXNet's has it
from gnomon.gluon.model_zoo.model_store import ROOT, trained
from gnomon.gluon.model_zoo.vision.network import Network

__all__ = ["AlexNet", "alexnet"]

# channels, kernel, stride, padding, and whether pooling follows
LAYERS = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)


class AlexNet(Network):
    """Five convolutions and three dense layers, for images 224 wide."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self._fill()
            self.output = nn.Dense(classes)

    def _fill(self) -> None:
        """Make all layers but the last."""
        for channels, kernel, stride, padding, pooled in LAYERS:
            self.features.add(nn.Conv2D(channels, kernel, stride, padding, activation="relu"))
            if pooled:
                self.features.add(nn.MaxPool2D(pool_size=3, strides=2))
        self.features.add(nn.Flatten())
        for _ in range(2):
            self.features.add(nn.Dense(4096, activation="relu"), nn.Dropout(0.5))


def alexnet(
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> AlexNet:
    """AlexNet; `pretrained` reads its parameters from the folder `root`."""
    return trained(AlexNet(**kwargs), pretrained, "alexnet", root, ctx)

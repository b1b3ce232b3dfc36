"""VGG: blocks of small convolutions."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock  # noqa: F401  MXNet's has it
from gnomon.gluon.model_zoo.model_store import ROOT, named, trained
from gnomon.gluon.model_zoo.vision.network import Network, chain, relu
from gnomon.initializer import Xavier

# number of layers -> convolutions of each block, channels
vgg_spec = {
    11: ([1, 1, 2, 2, 2], [64, 128, 256, 512, 512]),
    13: ([2, 2, 2, 2, 2], [64, 128, 256, 512, 512]),
    16: ([2, 2, 3, 3, 3], [64, 128, 256, 512, 512]),
    19: ([2, 2, 4, 4, 4], [64, 128, 256, 512, 512]),
}


class VGG(Network):
    """Blocks of 3x3 convolutions and three dense layers.

    Args:
        layers: convolutions of each block.
        filters: channels of each block.
        classes: how many there are.
        batch_norm: normalize after each convolution.
    """

    def __init__(
        self,
        layers: Any,
        filters: Any,
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            expected, got = f"{len(layers)} numbers, one a block", filters
            raise ParamError(complaint("VGG", "filters", expected, got))
        with self.name_scope():
            self.features = self._make_features(layers, filters, batch_norm)
            for _ in range(2):
                how = {"weight_initializer": "normal", "bias_initializer": "zeros"}
                self.features.add(nn.Dense(4096, activation="relu", **how), nn.Dropout(0.5))
            self.output = nn.Dense(classes, weight_initializer="normal", bias_initializer="zeros")

    def _make_features(self, layers: Any, filters: Any, batch_norm: bool) -> nn.HybridSequential:
        features = chain()
        start = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
        how = {"weight_initializer": start, "bias_initializer": "zeros"}
        for count, channels in zip(layers, filters, strict=True):
            for _ in range(count):
                features.add(nn.Conv2D(channels, kernel_size=3, padding=1, **how))
                if batch_norm:
                    features.add(nn.BatchNorm())
                features.add(relu())
            features.add(nn.MaxPool2D(strides=2))
        return features


def get_vgg(
    num_layers: int,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> VGG:
    """VGG of 11, 13, 16 or 19 layers; `pretrained` reads its parameters from the folder `root`."""
    if num_layers not in vgg_spec:
        expected = f"one of {sorted(vgg_spec)}"
        raise ParamError(complaint("get_vgg", "num_layers", expected, num_layers))
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    return trained(VGG(*vgg_spec[num_layers], **kwargs), pretrained, name, root, ctx)


vgg11 = named("vgg11", get_vgg, 11)
vgg13 = named("vgg13", get_vgg, 13)
vgg16 = named("vgg16", get_vgg, 16)
vgg19 = named("vgg19", get_vgg, 19)
vgg11_bn = named("vgg11_bn", get_vgg, 11, batch_norm=True)
vgg13_bn = named("vgg13_bn", get_vgg, 13, batch_norm=True)
vgg16_bn = named("vgg16_bn", get_vgg, 16, batch_norm=True)
vgg19_bn = named("vgg19_bn", get_vgg, 19, batch_norm=True)

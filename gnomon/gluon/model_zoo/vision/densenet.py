"""DenseNet: every layer reads all layers before it."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.contrib.nn import HybridConcurrent, Identity
from gnomon.gluon.model_zoo.model_store import ROOT, named, trained
from gnomon.gluon.model_zoo.vision.network import Network, beside, chain, relu

# number of layers -> first channels, channels a layer, layers of each block
densenet_spec = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def _unit(channels: int, **how: Any) -> tuple[HybridBlock, ...]:
    """Normalization, activation, convolution."""
    return nn.BatchNorm(), relu(), nn.Conv2D(channels, use_bias=False, **how)


def _layer(growth: int, bn_size: int, dropout: float) -> HybridConcurrent:
    """What comes in, and beside it the new channels."""
    narrow = _unit(bn_size * growth, kernel_size=1)
    new = chain(*narrow, *_unit(growth, kernel_size=3, padding=1))
    if dropout:
        new.add(nn.Dropout(dropout))
    return beside(Identity(), new)


class DenseNet(Network):
    """DenseNet.

    Args:
        num_init_features: channels after the first convolution.
        growth_rate: channels that every layer adds.
        block_config: layers of each block.
        bn_size: how many times `growth_rate` the channels between a layer's convolutions are.
        dropout: the share that is dropped behind every layer in training.
        classes: how many there are.
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: Any,
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            first = nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False)
            pool = nn.MaxPool2D(pool_size=3, strides=2, padding=1)
            self.features = chain(first, nn.BatchNorm(), relu(), pool)
            channels = num_init_features
            for k, count in enumerate(block_config):
                self._add_block(f"stage{k + 1}_", count, growth_rate, bn_size, dropout)
                channels += count * growth_rate
                if k != len(block_config) - 1:
                    channels //= 2  # half the channels, half the size
                    unit = _unit(channels, kernel_size=1)
                    self.features.add(chain(*unit, nn.AvgPool2D(pool_size=2, strides=2)))
            self.features.add(nn.BatchNorm(), relu(), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)

    def _add_block(
        self, prefix: str, count: int, growth: int, bn_size: int, dropout: float
    ) -> None:
        block = nn.HybridSequential(prefix=prefix)
        with block.name_scope():
            for _ in range(count):
                block.add(_layer(growth, bn_size, dropout))
        self.features.add(block)


def get_densenet(
    num_layers: int,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> DenseNet:
    """DenseNet of 121, 161, 169 or 201 layers; `pretrained` reads its parameters from `root`."""
    if num_layers not in densenet_spec:
        expected = f"one of {sorted(densenet_spec)}"
        raise ParamError(complaint("get_densenet", "num_layers", expected, num_layers))
    net, name = DenseNet(*densenet_spec[num_layers], **kwargs), f"densenet{num_layers}"
    return trained(net, pretrained, name, root, ctx)


densenet121 = named("densenet121", get_densenet, 121)
densenet161 = named("densenet161", get_densenet, 161)
densenet169 = named("densenet169", get_densenet, 169)
densenet201 = named("densenet201", get_densenet, 201)

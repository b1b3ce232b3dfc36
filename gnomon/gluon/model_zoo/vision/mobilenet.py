"""MobileNet: convolutions of single channels, and across the channels."""

from __future__ import annotations

from typing import Any

from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.model_zoo.model_store import ROOT, named, trained
from gnomon.gluon.model_zoo.vision.network import Network, chain, relu

# channels between the two convolutions of a pair, channels after it, stride
PAIRS = (
    (32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
    *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1),
)  # fmt: skip
# channels before and after a bottleneck, how many times wider it is within, stride
BOTTLENECKS = (
    (32, 16, 1, 1), (16, 24, 6, 2), (24, 24, 6, 1), (24, 32, 6, 2), (32, 32, 6, 1),
    (32, 32, 6, 1), (32, 64, 6, 2), *[(64, 64, 6, 1)] * 3, (64, 96, 6, 1), (96, 96, 6, 1),
    (96, 96, 6, 1), (96, 160, 6, 2), (160, 160, 6, 1), (160, 160, 6, 1), (160, 320, 6, 1),
)  # fmt: skip


class RELU6(HybridBlock):
    """The values from 0 to 6, others cut off."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(
    out: nn.HybridSequential,
    channels: int,
    kernel: int = 1,
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    active: bool = True,
    relu6: bool = False,
) -> None:
    """A convolution, normalization and activation."""
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False))
    out.add(nn.BatchNorm(scale=True))
    if active:
        out.add(RELU6() if relu6 else relu())


class LinearBottleneck(HybridBlock):
    """Widen, convolve single channels, narrow; plus the input where the shape is the same.

    Args:
        in_channels, channels: before and after.
        t: how many times wider it is within.
        stride: of the convolution of single channels.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, wide, relu6=True)
            _add_conv(self.out, wide, 3, stride, 1, groups=wide, relu6=True)
            _add_conv(self.out, channels, active=False)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Network):
    """MobileNet.

    Args:
        multiplier: how many times as wide as the network of the paper.
        classes: how many there are.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain()
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), 3, 2, 1)
                for single, channels, stride in PAIRS:
                    width = int(single * multiplier)
                    _add_conv(self.features, width, 3, stride, 1, groups=width)
                    _add_conv(self.features, int(channels * multiplier))
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Network):
    """MobileNet with inverted residuals.

    Args:
        multiplier: how many times as wide as the network of the paper.
        classes: how many there are.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), 3, 2, 1, relu6=True)
                for before, after, t, stride in BOTTLENECKS:
                    widths = int(before * multiplier), int(after * multiplier)
                    self.features.add(LinearBottleneck(*widths, t, stride))
                last = int(1280 * multiplier) if multiplier > 1.0 else 1280
                _add_conv(self.features, last, relu6=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                last = nn.Conv2D(classes, 1, use_bias=False, prefix="pred_")
                self.output.add(last, nn.Flatten())


def _version(multiplier: float) -> str:
    """How files name the width: 1.0, 0.75, 0.5, 0.25."""
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(
    multiplier: float,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> MobileNet:
    """MobileNet of a width; `pretrained` reads its parameters from the folder `root`."""
    net, name = MobileNet(multiplier, **kwargs), f"mobilenet{_version(multiplier)}"
    return trained(net, pretrained, name, root, ctx)


def get_mobilenet_v2(
    multiplier: float,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> MobileNetV2:
    """MobileNetV2 of a width; `pretrained` reads its parameters from the folder `root`."""
    net, name = MobileNetV2(multiplier, **kwargs), f"mobilenetv2_{_version(multiplier)}"
    return trained(net, pretrained, name, root, ctx)


mobilenet0_25 = named("mobilenet0_25", get_mobilenet, 0.25)
mobilenet0_5 = named("mobilenet0_5", get_mobilenet, 0.5)
mobilenet0_75 = named("mobilenet0_75", get_mobilenet, 0.75)
mobilenet1_0 = named("mobilenet1_0", get_mobilenet, 1.0)
mobilenet_v2_0_25 = named("mobilenet_v2_0_25", get_mobilenet_v2, 0.25)
mobilenet_v2_0_5 = named("mobilenet_v2_0_5", get_mobilenet_v2, 0.5)
mobilenet_v2_0_75 = named("mobilenet_v2_0_75", get_mobilenet_v2, 0.75)
mobilenet_v2_1_0 = named("mobilenet_v2_1_0", get_mobilenet_v2, 1.0)

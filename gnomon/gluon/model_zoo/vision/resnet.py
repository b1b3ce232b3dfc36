"""ResNet: residual blocks, the activation after the sum (version 1) or before (version 2)."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint, shown
from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.model_zoo.model_store import ROOT, named, trained
from gnomon.gluon.model_zoo.vision.network import Network, chain, relu


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(
        channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels
    )


class Residual(HybridBlock):
    """What residual blocks share: layers, and a shortcut where shapes differ.

    Args:
        channels: of the output.
        stride: of the block.
        downsample: whether the input is convolved before it is added.
        in_channels: of the input; 0 leaves that to the first one.
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        downsample: bool = False,
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._fill(channels, stride, in_channels)
        self.downsample = self._shortcut(channels, stride, in_channels) if downsample else None

    def _fill(self, channels: int, stride: int, in_channels: int) -> None:
        """Make the layers."""
        raise NotImplementedError(f"{type(self).__name__}: says nothing of its layers")

    def _shortcut(self, channels: int, stride: int, in_channels: int) -> HybridBlock:
        """What the input goes through before it is added."""
        return nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels)


class BlockV1(Residual):
    """A residual block of version 1: the activation follows the sum."""

    def _shortcut(self, channels: int, stride: int, in_channels: int) -> HybridBlock:
        return chain(super()._shortcut(channels, stride, in_channels), nn.BatchNorm())

    def _parts(self, x: Any) -> tuple[Any, Any]:
        """The body's output, and what is added to it."""
        out = self.body(x)
        return out, x if self.downsample is None else self.downsample(x)


class BasicBlockV1(BlockV1):
    """Two 3x3 convolutions."""

    def _fill(self, channels: int, stride: int, in_channels: int) -> None:
        first, second = _conv3x3(channels, stride, in_channels), _conv3x3(channels, 1, channels)
        self.body = chain(first, nn.BatchNorm(), relu(), second, nn.BatchNorm())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out, residual = self._parts(x)
        return F.Activation(residual + out, act_type="relu")


class BottleneckV1(BlockV1):
    """Narrow, convolve, widen."""

    def _fill(self, channels: int, stride: int, in_channels: int) -> None:
        narrow = channels // 4
        self.body = chain(
            *(nn.Conv2D(narrow, kernel_size=1, strides=stride), nn.BatchNorm(), relu()),
            *(_conv3x3(narrow, 1, narrow), nn.BatchNorm(), relu()),
            *(nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm()),
        )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out, residual = self._parts(x)
        return F.Activation(out + residual, act_type="relu")


class BasicBlockV2(Residual):
    """Two 3x3 convolutions, each after normalization and activation."""

    def _fill(self, channels: int, stride: int, in_channels: int) -> None:
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv3x3(channels, stride, in_channels)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels, 1, channels)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = F.Activation(self.bn1(x), act_type="relu")
        residual = x if self.downsample is None else self.downsample(out)
        out = self.conv1(out)
        out = self.conv2(F.Activation(self.bn2(out), act_type="relu"))
        return out + residual


class BottleneckV2(Residual):
    """Narrow, convolve, widen, each after normalization and activation."""

    def _fill(self, channels: int, stride: int, in_channels: int) -> None:
        narrow = channels // 4
        self.bn1 = nn.BatchNorm()
        self.conv1 = nn.Conv2D(narrow, kernel_size=1, strides=1, use_bias=False)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(narrow, stride, narrow)
        self.bn3 = nn.BatchNorm()
        self.conv3 = nn.Conv2D(channels, kernel_size=1, strides=1, use_bias=False)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = F.Activation(self.bn1(x), act_type="relu")
        residual = x if self.downsample is None else self.downsample(out)
        out = self.conv1(out)
        out = self.conv2(F.Activation(self.bn2(out), act_type="relu"))
        out = self.conv3(F.Activation(self.bn3(out), act_type="relu"))
        return out + residual


class ResNet(Network):
    """What both versions share: stages of residual blocks, and a dense layer.

    Args:
        block: the class of the blocks.
        layers: blocks of each stage.
        channels: those that come into the first stage, and those of each.
        classes: how many there are.
        thumbnail: begin with a small convolution, for images 32 wide.
    """

    def __init__(
        self,
        block: Any,
        layers: Any,
        channels: Any,
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            expected = f"{len(layers) + 1} numbers, one a stage and one before"
            raise ParamError(complaint(type(self).__name__, "channels", expected, channels))
        with self.name_scope():
            self.features = chain()
            self._begin()
            if thumbnail:
                self.features.add(_conv3x3(channels[0], 1, 0))
            else:
                self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False))
                self.features.add(nn.BatchNorm(), relu(), nn.MaxPool2D(3, 2, 1))
            for k, count in enumerate(layers):
                stride = 1 if k == 0 else 2
                stage = self._stage(block, count, channels[k + 1], stride, k + 1, channels[k])
                self.features.add(stage)
            self._finish()
            self.output = nn.Dense(classes, in_units=channels[-1])

    def _begin(self) -> None:
        """Hook: add what stands before the first convolution."""

    def _finish(self) -> None:
        """Hook: add what stands behind the stages."""

    def _stage(
        self, block: Any, count: int, channels: int, stride: int, number: int, before: int
    ) -> nn.HybridSequential:
        stage = nn.HybridSequential(prefix=f"stage{number}_")
        with stage.name_scope():
            differs = channels != before
            stage.add(block(channels, stride, differs, in_channels=before, prefix=""))
            for _ in range(count - 1):
                stage.add(block(channels, 1, False, in_channels=channels, prefix=""))
        return stage


class ResNetV1(ResNet):
    """ResNet, the activation after the sum."""

    def _finish(self) -> None:
        self.features.add(nn.GlobalAvgPool2D())


class ResNetV2(ResNet):
    """ResNet, normalization and activation before the convolutions."""

    def _begin(self) -> None:
        self.features.add(nn.BatchNorm(scale=False, center=False))

    def _finish(self) -> None:
        self.features.add(nn.BatchNorm(), relu(), nn.GlobalAvgPool2D(), nn.Flatten())


# number of layers -> kind of block, blocks of each stage, channels
resnet_spec = {
    18: ("basic_block", [2, 2, 2, 2], [64, 64, 128, 256, 512]),
    34: ("basic_block", [3, 4, 6, 3], [64, 64, 128, 256, 512]),
    50: ("bottle_neck", [3, 4, 6, 3], [64, 256, 512, 1024, 2048]),
    101: ("bottle_neck", [3, 4, 23, 3], [64, 256, 512, 1024, 2048]),
    152: ("bottle_neck", [3, 8, 36, 3], [64, 256, 512, 1024, 2048]),
}
resnet_net_versions = [ResNetV1, ResNetV2]
resnet_block_versions = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int,
    num_layers: int,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> ResNet:
    """ResNet of 18, 34, 50, 101 or 152 layers; `pretrained` reads its parameters from `root`.

    >>> import gnomon as mx
    >>> net = get_resnet(1, 18, classes=10, thumbnail=True)
    >>> net.initialize()
    >>> net(mx.nd.ones((1, 3, 32, 32))).shape
    (1, 10)
    """
    for argument, given, known in (
        ("version", version, (1, 2)),
        ("num_layers", num_layers, resnet_spec),
    ):
        if given not in known:
            expected = f"one of {sorted(known)}"
            raise ParamError(complaint("get_resnet", argument, expected, shown(given)))
    kind, layers, channels = resnet_spec[num_layers]
    block = resnet_block_versions[version - 1][kind]
    net = resnet_net_versions[version - 1](block, layers, channels, **kwargs)
    return trained(net, pretrained, f"resnet{num_layers}_v{version}", root, ctx)


resnet18_v1 = named("resnet18_v1", get_resnet, 1, 18)
resnet34_v1 = named("resnet34_v1", get_resnet, 1, 34)
resnet50_v1 = named("resnet50_v1", get_resnet, 1, 50)
resnet101_v1 = named("resnet101_v1", get_resnet, 1, 101)
resnet152_v1 = named("resnet152_v1", get_resnet, 1, 152)
resnet18_v2 = named("resnet18_v2", get_resnet, 2, 18)
resnet34_v2 = named("resnet34_v2", get_resnet, 2, 34)
resnet50_v2 = named("resnet50_v2", get_resnet, 2, 50)
resnet101_v2 = named("resnet101_v2", get_resnet, 2, 101)
resnet152_v2 = named("resnet152_v2", get_resnet, 2, 152)

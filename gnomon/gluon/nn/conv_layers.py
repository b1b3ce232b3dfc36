"""Convolution and padding layers; MXNet's module has pooling too."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from gnomon.base import ParamError, complaint
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.nn.activations import Activation
from gnomon.gluon.nn.pooling import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    _Pooling,  # noqa: F401  programs import it from here, as from MXNet's module
    check_layout,
    sizes,
)
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ReflectionPad2D",
]


def _check_groups(where: str, channels: int, in_channels: int, groups: int) -> None:
    """ParamError where channels do not divide into groups."""
    if in_channels % groups or channels % groups:
        known = f"{in_channels} and {channels}" if in_channels else str(channels)
        raise ParamError(complaint(where, "groups", f"a divisor of {known} channels", groups))


class _Conv(HybridBlock):
    """What convolutions share.

    Args:
        channels: the number of channels of the output.
        kernel_size: the window, a size an axis.
        strides, padding, dilation: of the window, a number an axis.
        groups: how many groups of channels are convolved apart.
        layout: the order of the axes, with N, C and D, H, W.
        activation: the name of an activation after it.
        use_bias: whether there is a bias for each channel.
        in_channels: the number of channels of the input; 0 and -1 leave that to the first one.
        op_name, adj: the operator, and what `Deconvolution` adds to the sizes of its output.
    """

    _axes: int | None = None  # as many as the layout has where None

    _fields: ClassVar = {
        "channels": Whole(1),
        "kernel_size": Field("Convolution.kernel"),
        "strides": Field("Convolution.stride"),
        "padding": Field("Convolution.pad"),
        "dilation": Field("Convolution.dilate"),
        "groups": Whole(1),
        "in_channels": Whole(-1),
        "activation": Field("Activation.act_type", optional=True),
    }

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        layout: str | None = None,
        in_channels: int = 0,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        op_name: str = "Convolution",
        adj: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        where, in_channels = type(self).__name__, max(in_channels, 0)
        _check_groups(where, channels, in_channels, groups)
        axes = self._axes or sum(axis in "DHW" for axis in layout or "") or 2
        layout = check_layout(where, layout, axes)
        self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
        self._kwargs = {
            "kernel": sizes(where, "kernel_size", kernel_size, axes),
            "stride": sizes(where, "strides", strides, axes),
            "dilate": sizes(where, "dilation", dilation, axes),
            "pad": sizes(where, "padding", padding, axes),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        if adj is not None:
            self._kwargs["adj"] = sizes(where, "output_padding", adj, axes)
        with self.name_scope():
            late = {"allow_deferred_init": True}
            shape = self._weight_shape(layout, groups)
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, **late)
            self.bias = None
            if use_bias:
                shape = (channels,)
                self.bias = self.params.get("bias", shape=shape, init=bias_initializer, **late)
            self.act = None
            if activation is not None:
                self.act = Activation(activation, prefix=activation + "_")

    def _weight_shape(self, layout: str, groups: int) -> tuple[int, ...]:
        """Channels of one side, those of a group of the other, and the window, as laid out."""
        first, second = self._channels, self._in_channels // groups
        if self._op_name == "Deconvolution":
            first, second = self._in_channels, self._channels // groups
        window = dict(zip(layout.replace("N", "").replace("C", ""), self._window(), strict=True))
        return tuple({"N": first, "C": second, **window}[axis] for axis in layout)

    def _window(self) -> tuple[int, ...]:
        found: Any = self._kwargs["kernel"]
        return tuple(found)

    def _alias(self) -> str:
        return "conv"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        found = getattr(F, self._op_name)(x, weight, bias, name="fwd", **self._kwargs)
        return found if self.act is None else self.act(found)

    def __repr__(self) -> str:
        known, axes = self._kwargs, len(self._window())
        shape = self.weight.shape
        told = f"kernel_size={known['kernel']}, stride={known['stride']}"
        rows = (("padding", "pad", (0,) * axes), ("dilation", "dilate", (1,) * axes))
        told += "".join(f", {n}={known[k]}" for n, k, usual in rows if known[k] != usual)
        told += f", groups={known['num_group']}" if known["num_group"] != 1 else ""
        told += "" if self.bias else ", bias=False"
        told += f", {self.act}" if self.act else ""
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}, {told})"


class ConvBase(_Conv):
    """What `Conv1D` and its like share: the order in which they are given what `_Conv` is."""

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        window = kernel_size, strides, padding, dilation, groups, layout
        rest = in_channels, activation, use_bias, weight_initializer, bias_initializer
        super().__init__(channels, *window, *rest, **kwargs)


class Conv1D(ConvBase):
    """Convolution along one axis."""

    _axes = 1


class Conv2D(ConvBase):
    """Convolution along two axes.

    >>> import gnomon as mx
    >>> layer = Conv2D(4, 3, activation="relu")
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 3, 8, 8))).shape
    (1, 4, 6, 6)
    """

    _axes = 2


class Conv3D(ConvBase):
    """Convolution along three axes."""

    _axes = 3


class ConvTransposeBase(_Conv):
    """What transposed convolutions share: `output_padding` widens the output at its end."""

    _fields: ClassVar = {"output_padding": Field("Deconvolution.adj")}

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        window = kernel_size, strides, padding, dilation, groups, layout
        rest = in_channels, activation, use_bias, weight_initializer, bias_initializer
        how = {"op_name": "Deconvolution", "adj": output_padding}
        super().__init__(channels, *window, *rest, **how, **kwargs)


class Conv1DTranspose(ConvTransposeBase):
    """The adjoint of `Conv1D`: each element of the input is spread over a window."""

    _axes = 1


class Conv2DTranspose(ConvTransposeBase):
    """The adjoint of `Conv2D`: each element of the input is spread over a window.

    >>> import gnomon as mx
    >>> layer = Conv2DTranspose(4, 3, strides=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 3, 8, 8))).shape
    (1, 4, 17, 17)
    """

    _axes = 2


class Conv3DTranspose(ConvTransposeBase):
    """The adjoint of `Conv3D`: each element of the input is spread over a window."""

    _axes = 3


class ReflectionPad2D(HybridBlock):
    """Images with `padding` rows and columns around that mirror those inside.

    >>> import gnomon as mx
    >>> ReflectionPad2D(1)(mx.nd.array([[[[1, 2], [3, 4]]]])).asnumpy()[0, 0, 0]
    array([4., 3., 4., 3.], dtype=float32)
    """

    _fields: ClassVar = {"padding": Field("Pad.pad_width")}

    def __init__(self, padding: Any = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        padding = (0, 0, 0, 0, *[padding] * 4) if isinstance(padding, Integral) else tuple(padding)
        if len(padding) != 8:
            expected = "a number, or two for each of four axes"
            raise ParamError(complaint("ReflectionPad2D", "padding", expected, padding))
        self._padding = padding

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.pad(x, mode="reflect", pad_width=self._padding)

"""Convolutions that learn where the elements of their windows are taken."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.base import ParamError, complaint
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.nn.activations import Activation
from gnomon.gluon.nn.conv_layers import _Conv
from gnomon.gluon.nn.pooling import sizes
from gnomon.ground.arguments import Whole

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """A convolution of (N, C, H, W) by another's results: how far each window's elements move.

    Source: Dai et al., Deformable Convolutional Networks, 2017.

    Args:
        channels: the number of channels of the output.
        kernel_size, strides, padding, dilation: of the window, a number or one an axis.
        groups: how many groups of channels are convolved apart.
        num_deformable_group: groups of channels with offsets of their own.
        layout: "NCHW".
        use_bias, offset_use_bias: whether there is a bias, and one for the offsets.
        in_channels: the number of channels of the input; 0 and -1 leave that to the first one.
        activation: the name of an activation after it.
        op_name: the operator; this class's own.
        adj: no meaning here.

    >>> import gnomon as mx
    >>> net = DeformableConvolution(4, kernel_size=3, padding=1)
    >>> net.initialize()
    >>> net(mx.nd.ones((2, 3, 5, 5))).shape
    (2, 4, 5, 5)

    Raises:
        ParamError: the groups do not divide the channels, or another layout.
    """

    _numbers = 2  # that the first convolution gives for each element of a window
    _order: tuple[str, ...] = ("offset", "deformable_conv")  # of its parameters

    _fields: ClassVar = {**_Conv._fields, "num_deformable_group": Whole(1)}

    def __init__(
        self,
        channels: int,
        kernel_size: Any = (1, 1),
        strides: Any = (1, 1),
        padding: Any = (0, 0),
        dilation: Any = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
        op_name: str | None = None,
        adj: Any = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        where, in_channels = type(self).__name__, max(in_channels, 0)
        if layout != "NCHW":
            raise ParamError(complaint(where, "layout", "'NCHW'", repr(layout)))
        if in_channels % groups or channels % groups:
            expected = f"a divisor of {in_channels} and {channels} channels"
            raise ParamError(complaint(where, "groups", expected, groups))
        self._op_name = op_name or where
        window = sizes(where, "kernel_size", kernel_size, 2)
        count = self._numbers * window[0] * window[1] * num_deformable_group
        shared = {
            "kernel": window,
            "stride": sizes(where, "strides", strides, 2),
            "dilate": sizes(where, "dilation", dilation, 2),
            "pad": sizes(where, "padding", padding, 2),
            "num_group": groups,
            "layout": layout,
        }
        self._kwargs_deformable_conv = shared | {
            "num_filter": channels,
            "num_deformable_group": num_deformable_group,
            "no_bias": not use_bias,
        }
        offsets = {"num_filter": count, "no_bias": not offset_use_bias, "cudnn_off": True}
        self._kwargs_offset = shared | offsets
        inner = in_channels // groups
        with self.name_scope():
            starts = offset_weight_initializer, offset_bias_initializer, offset_use_bias
            own = weight_initializer, bias_initializer, use_bias
            parts = {"offset": (count, *starts), "deformable_conv": (channels, *own)}
            for name in self._order:
                rows, *how = parts[name]
                self._add(name, (rows, inner, *window), *how)
            self.act = None
            if activation is not None:
                self.act = Activation(activation, prefix=activation + "_")

    def _alias(self) -> str:
        return "deformable_conv"

    def _add(self, name: str, shape: Any, weight: Any, bias: Any, use_bias: bool) -> None:
        """The parameters of a convolution."""
        late = {"allow_deferred_init": True}
        made = self.params.get(f"{name}_weight", shape=shape, init=weight, **late)
        setattr(self, f"{name}_weight", made)
        made = None
        if use_bias:
            made = self.params.get(f"{name}_bias", shape=shape[:1], init=bias, **late)
        setattr(self, f"{name}_bias", made)

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        moves = F.Convolution(x, offset_weight, offset_bias, **self._kwargs_offset)
        operator = getattr(F.contrib, self._op_name)
        weights = deformable_conv_weight, deformable_conv_bias
        how = self._kwargs_deformable_conv
        found = operator(x, *self._inputs(F, moves), *weights, name="fwd", **how)
        return found if self.act is None else self.act(found)

    def _inputs(self, F: Any, moves: Any) -> tuple[Any, ...]:
        """What the operator takes beside the data, made of the first convolution's results."""
        return (moves,)

    def __repr__(self) -> str:
        channels, inner = self.deformable_conv_weight.shape[:2]
        how = self._kwargs_deformable_conv
        told = f"kernel_size={how['kernel']}, stride={how['stride']}"
        told += f", padding={how['pad']}" if any(how["pad"]) else ""
        told += f", groups={how['num_group']}" if how["num_group"] != 1 else ""
        told += "" if self.deformable_conv_bias else ", bias=False"
        told += f", {self.act}" if self.act else ""
        return f"{type(self).__name__}({inner or None} -> {channels}, {told})"


class ModulatedDeformableConvolution(DeformableConvolution):
    """The same, each element of a window weighted by a number from 0 to 2 that is learned too.

    Source: Zhu et al., Deformable ConvNets v2, 2018.
    """

    _numbers = 3
    _order = ("deformable_conv", "offset")

    def _alias(self) -> str:
        return "modulated_deformable_conv"

    def _inputs(self, F: Any, moves: Any) -> tuple[Any, ...]:
        border = self._kwargs_offset["num_filter"] // self._numbers * 2
        offsets = F.slice_axis(moves, axis=1, begin=0, end=border)
        mask = F.slice_axis(moves, axis=1, begin=border, end=None)
        return offsets, F.sigmoid(mask) * 2

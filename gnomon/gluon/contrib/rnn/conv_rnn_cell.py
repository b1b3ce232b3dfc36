"""Convolutional cells: the products of the gates are convolutions, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar

from gnomon.base import ParamError, complaint
from gnomon.gluon.nn.pooling import check_layout
from gnomon.gluon.rnn.base import HybridRecurrentCell
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = [f"Conv{n}D{kind}Cell" for n in (1, 2, 3) for kind in ("RNN", "LSTM", "GRU")]

Sizes = int | Sequence[int]


class ConvCell(HybridRecurrentCell):
    """What the convolutional cells share.

    Args:
        input_shape: the shape of an input, without its batch axis.
        hidden_channels: channels of a state and of the output.
        i2h_kernel, i2h_pad, i2h_dilate: the convolution of the input.
        h2h_kernel, h2h_dilate: the convolution of the state, whose size stays: odd kernels.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer: where the parameters begin.
        conv_layout: the axes of an input.
        activation: a name of an activation, or a function.
        prefix, params: as for every block.
    """

    _dims: ClassVar[int]
    _gates: ClassVar[int] = 1
    _states: ClassVar[int] = 1
    _kind: ClassVar[str]

    _fields: ClassVar = {
        "i2h_kernel": Field("Convolution.kernel"),
        "h2h_kernel": Field("Convolution.kernel"),
        "i2h_pad": Field("Convolution.pad"),
        "i2h_dilate": Field("Convolution.dilate"),
        "h2h_dilate": Field("Convolution.dilate"),
        "hidden_channels": Whole(1),
    }

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: Sizes,
        h2h_kernel: Sizes,
        i2h_pad: Sizes = 0,
        i2h_dilate: Sizes = 1,
        h2h_dilate: Sizes = 1,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str | None = None,
        activation: str | Callable[..., Any] = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._conv_layout = check_layout(
            type(self).__name__, conv_layout, self._dims, "conv_layout"
        )
        self._hidden_channels, self._activation = hidden_channels, activation
        self._channel_axis = self._conv_layout.find("C")
        self._stride = (1,) * self._dims
        self._i2h_kernel = self._sizes("i2h_kernel", i2h_kernel, 1)
        self._i2h_pad = self._sizes("i2h_pad", i2h_pad, 0)
        self._i2h_dilate = self._sizes("i2h_dilate", i2h_dilate, 1)
        self._h2h_kernel = over = self._sizes("h2h_kernel", h2h_kernel, 1)
        if any(k % 2 == 0 for k in over):
            raise ParamError(complaint(type(self).__name__, "h2h_kernel", "odd numbers", over))
        self._h2h_dilate = dilate = self._sizes("h2h_dilate", h2h_dilate, 1)
        self._h2h_pad = tuple(d * (k - 1) // 2 for d, k in zip(dilate, over, strict=True))
        self._decide_shapes(input_shape)
        self._register(
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
        )

    def _sizes(self, argument: str, given: Sizes, low: int) -> tuple[int, ...]:
        """One number for each dimension."""
        sizes = (given,) * self._dims if isinstance(given, Integral) else tuple(given)
        if len(sizes) != self._dims or min(sizes) < low:
            expected = f"a number from {low} on, or {self._dims} of them"
            raise ParamError(complaint(type(self).__name__, argument, expected, given))
        return sizes

    def _decide_shapes(self, input_shape: Sequence[int]) -> None:
        """The shape of a state, and how many channels come in."""
        channel = self._channel_axis - 1
        where = type(self).__name__
        if len(input_shape) != self._dims + 1:
            expected = f"{self._dims + 1} sizes, those of {self._conv_layout[1:]}"
            raise ParamError(complaint(where, "input_shape", expected, tuple(input_shape)))
        self._in_channels = input_shape[channel]
        sizes = iter(zip(self._i2h_kernel, self._i2h_pad, self._i2h_dilate, strict=True))
        shape = []
        for axis, size in enumerate(input_shape):
            if axis == channel:
                shape.append(self._hidden_channels)
                continue
            kernel, pad, dilate = next(sizes)
            shape.append(size + 2 * pad - dilate * (kernel - 1))
        if min(shape) < 1:
            got = tuple(input_shape)
            raise ParamError(complaint(where, "input_shape", "room for the i2h kernel", got))
        self._state_shape = tuple(shape)

    def _register(self, i2h: Any, h2h: Any, i2h_bias: Any, h2h_bias: Any) -> None:
        rows = self._gates * self._hidden_channels

        def weight(name: str, channels: int, kernel: Sequence[int], init: Any) -> Any:
            shape = list(kernel)
            shape.insert(self._channel_axis - 1, channels)
            return self.params.get(name, shape=(rows, *shape), init=init, allow_deferred_init=True)

        def bias(name: str, init: Any) -> Any:
            return self.params.get(name, shape=(rows,), init=init, allow_deferred_init=True)

        self.i2h_weight = weight("i2h_weight", self._in_channels, self._i2h_kernel, i2h)
        self.h2h_weight = weight("h2h_weight", self._hidden_channels, self._h2h_kernel, h2h)
        self.i2h_bias = bias("i2h_bias", i2h_bias)
        self.h2h_bias = bias("h2h_bias", h2h_bias)

    def _alias(self) -> str:
        return f"conv_{self._kind}"

    def __repr__(self) -> str:
        rows = self._gates * self._hidden_channels
        text = f"{self._in_channels} -> {rows}, {self._activation}, {self._conv_layout}"
        return f"{type(self).__name__}({text})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state its shape and layout."""
        info = {"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout}
        return [dict(info) for _ in range(self._states)]

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> Any:
        name = f"t{self._counter}_"
        shared = {
            "num_filter": self._gates * self._hidden_channels,
            "layout": self._conv_layout,
            "stride": self._stride,
        }
        how = self._i2h_kernel, self._i2h_pad, self._i2h_dilate
        into = _convolved(F, inputs, i2h_weight, i2h_bias, how, shared | {"name": f"{name}i2h"})
        how = self._h2h_kernel, self._h2h_pad, self._h2h_dilate
        over = _convolved(F, states[0], h2h_weight, h2h_bias, how, shared | {"name": f"{name}h2h"})
        after = self._next_states(F, into, over, states, name)
        return after[0], after

    def _next_states(self, F: Any, into: Any, over: Any, states: Any, name: str) -> list[Any]:
        """The states after the step, the output first."""
        output = self._get_activation(F, into + over, self._activation, name=f"{name}out")
        return [output]


def _convolved(F: Any, x: Any, weight: Any, bias: Any, how: Any, shared: dict[str, Any]) -> Any:
    kernel, pad, dilate = how
    return F.Convolution(x, weight, bias, kernel=kernel, pad=pad, dilate=dilate, **shared)


class ConvLSTM(ConvCell):
    """Long short-term memory whose products are convolutions."""

    _gates, _states, _kind = 4, 2, "lstm"

    def _next_states(self, F: Any, into: Any, over: Any, states: Any, name: str) -> list[Any]:
        axis = self._channel_axis
        gates = F.SliceChannel(into + over, num_outputs=4, axis=axis, name=f"{name}slice")
        take, keep, show = (
            F.Activation(gates[k], act_type="sigmoid", name=name + letter)
            for k, letter in ((0, "i"), (1, "f"), (3, "o"))
        )
        new = self._get_activation(F, gates[2], self._activation, name=f"{name}c")
        memory = F.elemwise_add(keep * states[1], take * new, name=f"{name}state")
        seen = self._get_activation(F, memory, self._activation)
        return [F.elemwise_mul(show, seen, name=f"{name}out"), memory]


class ConvGRU(ConvCell):
    """The gated recurrent unit whose products are convolutions."""

    _gates, _kind = 3, "gru"

    def _next_states(self, F: Any, into: Any, over: Any, states: Any, name: str) -> list[Any]:
        axis = self._channel_axis
        a = F.SliceChannel(into, num_outputs=3, axis=axis, name=f"{name}i2h_slice")
        b = F.SliceChannel(over, num_outputs=3, axis=axis, name=f"{name}h2h_slice")
        reset = F.Activation(a[0] + b[0], act_type="sigmoid", name=f"{name}r_act")
        update = F.Activation(a[1] + b[1], act_type="sigmoid", name=f"{name}z_act")
        seen = a[2] + reset * b[2]
        new = self._get_activation(F, seen, self._activation, name=f"{name}h_act")
        output = F.elemwise_add((1.0 - update) * new, update * states[0], name=f"{name}out")
        return [output]


class Conv1DRNNCell(ConvCell):
    """A plain recurrent cell of rows (channels, width)."""

    _dims, _kind = 1, "rnn"


class Conv2DRNNCell(ConvCell):
    """A plain recurrent cell of images (channels, height, width).

    >>> import gnomon as mx
    >>> cell = Conv2DRNNCell((3, 8, 8), 5, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, _ = cell(mx.nd.ones((2, 3, 8, 8)), cell.begin_state(batch_size=2))
    >>> output.shape
    (2, 5, 6, 6)
    """

    _dims, _kind = 2, "rnn"


class Conv3DRNNCell(ConvCell):
    """A plain recurrent cell of volumes (channels, depth, height, width)."""

    _dims, _kind = 3, "rnn"


class Conv1DLSTMCell(ConvLSTM):
    """Long short-term memory of rows (channels, width)."""

    _dims = 1


class Conv2DLSTMCell(ConvLSTM):
    """Long short-term memory of images (channels, height, width)."""

    _dims = 2


class Conv3DLSTMCell(ConvLSTM):
    """Long short-term memory of volumes (channels, depth, height, width)."""

    _dims = 3


class Conv1DGRUCell(ConvGRU):
    """The gated recurrent unit of rows (channels, width)."""

    _dims = 1


class Conv2DGRUCell(ConvGRU):
    """The gated recurrent unit of images (channels, height, width)."""

    _dims = 2


class Conv3DGRUCell(ConvGRU):
    """The gated recurrent unit of volumes (channels, depth, height, width)."""

    _dims = 3

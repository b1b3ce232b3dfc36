"""Convolutional cells: the products of the gates are convolutions of images."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from gnomon import symbol as sym
from gnomon.base import ParamError, complaint
from gnomon.ground.arguments import Whole
from gnomon.rnn.base import BaseRNNCell, RNNParams
from gnomon.rnn.cell import GRUCell, LSTMCell, RNNCell, Step
from gnomon.symbol import Symbol

LEAKY = functools.partial(sym.LeakyReLU, act_type="leaky", slope=0.2)
Pair = tuple[int, int]


class BaseConvRNNCell(BaseRNNCell):
    """Base of convolutional cells.

    Args:
        input_shape: the shape of an input, with its batch axis.
        num_hidden: channels of a state.
        h2h_kernel, h2h_dilate: the convolution of the state, whose size stays: odd kernels.
        i2h_kernel, i2h_stride, i2h_pad, i2h_dilate: the convolution of the input.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer: where the parameters begin.
        activation: a name of an activation, or a function of a symbol.
        prefix, params: as for every cell.
        conv_layout: the axes of an input.
    """

    _states = 1
    _prefix_by_default = ""

    _fields: ClassVar = {
        "num_hidden": Whole(1),
    }

    def __init__(
        self,
        input_shape: Sequence[int],
        num_hidden: int,
        h2h_kernel: Pair = (3, 3),
        h2h_dilate: Pair = (1, 1),
        i2h_kernel: Pair = (3, 3),
        i2h_stride: Pair = (1, 1),
        i2h_pad: Pair = (1, 1),
        i2h_dilate: Pair = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = LEAKY,
        prefix: str | None = None,
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        super().__init__(self._prefix_by_default if prefix is None else prefix, params)
        if any(k % 2 == 0 for k in h2h_kernel):
            got = tuple(h2h_kernel)
            raise ParamError(complaint(type(self).__name__, "h2h_kernel", "odd numbers", got))
        self._num_hidden, self._activation, self._layout = num_hidden, activation, conv_layout
        pad = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._over = {"kernel": h2h_kernel, "stride": (1, 1), "pad": pad, "dilate": h2h_dilate}
        self._into = {
            "kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate,
        }  # fmt: skip
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)
        data = sym.Variable("data")
        state = sym.Convolution(data, num_filter=num_hidden, layout=conv_layout, **self._into)
        self._state_shape = (0, *state.infer_shape(data=tuple(input_shape))[1][0][1:])

    @property
    def state_info(self) -> list[dict[str, Any]]:
        info = {"shape": self._state_shape, "__layout__": self._layout}
        return [dict(info) for _ in range(self._states)]

    def _products(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        """The convolutions of all gates: of the input, and of the state."""
        filters = self._num_hidden * len(self._gate_names)
        shared = {"num_filter": filters, "layout": self._layout}
        i2h = sym.Convolution(inputs, self._iW, self._iB, name=f"{name}i2h", **self._into, **shared)
        h2h = sym.Convolution(state, self._hW, self._hB, name=f"{name}h2h", **self._over, **shared)
        return i2h, h2h


class ConvRNNCell(BaseConvRNNCell):
    """A plain recurrent cell of images.

    >>> cell = ConvRNNCell((2, 3, 8, 8), 5)
    >>> cell.state_shape
    [(0, 5, 8, 8)]
    """

    _gate_names = RNNCell._gate_names
    _prefix_by_default = "ConvRNN_"

    __call__ = RNNCell.__call__


class ConvLSTMCell(BaseConvRNNCell):
    """Long short-term memory of images."""

    _gate_names = LSTMCell._gate_names
    _states = 2
    _stepped = LSTMCell._stepped
    _prefix_by_default = "ConvLSTM_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        name = self._next_name()
        i2h, h2h = self._products(inputs, states[0], name)
        axis = self._layout.find("C")
        gates = sym.SliceChannel(i2h + h2h, num_outputs=4, axis=axis, name=f"{name}slice")
        return self._stepped(gates, states[1], name, self._activation)


class ConvGRUCell(BaseConvRNNCell):
    """The gated recurrent unit of images."""

    _gate_names = GRUCell._gate_names
    _gated = GRUCell._gated
    _prefix_by_default = "ConvGRU_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        name = self._next_name()
        i2h, h2h = self._products(inputs, states[0], name)
        return self._gated(i2h, h2h, states[0], f"{name}_", self._activation)

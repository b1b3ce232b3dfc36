"""The cells themselves: plain, long short-term memory, gated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gnomon import initializer as init
from gnomon import symbol as sym
from gnomon.ground.arguments import Whole
from gnomon.rnn.base import BaseRNNCell, RNNParams
from gnomon.symbol import Symbol

Step = tuple[Symbol, list[Symbol]]


class DenseCell(BaseRNNCell):
    """What the cells share: `num_hidden` numbers a state, products with the input and the state."""

    _states = 1

    _fields: ClassVar = {
        "num_hidden": Whole(1),
    }

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        self._iW, self._iB = self.params.get("i2h_weight"), self._input_bias()
        self._hW, self._hB = self.params.get("h2h_weight"), self.params.get("h2h_bias")

    def _input_bias(self) -> Symbol:
        return self.params.get("i2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(self._states)]

    def _products(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        """The products of all gates: of the input, and of the state."""
        size = self._num_hidden * len(self._gate_names)
        into = {"weight": self._iW, "bias": self._iB, "num_hidden": size}
        over = {"weight": self._hW, "bias": self._hB, "num_hidden": size}
        return (
            sym.FullyConnected(inputs, name=f"{name}i2h", **into),
            sym.FullyConnected(state, name=f"{name}h2h", **over),
        )


class RNNCell(DenseCell):
    """A plain recurrent cell: the activation of two products.

    Args:
        num_hidden: numbers of a state and of the output.
        activation: a name of an activation, or a function of a symbol.
        prefix, params: as for every cell.

    >>> cell = RNNCell(8, prefix="rnn_")
    >>> outputs, states = cell.unroll(2, sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(4, 2, 3))[1]
    [(4, 2, 8)]
    """

    _gate_names = ("",)

    def __init__(
        self,
        num_hidden: int,
        activation: str | Callable[..., Any] = "tanh",
        prefix: str = "rnn_",
        params: RNNParams | None = None,
    ) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        name = self._next_name()
        i2h, h2h = self._products(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(DenseCell):
    """Long short-term memory: an output and a cell's state, with input, forget and output gates.

    Args:
        num_hidden, prefix, params: as for `RNNCell`.
        forget_bias: where the bias of the forget gate begins.
    """

    _gate_names = ("_i", "_f", "_c", "_o")
    _states = 2

    def __init__(
        self,
        num_hidden: int,
        prefix: str = "lstm_",
        params: RNNParams | None = None,
        forget_bias: float = 1.0,
    ) -> None:
        self._forget_bias = forget_bias
        super().__init__(num_hidden, prefix, params)

    def _input_bias(self) -> Symbol:
        return self.params.get("i2h_bias", init=init.LSTMBias(forget_bias=self._forget_bias))

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        name = self._next_name()
        i2h, h2h = self._products(inputs, states[0], name)
        gates = sym.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}slice")
        return self._stepped(gates, states[1], name, "tanh")

    def _stepped(self, gates: Symbol, memory: Symbol, name: str, activation: Any) -> Step:
        """The step from the products of the four gates and the cell's state."""
        take = sym.Activation(gates[0], act_type="sigmoid", name=f"{name}i")
        keep = sym.Activation(gates[1], act_type="sigmoid", name=f"{name}f")
        new = self._get_activation(gates[2], activation, name=f"{name}c")
        show = sym.Activation(gates[3], act_type="sigmoid", name=f"{name}o")
        memory = sym.elemwise_add(keep * memory, take * new, name=f"{name}state")
        seen = self._get_activation(memory, activation)
        output = sym.elemwise_mul(show, seen, name=f"{name}out")
        return output, [output, memory]


class GRUCell(DenseCell):
    """The gated recurrent unit, with reset and update gates.

    Args:
        num_hidden, prefix, params: as for `RNNCell`.
    """

    _gate_names = ("_r", "_z", "_o")

    def __init__(
        self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None
    ) -> None:
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        name = self._next_name() + "_"
        return self._gated(*self._products(inputs, states[0], name), states[0], name, "tanh")

    def _gated(self, i2h: Symbol, h2h: Symbol, state: Symbol, name: str, activation: Any) -> Step:
        """The step from the products of the three gates."""
        into = sym.SliceChannel(i2h, num_outputs=3, name=f"{name}i2h_slice")
        over = sym.SliceChannel(h2h, num_outputs=3, name=f"{name}h2h_slice")
        reset = sym.Activation(into[0] + over[0], act_type="sigmoid", name=f"{name}r_act")
        update = sym.Activation(into[1] + over[1], act_type="sigmoid", name=f"{name}z_act")
        new = self._get_activation(into[2] + reset * over[2], activation, name=f"{name}h_act")
        kept = (1.0 - update) * new
        output = sym.elemwise_add(kept, update * state, name=f"{name[:-1]}out")
        return output, [output]

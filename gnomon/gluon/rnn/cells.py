"""The cells themselves: plain, long short-term memory, gated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gnomon.gluon.rnn.base import HybridRecurrentCell
from gnomon.ground.arguments import Whole


class DenseCell(HybridRecurrentCell):
    """What the cells share: products with the input and with the state.

    Args:
        hidden_size: numbers of a state and of the output.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer: where the parameters begin.
        input_size: numbers of an input; 0 leaves that to the first one.
        prefix, params: as for every block.
    """

    _gates = 1
    _states = 1

    _fields: ClassVar = {
        "hidden_size": Whole(1),
        "input_size": Whole(0),
    }

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size

        def made(name: str, shape: tuple[int, ...], init: Any) -> Any:
            return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

        self.i2h_weight = made("i2h_weight", (rows, input_size), i2h_weight_initializer)
        self.h2h_weight = made("h2h_weight", (rows, self._fed_back()), h2h_weight_initializer)
        self._make_more(made)
        self.i2h_bias = made("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias = made("h2h_bias", (rows,), h2h_bias_initializer)

    def _make_more(self, made: Any) -> None:
        """Hook: further parameters, by `made(name, shape, init)`."""

    def _fed_back(self) -> int:
        """How wide the state is that meets `h2h_weight`."""
        return self._hidden_size

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state its shape (batch, hidden) and layout."""
        info = {"shape": (batch_size, self._hidden_size), "__layout__": "NC"}
        return [dict(info) for _ in range(self._states)]

    def __repr__(self) -> str:
        rows, columns = self.i2h_weight.shape
        return f"{type(self).__name__}({columns or None} -> {rows}{self._more_repr()})"

    def _more_repr(self) -> str:
        return ""

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
        rows, name = self._gates * self._hidden_size, self._step
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=rows, name=f"{name}i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=rows, name=f"{name}h2h")
        after = self._next_states(F, i2h, h2h, states, name)
        return after[0], after

    def _next_states(self, F: Any, i2h: Any, h2h: Any, states: Any, name: str) -> list[Any]:
        """The states after the step, the output first, from the products of all gates."""
        raise NotImplementedError(f"{type(self).__name__} must define _next_states()")

    @property
    def _step(self) -> str:
        """What names within the current step begin with."""
        return f"t{self._counter}_"


class RNNCell(DenseCell):
    """A plain recurrent cell: the activation of two products.

    >>> import gnomon as mx
    >>> cell = RNNCell(5)
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 4)), merge_outputs=True)
    >>> outputs.shape, states[0].shape
    ((2, 3, 5), (2, 5))
    """

    def __init__(
        self,
        hidden_size: int,
        activation: str | Callable[..., Any] = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        weights = i2h_weight_initializer, h2h_weight_initializer
        biases = i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, *weights, *biases, input_size, prefix, params)
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def _more_repr(self) -> str:
        return f", {self._activation}"

    def _next_states(self, F: Any, i2h: Any, h2h: Any, states: Any, name: str) -> list[Any]:
        both = F.elemwise_add(i2h, h2h, name=f"{name}plus0")
        return [self._get_activation(F, both, self._activation, name=f"{name}out")]


class LSTMCell(DenseCell):
    """Long short-term memory: an output and a cell's state, with input, forget and output gates.

    Args:
        activation: of what is new, and of what is shown of the state.
        recurrent_activation: of the gates.
    """

    _gates = 4
    _states = 2
    _output_name = "out"  # what the output is called

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
        activation: str | Callable[..., Any] = "tanh",
        recurrent_activation: str | Callable[..., Any] = "sigmoid",
    ) -> None:
        weights = i2h_weight_initializer, h2h_weight_initializer
        biases = i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, *weights, *biases, input_size, prefix, params)
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def _next_states(self, F: Any, i2h: Any, h2h: Any, states: Any, name: str) -> list[Any]:
        act = self._get_activation
        gates = F.elemwise_add(i2h, h2h, name=f"{name}plus0")
        take, keep, new, show = F.SliceChannel(gates, num_outputs=4, name=f"{name}slice")
        take = act(F, take, self._recurrent_activation, name=f"{name}i")
        keep = act(F, keep, self._recurrent_activation, name=f"{name}f")
        new = act(F, new, self._activation, name=f"{name}c")
        show = act(F, show, self._recurrent_activation, name=f"{name}o")
        kept = F.elemwise_mul(keep, states[1], name=f"{name}mul0")
        added = F.elemwise_mul(take, new, name=f"{name}mul1")
        memory = F.elemwise_add(kept, added, name=f"{name}state")
        seen = F.Activation(memory, act_type=self._activation, name=f"{name}activation0")
        return [F.elemwise_mul(show, seen, name=f"{name}{self._output_name}"), memory]


class GRUCell(DenseCell):
    """The gated recurrent unit, with reset and update gates."""

    _gates = 3

    def _alias(self) -> str:
        return "gru"

    def _next_states(self, F: Any, i2h: Any, h2h: Any, states: Any, name: str) -> list[Any]:
        into = F.SliceChannel(i2h, num_outputs=3, name=f"{name}i2h_slice")
        over = F.SliceChannel(h2h, num_outputs=3, name=f"{name}h2h_slice")
        sums = [F.elemwise_add(into[k], over[k], name=f"{name}plus{k}") for k in range(2)]
        reset = F.Activation(sums[0], act_type="sigmoid", name=f"{name}r_act")
        update = F.Activation(sums[1], act_type="sigmoid", name=f"{name}z_act")
        seen = F.elemwise_mul(reset, over[2], name=f"{name}mul0")
        new = F.elemwise_add(into[2], seen, name=f"{name}plus2")
        new = F.Activation(new, act_type="tanh", name=f"{name}h_act")
        ones = F.ones_like(update, name=f"{name}ones_like0")
        rest = F.elemwise_sub(ones, update, name=f"{name}minus0")
        taken = F.elemwise_mul(rest, new, name=f"{name}mul1")
        kept = F.elemwise_mul(update, states[0], name=f"{name}mul20")
        return [F.elemwise_add(taken, kept, name=f"{name}out")]

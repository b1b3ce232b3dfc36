"""Cells beside the usual ones: dropout that stays over time, projected states, loops."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.base import ParamError, complaint
from gnomon.gluon.rnn.base import (
    How,
    HybridRecurrentCell,  # noqa: F401  MXNet's has it
    Unrolled,
    check_single,
)
from gnomon.gluon.rnn.cells import LSTMCell
from gnomon.gluon.rnn.compound import BidirectionalCell, SequentialRNNCell  # noqa: F401  the same
from gnomon.gluon.rnn.modifier import ModifierCell
from gnomon.gluon.rnn.sequence import batch_size, formatted, functions, merged, time_axis
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]


class VariationalDropoutCell(ModifierCell):
    """Dropout with one mask for all steps of a sequence, on inputs, the first state and outputs.

    Args:
        base_cell: the cell.
        drop_inputs, drop_states, drop_outputs: the shares that are dropped in training.
    """

    _fields: ClassVar = {
        f"drop_{what}": Field("Dropout.p", optional=True)
        for what in ("inputs", "states", "outputs")
    }

    def __init__(
        self,
        base_cell: Any,
        drop_inputs: float = 0.0,
        drop_states: float = 0.0,
        drop_outputs: float = 0.0,
    ) -> None:
        if drop_states:
            check_single("VariationalDropoutCell", base_cell, (BidirectionalCell,))
        super().__init__(base_cell)
        self.drop_inputs = drop_inputs
        self.drop_states = drop_states
        self.drop_outputs = drop_outputs

    def _alias(self) -> str:
        return "vardrop"

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def reset(self) -> None:
        """Draw new masks with the next step."""
        super().reset()
        self.drop_inputs_mask = self.drop_states_mask = self.drop_outputs_mask = None

    def _dropped(self, F: Any, what: str, x: Any) -> Any:
        """`x` times the mask of inputs, states or outputs."""
        share, mask = getattr(self, what), f"{what}_mask"
        if not share:
            return x
        if getattr(self, mask) is None:
            setattr(self, mask, F.Dropout(F.ones_like(x), p=share))
        return x * getattr(self, mask)

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        first = self._dropped(F, "drop_states", states[0])
        inputs = self._dropped(F, "drop_inputs", inputs)
        output, after = self.base_cell(inputs, [first, *states[1:]])
        return self._dropped(F, "drop_outputs", output), after

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        if self.drop_states:
            return super()._unrolled(length, inputs, begin_state, how)
        layout, merge_outputs, valid_length = how
        F, axes = functions(inputs), (time_axis(layout),)
        if self.drop_inputs:
            inputs = F.Dropout(merged(inputs, layout), p=self.drop_inputs, axes=axes)
        given = length, inputs, begin_state, layout, True, valid_length
        outputs, states = self._lent(self.base_cell.unroll, *given)
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=axes)
        return formatted(length, outputs, layout, merge_outputs is not False), states


class LSTMPCell(LSTMCell):
    """Long short-term memory whose output, and first state, is projected to fewer numbers.

    >>> import gnomon as mx
    >>> cell = LSTMPCell(8, 3)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 5)), cell.begin_state(batch_size=2))
    >>> output.shape, [s.shape for s in states]
    ((2, 3), [(2, 3), (2, 8)])

    Args:
        hidden_size: numbers of the cell's state.
        projection_size: numbers of the output.
        i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer,
            i2h_bias_initializer, h2h_bias_initializer: where the parameters begin.
        input_size: numbers of an input; 0 leaves that to the first one.
        prefix, params: as for every block.
    """

    _output_name = "hidden"
    _activation, _recurrent_activation = "tanh", "sigmoid"

    _fields: ClassVar = {
        "projection_size": Whole(1),
    }

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        self._projection_size = projection_size
        self._h2r_init = h2r_weight_initializer
        weights = i2h_weight_initializer, h2h_weight_initializer
        biases = i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, *weights, *biases, input_size, prefix, params)

    def _alias(self) -> str:
        return "lstmp"

    def _fed_back(self) -> int:
        return self._projection_size

    def _make_more(self, made: Any) -> None:
        shape = self._projection_size, self._hidden_size
        self.h2r_weight = made("h2r_weight", shape, self._h2r_init)

    def _more_repr(self) -> str:
        return f" -> {self._projection_size}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The projected state (batch, projection), and the cell's (batch, hidden)."""
        sizes = self._projection_size, self._hidden_size
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in sizes]

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        h2r_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> Any:
        params = i2h_weight, h2h_weight, i2h_bias, h2h_bias
        hidden, (_, memory) = super().hybrid_forward(F, inputs, states, *params)
        output = F.FullyConnected(
            hidden,
            h2r_weight,
            num_hidden=self._projection_size,
            no_bias=True,
            name=f"{self._step}out",
        )
        return output, [output, memory]


def dynamic_unroll(
    cell: Any,
    inputs: Any,
    begin_state: Any,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, list[Any]]:
    """Outputs and final states of a cell, by a loop over as many steps as `inputs` has.

    A block that is compiled has the loop as one operator, which serves sequences of any length.

    >>> import gnomon as mx
    >>> cell = mx.gluon.rnn.GRUCell(4, input_size=3)
    >>> cell.initialize()
    >>> outputs, states = dynamic_unroll(cell, mx.nd.ones((5, 2, 3)), cell.begin_state(2))
    >>> outputs.shape, [s.shape for s in states]
    ((5, 2, 4), [(2, 4)])

    Args:
        cell: a cell that can be stepped.
        inputs: one array with the axes of `layout`.
        begin_state: the first states; None for zeros.
        drop_inputs, drop_outputs: the shares that are dropped in training, the same at all steps.
        layout: "TNC" or "NTC".
        valid_length: for each sequence how long it is: outputs behind are 0, and the final states
            are those at its end.

    Raises:
        ParamError: `inputs` is a list, or the layout another.
    """
    if isinstance(inputs, (list, tuple)):
        got = f"{len(inputs)} arrays"
        raise ParamError(complaint("dynamic_unroll", "inputs", "one array with all steps", got))
    F, axis = functions(inputs), time_axis(layout)
    states = list(cell._begun(inputs, batch_size(inputs, layout), begin_state))
    if axis == 1:
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))

    def step(given: Any, before: Any) -> tuple[Any, Any]:
        part, number = given
        output, after = cell(part, before)
        goes_on = F.broadcast_greater(valid_length, number)
        return output, [F.where(goes_on, *pair) for pair in zip(after, before, strict=True)]

    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, states)
    else:
        numbers = F.reshape(F.contrib.arange_like(inputs, axis=0), shape=(-1, 1))
        outputs, states = F.contrib.foreach(step, [inputs, numbers], states)
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if valid_length is not None:
        outputs = F.SequenceMask(outputs, valid_length, use_sequence_length=True)
    return (F.swapaxes(outputs, dim1=0, dim2=1) if axis == 1 else outputs), list(states)

"""All layers of a recurrent network in one operator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import ParamError, complaint
from gnomon.initializer.recurrent import GATES, FusedRNN, Packing
from gnomon.ops.param import checked_count
from gnomon.rnn.base import Arrays, BaseRNNCell, RNNParams, formatted, merged, time_axis
from gnomon.rnn.cell import GRUCell, LSTMCell, RNNCell
from gnomon.rnn.compound import BidirectionalCell, SequentialRNNCell
from gnomon.rnn.modifier import DropoutCell


class FusedRNNCell(BaseRNNCell):
    """Layers of cells, in one or both directions, that the operator RNN runs as a whole.

    It cannot be stepped, only unrolled; `unfuse` gives the same network of single cells, and
    `unpack_weights` its weights.

    Args:
        num_hidden: numbers of a state.
        num_layers: layers, each on the output of the one before.
        mode: "rnn_relu", "rnn_tanh", "lstm" or "gru".
        bidirectional: run each layer in both directions.
        dropout: share of the outputs between layers that is dropped in training.
        get_next_state: give the final states too.
        forget_bias: where the biases of an LSTM's forget gates begin.
        prefix, params: as for every cell; the prefix is the mode's by default.

    >>> cell = FusedRNNCell(8, num_layers=2, mode="gru", prefix="gru_")
    >>> outputs, _ = cell.unroll(3, sym.Variable("x"), layout="TNC", merge_outputs=True)
    >>> outputs.infer_shape(x=(3, 2, 4))[1], [c._prefix for c in cell.unfuse()._cells]
    ([(3, 2, 8)], ['gru_l0_', 'gru_l1_'])
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if not isinstance(mode, str) or mode not in GATES:
            raise ParamError(complaint("FusedRNNCell", "mode", f"one of {[*GATES]}", repr(mode)))
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        num_layers = checked_count("FusedRNNCell", "num_layers", num_layers)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout = bidirectional, dropout
        self._get_next_state, self._forget_bias = get_next_state, forget_bias
        self._packing = Packing(mode, num_layers, num_hidden, bidirectional)
        start = FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=start)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        shape = ((1 + self._bidirectional) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(1 + (self._mode == "lstm"))]

    @property
    def _gate_names(self) -> list[str]:
        return list(GATES[self._mode])

    @property
    def _num_gates(self) -> int:
        return len(GATES[self._mode])

    # --- weights ---

    def unpack_weights(self, args: Mapping[str, Any]) -> Arrays:
        """`args` with the weights and biases of all layers, directions and gates apart."""
        args = dict(args)
        whole = args.pop(self._parameter.name)
        for piece in self._packing.pieces(whole.size, self._prefix):
            args[piece.name] = whole[piece.part].reshape(piece.shape).copy()
        return args

    def pack_weights(self, args: Mapping[str, Any]) -> Arrays:
        """`args` with all weights and biases in one vector: undoes `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        values = np.zeros(self._size(first.shape[1]), first.dtype)
        for piece in self._packing.pieces(values.size, self._prefix):
            values[piece.part] = args.pop(piece.name).asnumpy().reshape(-1)
        args[self._parameter.name] = nd.array(values, ctx=first.context, dtype=first.dtype)
        return args

    def _size(self, num_input: int) -> int:
        """The length of the vector of weights for data of this width."""
        hidden, sides = self._num_hidden, 1 + self._bidirectional
        above = (self._num_layers - 1) * (hidden * (sides + 1) + 2)
        return sides * self._num_gates * hidden * (num_input + hidden + 2 + above)

    # --- graphs ---

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("FusedRNNCell: cannot be stepped: call unroll, or unfuse() it")

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        inputs = merged(inputs, layout)
        swapped = time_axis(layout) == 1
        if swapped:
            text = "FusedRNNCell.unroll: layout NTC is transposed twice: TNC is faster"
            warnings.warn(text, stacklevel=3)
            inputs = sym.swapaxes(inputs, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        rnn = sym.RNN(
            inputs,
            self._parameter,
            *states,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
        )
        finals = list(rnn)[1:] if self._get_next_state else []
        for state in finals:
            state._set_attr(__layout__="LNC")
        outputs = rnn[0] if finals else rnn
        outputs = sym.swapaxes(outputs, dim1=0, dim2=1) if swapped else outputs
        return formatted(length, outputs, layout, merge_outputs), finals

    def unfuse(self) -> SequentialRNNCell:
        """The same network of single cells, which take the weights of `unpack_weights`."""
        stack = SequentialRNNCell()
        for k in range(self._num_layers):
            if self._bidirectional:
                sides = (self._single(f"{side}{k}_") for side in "lr")
                stack.add(BidirectionalCell(*sides, output_prefix=f"{self._prefix}bi_l{k}_"))
            else:
                stack.add(self._single(f"l{k}_"))
            if self._dropout > 0 and k != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{k}_"))
        return stack

    def _single(self, place: str) -> BaseRNNCell:
        """The cell of one layer in one direction."""
        prefix = self._prefix + place
        if self._mode == "lstm":
            return LSTMCell(self._num_hidden, prefix=prefix, forget_bias=self._forget_bias)
        if self._mode == "gru":
            return GRUCell(self._num_hidden, prefix=prefix)
        return RNNCell(self._num_hidden, activation=self._mode[4:], prefix=prefix)

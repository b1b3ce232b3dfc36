"""Initial values of recurrent layers whose weights lie in one vector."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from gnomon.base import ShapeError, complaint
from gnomon.initializer.base import InitDesc, Initializer, create, register
from gnomon.ops.nn.rnn import RNN

GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}
KINDS = {
    "w_in": ("i2h", "weight"),
    "w_hid": ("h2h", "weight"),
    "b_in": ("i2h", "bias"),
    "b_hid": ("h2h", "bias"),
}


class Piece(NamedTuple):
    """One gate's weight or bias in the vector of all: its name, where it lies, its shape."""

    name: str
    part: slice
    shape: tuple[int, ...]


class Packing(NamedTuple):
    """How the operator RNN lays the weights of its layers and directions into one vector."""

    mode: str
    num_layers: int
    num_hidden: int
    bidirectional: bool

    def num_input(self, size: int) -> int:
        """The width of the data for which the vector has `size` elements.

        Raises:
            ShapeError: there is none.
        """
        directions = 1 + self.bidirectional
        rows = directions * len(GATES[self.mode]) * self.num_hidden
        above = (self.num_layers - 1) * (self.num_hidden * (directions + 1) + 2)
        width, rest = divmod(size - rows * (above + self.num_hidden + 2), rows)
        if rest or width < 1:
            expected = f"a vector of weights for {self}"
            raise ShapeError(complaint("FusedRNN", "parameters", expected, f"{size} elements"))
        return width

    def pieces(self, size: int, prefix: str = "") -> Iterator[Piece]:
        """All weights and biases in a vector of `size` elements, gate by gate.

        >>> [p.name for p in Packing("rnn_tanh", 1, 2, False).pieces(14, "rnn_")]
        ['rnn_l0_i2h_weight', 'rnn_l0_h2h_weight', 'rnn_l0_i2h_bias', 'rnn_l0_h2h_bias']
        """
        mode, layers, hidden, both = self
        layer = RNN(mode=mode, num_layers=layers, state_size=hidden, bidirectional=both)
        places = layer.places(1, 1, self.num_input(size))
        for names in (("w_in", "w_hid"), ("b_in", "b_hid")):
            for place, name in itertools.product(places, names):
                level, side = divmod(place.number, layer.directions)
                group, kind = KINDS[name]
                shape = (hidden, *place.shape(name)[1:])
                length = math.prod(shape)
                for k, gate in enumerate(GATES[mode]):
                    start = place.starts[name] + k * length
                    title = f"{prefix}{'lr'[side]}{level}_{group}{gate}_{kind}"
                    yield Piece(title, slice(start, start + length), shape)


@register
class FusedRNN(Initializer):
    """The vector of weights of the operator RNN, each weight and bias by an initializer of its own.

    Args:
        init: the initializer, its name or JSON; None for the one of the whole model.
        num_hidden, num_layers, mode, bidirectional: as for `rnn.FusedRNNCell`.
        forget_bias: the biases of an LSTM's forget gates.
    """

    def __init__(
        self,
        init: Any,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ) -> None:
        init = create(init)
        super().__init__(
            init=None if init is None else init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init = init
        self._packing = Packing(mode, num_layers, num_hidden, bidirectional)
        self._forget_bias = forget_bias

    def _init_weight(self, desc: str, arr: Any) -> None:
        fill = self._init or getattr(desc, "global_init", None)
        values = arr.asnumpy().reshape(-1)
        for piece in self._packing.pieces(values.size):
            if self._packing.mode == "lstm" and piece.name.endswith("_f_bias"):
                values[piece.part] = self._forget_bias
                continue
            part = arr[piece.part].copy().reshape(piece.shape)
            fill(InitDesc(piece.name, global_init=fill), part)
            values[piece.part] = part.asnumpy().reshape(-1)
        arr[:] = values

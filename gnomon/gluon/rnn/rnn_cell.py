"""All cells: plain ones, those made of others, those that modify others."""

from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.nn.activations import LeakyReLU
from gnomon.gluon.rnn.base import HybridRecurrentCell, RecurrentCell
from gnomon.gluon.rnn.cells import GRUCell, LSTMCell, RNNCell
from gnomon.gluon.rnn.compound import (
    BidirectionalCell,
    HybridSequentialRNNCell,
    SequentialRNNCell,
)
from gnomon.gluon.rnn.helpers import (
    _cells_begin_state,
    _cells_state_info,
    _format_sequence,
    _get_begin_state,
    _mask_sequence_variable_length,
    _reverse_sequences,
)
from gnomon.gluon.rnn.modifier import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell

__all__ = [
    "BidirectionalCell",
    "Block",
    "DropoutCell",
    "GRUCell",
    "HybridBlock",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "LeakyReLU",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "_cells_begin_state",
    "_cells_state_info",
    "_format_sequence",
    "_get_begin_state",
    "_mask_sequence_variable_length",
    "_reverse_sequences",
]

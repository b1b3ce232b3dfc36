"""All cells: plain ones, those made of others, those that modify others."""

from gnomon.rnn.base import BaseRNNCell, RNNParams
from gnomon.rnn.cell import GRUCell, LSTMCell, RNNCell
from gnomon.rnn.compound import BidirectionalCell, SequentialRNNCell
from gnomon.rnn.conv import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from gnomon.rnn.fused import FusedRNNCell
from gnomon.rnn.modifier import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]

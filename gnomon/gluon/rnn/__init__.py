"""Recurrent layers, and the cells that they are made of."""

from gnomon.compatibility.absent import finding
from gnomon.gluon.rnn import rnn_cell, rnn_layer
from gnomon.gluon.rnn.rnn_cell import (
    BidirectionalCell,
    DropoutCell,
    GRUCell,
    HybridRecurrentCell,
    HybridSequentialRNNCell,
    LSTMCell,
    ModifierCell,
    RecurrentCell,
    ResidualCell,
    RNNCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from gnomon.gluon.rnn.rnn_layer import GRU, LSTM, RNN

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "BidirectionalCell",
    "DropoutCell",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "rnn_cell",
    "rnn_layer",
]

__getattr__, __dir__ = finding(__name__, __all__)

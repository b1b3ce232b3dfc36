"""Recurrent layers, and the cells that they are made of."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.rnn import rnn_cell as rnn_cell, rnn_layer as rnn_layer
from gnomon.gluon.rnn.rnn_cell import (
    BidirectionalCell as BidirectionalCell,
    DropoutCell as DropoutCell,
    GRUCell as GRUCell,
    HybridRecurrentCell as HybridRecurrentCell,
    HybridSequentialRNNCell as HybridSequentialRNNCell,
    LSTMCell as LSTMCell,
    ModifierCell as ModifierCell,
    RecurrentCell as RecurrentCell,
    ResidualCell as ResidualCell,
    RNNCell as RNNCell,
    SequentialRNNCell as SequentialRNNCell,
    ZoneoutCell as ZoneoutCell,
)
from gnomon.gluon.rnn.rnn_layer import GRU as GRU, LSTM as LSTM, RNN as RNN

__getattr__, __dir__ = _showing(__name__, ("rnn_cell", "rnn_layer"))

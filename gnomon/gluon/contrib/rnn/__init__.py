"""Recurrent cells beside the usual ones."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.contrib.rnn.conv_rnn_cell import (
    Conv1DGRUCell as Conv1DGRUCell,
    Conv1DLSTMCell as Conv1DLSTMCell,
    Conv1DRNNCell as Conv1DRNNCell,
    Conv2DGRUCell as Conv2DGRUCell,
    Conv2DLSTMCell as Conv2DLSTMCell,
    Conv2DRNNCell as Conv2DRNNCell,
    Conv3DGRUCell as Conv3DGRUCell,
    Conv3DLSTMCell as Conv3DLSTMCell,
    Conv3DRNNCell as Conv3DRNNCell,
)
from gnomon.gluon.contrib.rnn.rnn_cell import *

__getattr__, __dir__ = _showing(__name__)

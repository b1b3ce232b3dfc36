"""`mx.rnn`: recurrent cells of symbols, sentences in buckets, checkpoints of both."""

from gnomon.io import DataBatch, DataDesc, DataIter
from gnomon.module.checkpoint import load_checkpoint, save_checkpoint
from gnomon.rnn.base import BaseRNNCell, RNNParams
from gnomon.rnn.base import unrolled_by_hand as rnn_unroll
from gnomon.rnn.cell import GRUCell, LSTMCell, RNNCell
from gnomon.rnn.checkpoint import do_rnn_checkpoint, load_rnn_checkpoint, save_rnn_checkpoint
from gnomon.rnn.compound import BidirectionalCell, SequentialRNNCell
from gnomon.rnn.conv import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from gnomon.rnn.fused import FusedRNNCell
from gnomon.rnn.io import BucketSentenceIter, encode_sentences
from gnomon.rnn.modifier import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "BucketSentenceIter",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DataBatch",
    "DataDesc",
    "DataIter",
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
    "do_rnn_checkpoint",
    "encode_sentences",
    "load_checkpoint",
    "load_rnn_checkpoint",
    "rnn_unroll",
    "save_checkpoint",
    "save_rnn_checkpoint",
]

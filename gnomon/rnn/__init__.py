"""`mx.rnn`: recurrent cells of symbols, sentences in buckets, checkpoints of both."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.io import DataBatch as DataBatch, DataDesc as DataDesc, DataIter as DataIter
from gnomon.rnn import rnn as rnn, rnn_cell as rnn_cell
from gnomon.rnn.io import (
    BucketSentenceIter as BucketSentenceIter,
    encode_sentences as encode_sentences,
)
from gnomon.rnn.rnn import (
    do_rnn_checkpoint as do_rnn_checkpoint,
    load_checkpoint as load_checkpoint,
    load_rnn_checkpoint as load_rnn_checkpoint,
    rnn_unroll as rnn_unroll,
    save_checkpoint as save_checkpoint,
    save_rnn_checkpoint as save_rnn_checkpoint,
)
from gnomon.rnn.rnn_cell import *

__getattr__, __dir__ = _showing(__name__, ("rnn", "rnn_cell"))

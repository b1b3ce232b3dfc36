"""More layers: blocks side by side, rows of tables, pixels rearranged."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.contrib.nn.basic_layers import (
    Concurrent as Concurrent,
    HybridConcurrent as HybridConcurrent,
    Identity as Identity,
    PixelShuffle1D as PixelShuffle1D,
    PixelShuffle2D as PixelShuffle2D,
    PixelShuffle3D as PixelShuffle3D,
    SparseEmbedding as SparseEmbedding,
    SyncBatchNorm as SyncBatchNorm,
)

__getattr__, __dir__ = _showing(__name__)

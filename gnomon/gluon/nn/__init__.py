"""Layers of networks."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.block import (
    Block as Block,
    HybridBlock as HybridBlock,
    SymbolBlock as SymbolBlock,
)
from gnomon.gluon.nn.activations import *
from gnomon.gluon.nn.basic_layers import *
from gnomon.gluon.nn.conv_layers import *

__getattr__, __dir__ = _showing(__name__)

"""Blocks: parts of networks that hold parameters and compute."""

from json import loads as load_json

from gnomon.base import MXNetError
from gnomon.gluon.block.base import Block
from gnomon.gluon.block.hooks import HookHandle
from gnomon.gluon.block.hybrid import HybridBlock
from gnomon.gluon.block.imported import SymbolBlock
from gnomon.gluon.parameter import DeferredInitializationError, Parameter, ParameterDict

__all__ = [
    "Block",
    "DeferredInitializationError",
    "HookHandle",
    "HybridBlock",
    "MXNetError",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "load_json",
]

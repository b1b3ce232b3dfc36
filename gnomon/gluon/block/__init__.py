"""Blocks: parts of networks that hold parameters and compute."""

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
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
]

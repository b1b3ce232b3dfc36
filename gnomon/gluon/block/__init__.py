"""Blocks: parts of networks that hold parameters and compute."""

from json import loads as load_json

from gnomon.base import MXNetError
from gnomon.gluon.block.base import Block
from gnomon.gluon.block.hooks import HookHandle
from gnomon.gluon.block.hybrid import HybridBlock
from gnomon.gluon.block.imported import SymbolBlock
from gnomon.gluon.block.naming import BlockScope as _BlockScope
from gnomon.gluon.block.structure import _flatten, _regroup, tensor_types
from gnomon.gluon.block.summary import _indent  # noqa: F401  MXNet's has it
from gnomon.gluon.parameter import DeferredInitializationError, Parameter, ParameterDict
from gnomon.ndarray import NDArray
from gnomon.symbol import Symbol

__all__ = [
    "Block",
    "DeferredInitializationError",
    "HookHandle",
    "HybridBlock",
    "MXNetError",
    "NDArray",
    "Parameter",
    "ParameterDict",
    "Symbol",
    "SymbolBlock",
    "_BlockScope",
    "_flatten",
    "_regroup",
    "load_json",
    "tensor_types",
]

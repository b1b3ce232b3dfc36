"""Parameters of networks: arrays that are trained, and dictionaries of them."""

from gnomon.base import MXNetError
from gnomon.context import Context, cpu
from gnomon.gluon.parameter.constant import Constant
from gnomon.gluon.parameter.dictionary import ParameterDict
from gnomon.gluon.parameter.parameter import DeferredInitializationError, Parameter
from gnomon.gluon.parameter.shapes import shape_is_known

__all__ = [
    "Constant",
    "Context",
    "DeferredInitializationError",
    "MXNetError",
    "Parameter",
    "ParameterDict",
    "cpu",
    "shape_is_known",
]

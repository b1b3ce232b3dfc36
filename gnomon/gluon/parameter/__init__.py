"""Parameters of networks: arrays that are trained, and dictionaries of them."""

from gnomon.gluon.parameter.constant import Constant
from gnomon.gluon.parameter.dictionary import ParameterDict
from gnomon.gluon.parameter.parameter import DeferredInitializationError, Parameter

__all__ = ["Constant", "DeferredInitializationError", "Parameter", "ParameterDict"]

"""Stochastic gradients whose variance a full gradient, taken now and then, reduces (SVRG)."""

from gnomon.compatibility.absent import finding
from gnomon.contrib.svrg_optimization import svrg_module
from gnomon.contrib.svrg_optimization.svrg_module import SVRGModule

__all__ = ["SVRGModule", "svrg_module"]

__getattr__, __dir__ = finding(__name__, __all__)

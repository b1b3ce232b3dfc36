"""Rules that change weights by their gradients, and the updater that keeps their states."""

from gnomon.optimizer.adaptive import AdaGrad, Adam, RMSProp
from gnomon.optimizer.base import Optimizer, create, register
from gnomon.optimizer.sgd import NAG, SGD, Signum, Test, ccSGD
from gnomon.optimizer.updater import Updater, get_updater

__all__ = [
    "NAG",
    "SGD",
    "AdaGrad",
    "Adam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]

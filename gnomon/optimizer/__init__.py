"""Rules that change weights by their gradients, and the updater that keeps their states.

An optimizer is one file of this folder: it is public once it is there.
"""

from gnomon.ground.folder_registry import public
from gnomon.optimizer.base import OPTIMIZERS, Optimizer, create, register
from gnomon.optimizer.updater import Updater, get_updater

__all__ = ["Optimizer", "Updater", "create", "get_updater", "register"]

__getattr__, __dir__ = public(OPTIMIZERS, __all__)

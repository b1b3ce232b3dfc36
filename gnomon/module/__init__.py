"""Training and prediction with a bound symbol: parameters, optimizer, loops, checkpoints."""

from gnomon.module.base import BaseModule
from gnomon.module.module import Module

__all__ = ["BaseModule", "Module"]

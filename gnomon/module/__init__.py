"""Training and prediction with bound symbols: parameters, optimizer, loops, checkpoints."""

from gnomon.compatibility.absent import finding
from gnomon.module import base_module
from gnomon.module.base_module import BaseModule
from gnomon.module.bucketing_module import BucketingModule
from gnomon.module.module import Module
from gnomon.module.python_module import PythonLossModule, PythonModule
from gnomon.module.sequential_module import SequentialModule

__all__ = [
    "BaseModule",
    "BucketingModule",
    "Module",
    "PythonLossModule",
    "PythonModule",
    "SequentialModule",
    "base_module",
]

__getattr__ = finding(__name__, __all__)

"""Training and prediction with bound symbols: parameters, optimizer, loops, checkpoints."""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving
from gnomon.module import base_module
from gnomon.module.base_module import BaseModule
from gnomon.module.module import Module

if TYPE_CHECKING:
    from gnomon.module.bucketing_module import BucketingModule
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

_FILES = {
    "bucketing_module": "BucketingModule",
    "python_module": "PythonLossModule PythonModule",
    "sequential_module": "SequentialModule",
}

__getattr__, __dir__ = resolving(__name__, _FILES, (*__all__, *_FILES, "executor_group", "module"))

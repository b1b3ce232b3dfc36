"""`mx.executor`: symbols bound to arrays."""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving

if TYPE_CHECKING:
    from gnomon.executor.executor import Executor

__all__ = ["Executor"]

__getattr__, __dir__ = resolving(__name__, {"executor": "Executor"})

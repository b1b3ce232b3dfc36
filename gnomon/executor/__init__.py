"""`mx.executor`: symbols bound to arrays."""

from gnomon.executor.executor import Executor

__all__ = ["Executor"]

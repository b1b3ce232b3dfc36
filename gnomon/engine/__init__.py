"""The dependency engine: functions run in the order their declared reads and writes demand.

It knows nothing of tensors and is of use to any program:

>>> from gnomon import engine
>>> e, log = engine.get(), []
>>> page, index = e.new_variable(), e.new_variable()
>>> e.push_sync(lambda ctx: log.append("fetch"), mutate_vars=[page])
>>> e.push_sync(lambda ctx: log.append("index"), const_vars=[page], mutate_vars=[index])
>>> e.wait_for_var(index)
>>> log
['fetch', 'index']
"""

from gnomon.base import EngineError
from gnomon.engine.current import bulk, create, get, set_bulk_size, use
from gnomon.engine.engine import Engine
from gnomon.engine.job import Operator, Repeatable, RunContext
from gnomon.engine.naive import NaiveEngine
from gnomon.engine.threaded import ThreadedEngine, ThreadedEnginePerDevice
from gnomon.engine.var import Var

VarHandle = Var
OprHandle = Operator

__all__ = [
    "Engine",
    "EngineError",
    "NaiveEngine",
    "Operator",
    "OprHandle",
    "Repeatable",
    "RunContext",
    "ThreadedEngine",
    "ThreadedEnginePerDevice",
    "Var",
    "VarHandle",
    "bulk",
    "create",
    "get",
    "set_bulk_size",
    "use",
]

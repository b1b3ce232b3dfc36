"""The pool of threads that shares the work of one kernel, called by native code.

States of the pool: *absent* until its address or size is first asked for; *running* with
`num_threads()` threads, the caller counted, whose own number is 0; *forked* in a child process,
where it has one thread and does every task on the caller, until `set_num_threads` asks for more
there. Threads start with the first job that wants them, and are never joined: at exit they sleep,
and the process takes them along. thread_code.py has the native side and says why it cannot hang.

Two kinds. `own`, the default, has its own threads; the caller helps itself to every task that no
thread has claimed yet. `libgomp` (setting `gomp`) shares the threads of a process that computes
with OpenMP in the calling thread as well; libgomp waits passively unless the environment says
otherwise.

Measured on 2 cores of a virtual machine (`python benchmarks/runtime.py threads`), time of a job of
two tasks of 6 us beyond the time of one: own 0.5 us when the threads are awake; when they sleep,
the second task runs on the caller and waking them costs up to 4 us. A worker that finds nothing
offers its core to others for a while before it sleeps: a step of a small network, which Python
starts every 200 us, takes 260 us so, and 390 us where it slept after 20. libgomp, waiting
passively: 8 us, and 60 to 80 us when the other core was halted, since its caller waits for every
thread.
"""

from __future__ import annotations

import ctypes
import os
import time

from gnomon import config
from gnomon.base import ParamError, complaint
from gnomon.ground.lock import around_forks, first_use
from gnomon.ground.record import record
from gnomon.native.memory import CFunction
from gnomon.native.serve import raw_code
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import thread_code
from gnomon.runtime.ffi import function, pointer, symbol

#: what `parallel_address` tells of, for native functions
gnomon_parallel = CFunction("void gnomon_parallel(void *, void *, long)")

_SPIN_SECONDS = 20e-6  # more loses to any busy neighbour, less to the usual gap between kernels
_threads = ctypes.c_int32.from_address(thread_code.THREADS.address)
_GOMP = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_pause_resource_all")


@record()
class _Pool:
    kind: str
    code: jit.Module

    def call(self, name: str, argument: int = 0) -> None:
        """Calls one of the native functions that take a single word."""
        function(self.address(name))(pointer(argument))

    def address(self, name: str) -> int:
        """The address of this kind's function of that name."""
        return self.code.address(f"{self.kind}_{name}")


@record(frozen=False)
class _State:
    pool: _Pool | None = None
    forked: bool = False


_state = _State()


def parallel_address() -> int:
    """The address of `void parallel(void (*fn)(void *block, int64 task, int64 tasks), void *block,
    int64 tasks)`.

    It calls `fn` for every task, on as many threads as there are, and returns when all tasks are
    done. A caller that comes while it works for another, or from a task, has the tasks done in
    sequence; the result of a job must not depend on which thread does what.
    """
    return _running().address("parallel")


def spread_address() -> int:
    """The address of a step's function whose block is `[fn, block, tasks]`: `parallel` of these."""
    return _running().address("spread")


def num_threads() -> int:
    """The number of threads that share a kernel's work; 1 in a forked child.

    >>> num_threads() >= 1
    True
    """
    pool = _state.pool
    return _configured() if pool is None else _threads.value


def _configured() -> int:
    """How many threads there will be when they are started."""
    return 1 if _state.forked else int(config.get("num_threads"))


def count_address() -> int:
    """The address of the int32 that `num_threads` tells."""
    _running()
    return thread_code.THREADS.address


def set_num_threads(n: int) -> None:
    """From now on `n` threads share a kernel's work, the caller counted.

    Raises:
        ParamError: `n` is not an integer of at least 1.
    """
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n < 1 << 16:
        raise ParamError(complaint("set_num_threads", "n", "an integer from 1 to 65535", repr(n)))
    config.set("num_threads", n)
    _running().call("limit", n)


def kind() -> str:
    """Whose threads they are: 'own' or 'libgomp'."""
    return _running().kind


def looks() -> int:
    """How often a thread of the pool looks for work before it sleeps: for 20 us."""
    _running()
    return thread_code.SPINS[0]


def _running() -> _Pool:
    return _state.pool or _start()


def _start() -> _Pool:
    with first_use:
        if _state.pool is None:
            pool = (_with_libgomp() if config.get("gomp") else None) or _with_own_threads()
            pool.call("limit", _configured())
            _state.pool = pool
        return _state.pool


def _with_own_threads() -> _Pool:
    pool = _Pool("own", raw_code(*thread_code.OWN))
    pool.call("renew")  # the state of a fresh process is that of a child
    thread_code.SPINS[0] = max(1, int(_SPIN_SECONDS / _seconds_of_a_look(pool)))
    return pool


def _seconds_of_a_look(pool: _Pool, looks: int = 1000) -> float:
    """The processor's pause takes from 5 to 150 cycles, so it is measured."""
    best = 1.0
    for _ in range(3):
        start = time.perf_counter()
        pool.call("relax", looks)
        best = min(best, time.perf_counter() - start)
    return best / looks


def _with_libgomp() -> _Pool | None:
    """None without libgomp, or with one that cannot let go of its threads before a fork."""
    ours = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}.isdisjoint(os.environ)
    if ours:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # libgomp reads it once, while it is loaded
    try:
        library = ctypes.CDLL("libgomp.so.1")
    except OSError:
        return None
    finally:
        if ours:
            del os.environ["OMP_WAIT_POLICY"]
    symbols = {name: symbol(library, name) for name in _GOMP}
    if not all(symbols.values()):
        return None
    return _Pool("libgomp", raw_code(*thread_code.LIBGOMP, symbols=symbols))


def _before_fork() -> None:
    if _state.pool is not None and _state.pool.kind == "libgomp":
        _state.pool.call("end_team")


def _after_fork_in_child() -> None:
    _state.forked = True
    if _state.pool is not None:
        _state.pool.call("renew")


around_forks(_before_fork, bool, _after_fork_in_child)

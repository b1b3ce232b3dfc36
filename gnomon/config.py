"""Every setting of gnomon in one table: its type, default, environment variables and meaning.

State: a setting's value is, in this order, what this thread set by `with using(...)`, what `set`
gave the process, what the environment says, the default. The environment is read once, when the
setting is first asked for; `reset` forgets that and what `set` gave.

DEBUG ladder (`GNOMON_DEBUG=n` shows everything up to n): 1 devices and memory, 2 time and GB/s of
each kernel, 3 fusion and schedule, 4 loop nests, 5 LLVM, 6 each pass, 7 assembly.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.base import Later, ParamError, complaint, nearest, shown
from gnomon.ground.record import record

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = Later("tempfile")


def _processors() -> int:
    """The processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def _workers() -> int:
    """Two at least, so that a function that waits for another one can."""
    return max(2, _processors())


def _user_cache() -> Path:
    """gnomon's folder in the user's cache directory; one for temporary files without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gnomon"
    except RuntimeError:  # as a container's user that no list of users knows
        return Path(tempfile.gettempdir()) / f"gnomon-{os.getuid()}"


def _boolean(text: str) -> bool:
    """The truth that `text` says in any of the usual words."""
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError(text)


def _threads(text: str) -> int:
    """The outermost number of OpenMP's list, as in `4,2`."""
    return int(text.partition(",")[0])


@record()
class Setting:
    """One row: what a setting means and where its value comes from."""

    name: str
    type: type
    default: Any
    env: tuple[str, ...]
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None

    def parse(self, text: str) -> Any:
        """The value in an environment variable's `text`; ValueError where there is none."""
        return (self.read or (_boolean if self.type is bool else self.type))(text.strip())

    def expected(self) -> str:
        """The values allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.high is not None:
            return f"{self.type.__name__} from {self.low:g} to {self.high:g}"
        return self.type.__name__ + (f" of at least {self.low:g}" if self.low is not None else "")

    def check(self, where: str, value: Any) -> Any:
        """`value` in the setting's type; ParamError where it does not fit."""
        if self.type is Path and isinstance(value, str):
            value = Path(value)
        if self.type is float and type(value) is int:
            value = float(value)
        fits = isinstance(value, self.type) and (self.type is bool or type(value) is not bool)
        if fits and self.low is not None:
            fits = value >= self.low and (self.high is None or value <= self.high)
        if not fits or (self.choices and value not in self.choices):
            raise ParamError(complaint(where, self.name, self.expected(), shown(value)))
        return value


_SHARED = ("OMP_NUM_THREADS",)  # variables that speak to other libraries first
_ENGINES = ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")

SETTINGS = {
    row.name: row
    for row in (
        Setting("debug", int, 0, ("GNOMON_DEBUG",), "How much to show, 0 to 7.", 0, high=7),
        Setting(
            "num_threads",
            int,
            _processors,
            ("GNOMON_NUM_THREADS", "MXNET_OMP_MAX_THREADS", "OMP_NUM_THREADS"),
            "Threads that share the work of one kernel.",
            low=1,
            read=_threads,
        ),
        Setting(
            "cache_dir",
            Path,
            _user_cache,
            ("GNOMON_CACHE_DIR",),
            "Folder for what is worth keeping between processes.",
        ),
        Setting(
            "disk_cache",
            bool,
            True,
            ("GNOMON_DISK_CACHE",),
            "Whether compiled kernels are kept in `cache_dir`, and those kept or carried are used.",
        ),
        Setting(
            "disk_cache_limit",
            int,
            256 << 20,
            ("GNOMON_DISK_CACHE_LIMIT",),
            "Bytes that the kernels in `cache_dir` may take together.",
            low=0,
        ),
        Setting(
            "tell_compiling",
            bool,
            True,
            ("GNOMON_TELL_COMPILING",),
            "Whether it is told when kernels are compiled for more than a second.",
        ),
        Setting(
            "engine_type",
            str,
            "ThreadedEnginePerDevice",
            ("GNOMON_ENGINE_TYPE", "MXNET_ENGINE_TYPE"),
            "Which engine orders the work; NaiveEngine runs it at once, for debugging.",
            choices=_ENGINES,
        ),
        Setting(
            "cpu_workers",
            int,
            _workers,
            ("GNOMON_CPU_WORKERS", "MXNET_CPU_WORKER_NTHREADS"),
            "Engine threads that run functions for the processor.",
            low=1,
        ),
        Setting(
            "onednn",
            bool,
            True,
            ("GNOMON_ONEDNN", "MXNET_ONEDNN_ENABLED", "MXNET_MKLDNN_ENABLED"),
            "Whether oneDNN computes convolution and pooling where it is installed.",
        ),
        Setting(
            "gomp",
            bool,
            False,
            ("GNOMON_GOMP",),
            "Whether kernels use libgomp's threads, where it is installed, not gnomon's own.",
        ),
        Setting(
            "native",
            bool,
            True,
            ("GNOMON_NATIVE",),
            "Whether calls go through native code; off, the same functions are run by Python.",
        ),
        Setting(
            "gpu",
            str,
            "off",
            ("GNOMON_GPU",),
            "Which GPUs there are: off: none; nvidia: what NVIDIA's driver shows, which nothing "
            "has run on yet; simulated: two that are simulated on the processor, for tests.",
            choices=("off", "nvidia", "simulated"),
        ),
        Setting(
            "pool_limit",
            int,
            1 << 30,
            ("GNOMON_POOL_LIMIT",),
            "Bytes of freed blocks that a device's pool keeps for reuse.",
            low=0,
        ),
        Setting(
            "memory_limit",
            int,
            0,
            ("GNOMON_MEMORY_LIMIT",),
            "Bytes that all storage of a device may hold together; 0: what the device has.",
            low=0,
        ),
        Setting(
            "hang_report_seconds",
            float,
            60.0,
            ("GNOMON_HANG_REPORT_SECONDS",),
            "Seconds of waiting after which the engine tells what it waits for; 0: never.",
            low=0,
        ),
        Setting(
            "dist_bucket_bytes",
            int,
            0,
            ("GNOMON_DIST_BUCKET_BYTES",),
            "Bytes of gradients that a store between processes sends at once; 0: 4 MB between "
            "hosts, 8 MB on one.",
            low=0,
        ),
        Setting(
            "dist_wire_dtype",
            str,
            "same",
            ("GNOMON_DIST_WIRE_DTYPE",),
            "In what float32 gradients travel between processes; same: as they are.",
            choices=("same", "float16", "bfloat16"),
        ),
        Setting(
            "dist_timeout_seconds",
            float,
            300.0,
            ("GNOMON_DIST_TIMEOUT_SECONDS",),
            "Seconds that processes wait for one of them in a collective; 0: for ever.",
            low=0,
        ),
        Setting(
            "dist_heartbeat_seconds",
            float,
            10.0,
            ("GNOMON_DIST_HEARTBEAT_SECONDS",),
            "Seconds without a sign of life after which a process counts as dead.",
            low=0.5,
            high=3600,
        ),
        Setting(
            "backward_do_mirror",
            bool,
            False,
            ("GNOMON_BACKWARD_DO_MIRROR", "MXNET_BACKWARD_DO_MIRROR"),
            "Whether cheap results are computed again in backward to save memory.",
        ),
        Setting(
            "storage_fallback_log",
            bool,
            True,
            ("GNOMON_STORAGE_FALLBACK_LOG", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE"),
            "Whether it is told, once an operator, that sparse arrays are made dense for it.",
        ),
        Setting(
            "lazy",
            bool,
            True,
            ("GNOMON_LAZY",),
            "Whether chains of element-wise NDArray operators wait to become one kernel.",
        ),
        Setting(
            "np_shape",
            bool,
            False,
            ("GNOMON_NP_SHAPE",),
            "Whether () and 0 in shapes mean what they mean in NumPy (`mx.util.np_shape`).",
        ),
        Setting(
            "passes",
            bool,
            True,
            ("GNOMON_PASSES",),
            "Whether bound graphs are rewritten and fused; off, each operator is computed alone.",
        ),
        Setting(
            "short_tracebacks",
            bool,
            True,
            ("GNOMON_SHORT_TRACEBACKS",),
            "Whether errors of blocks, operators and symbols show of gnomon the call alone.",
        ),
        Setting(
            "profiler_autostart",
            bool,
            False,
            ("GNOMON_PROFILER_AUTOSTART", "MXNET_PROFILER_AUTOSTART"),
            "Whether the profiler runs from the start, and writes its file at the end.",
        ),
        Setting(
            "streams",
            bool,
            True,
            ("GNOMON_STREAMS",),
            "Whether long native work runs behind the program; off, where it is pushed.",
        ),
        Setting(
            "programs",
            bool,
            True,
            ("GNOMON_PROGRAMS",),
            "Whether an executor's passes, and recorded steps, are one native call each; off, each "
            "task, and each operator, is a call.",
        ),
    )
}


class _Scoped(threading.local):
    """The values this thread set by `with using(...)`."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


class Changes:
    """How often settings were changed, in whatever thread: another number means to look again."""

    __slots__ = ("count",)

    count: int

    def __init__(self) -> None:
        self.count = 0


_scoped = _Scoped()
_process: dict[str, Any] = {}
changes = Changes()


def _setting(where: str, name: str) -> Setting:
    """The row called `name`; ParamError with the nearest names where there is none."""
    if name not in SETTINGS:
        raise ParamError(f"{where}: unknown setting {name!r}{nearest(name, SETTINGS)}")
    return SETTINGS[name]


def _from_environment(name: str) -> Any:
    """The value the environment gives the setting, or its default."""
    row = _setting("config.get", name)
    for variable in row.env:
        text = os.environ.get(variable, "")
        if not text.strip():
            continue
        try:
            value = row.parse(text)
        except ValueError:
            value = text
        try:
            return row.check(f"environment variable {variable}", value)
        except ParamError as error:
            if variable not in _SHARED:
                raise
            warnings.warn(f"{error}; it is ignored", stacklevel=2)
    return row.default() if callable(row.default) else row.default


def get(name: str) -> Any:
    """The value of a setting in this thread.

    >>> with using(debug=3):
    ...     get("debug")
    3

    Raises:
        ParamError: no such setting, or its environment variable holds what it cannot be.
    """
    scoped = _scoped.values
    if name in scoped:
        return scoped[name]
    if name not in _process:
        _process[name] = _from_environment(name)
    return _process[name]


def set(name: str, value: Any) -> None:
    """Give a setting a value for the whole process.

    Raises:
        ParamError: no such setting, or a value that it cannot have.
    """
    _process[name] = _setting("config.set", name).check("config.set", value)
    changes.count += 1


def reset(name: str | None = None) -> None:
    """Forget what `set` gave and what the environment said, of one setting or of all."""
    if name is None:
        _process.clear()
    else:
        _process.pop(_setting("config.reset", name).name, None)
    changes.count += 1


@contextmanager
def using(**values: Any) -> Iterator[None]:
    """A scope in which this thread sees other values; nothing changes where one is refused.

    Raises:
        ParamError: no such setting, or a value that it cannot have.
    """
    checked = {n: _setting("config.using", n).check("config.using", v) for n, v in values.items()}
    before = _scoped.values
    _scoped.values = {**before, **checked}
    changes.count += 1
    try:
        yield
    finally:
        _scoped.values = before
        changes.count += 1

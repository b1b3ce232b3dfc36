"""Starting, stopping and writing profiles.

States: *stopped* (nothing is recorded), *running*, *paused* (running, but nothing is recorded until
`resume`). While one runs, the engine tells of every function, programs of the time of each of their
steps, and memory in use is looked at after each function. `config` holds what `set_config` said;
what happened is kept for `dump`; sums begin anew after `dumps(reset=True)`.
"""

from __future__ import annotations

import atexit
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gnomon import engine
from gnomon.base import GnomonError, ParamError, complaint, nearest, shown
from gnomon.context import Context
from gnomon.ground.files import replacing
from gnomon.profiler import table
from gnomon.profiler.record import Count, Record, Span
from gnomon.profiler.trace import trace
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.program import Program, Timing, watch

log = logging.getLogger("gnomon.profiler")

DEFAULTS: dict[str, Any] = {
    "filename": "profile.json",
    "profile_all": False,
    "profile_symbolic": True,
    "profile_imperative": True,
    "profile_memory": False,
    "profile_api": False,
    "aggregate_stats": False,
    "continuous_dump": False,
    "dump_period": 1.0,
    "profile_process": "worker",
}
OLD = {"contiguous_dump": "continuous_dump"}  # the name in MXNet's own documentation
STATES = ("stop", "run")
CUSTOM = "Custom Operator"
ANONYMOUS = "program"  # the name of programs without a name: those of single operators


class Profiler:
    """The process's profile."""

    def __init__(self) -> None:
        self.config = dict(DEFAULTS)
        self.record = Record()
        self.running = self.paused = False
        self._here = threading.local()
        self._used = -1
        self._writer: Writer | None = None

    @property
    def active(self) -> bool:
        """Whether what happens is recorded."""
        return self.running and not self.paused

    def wants(self, what: str) -> bool:
        """Whether `symbolic`, `imperative` or `memory` is to be recorded."""
        return bool(self.config["profile_all"] or self.config[f"profile_{what}"])

    def start(self) -> None:
        """Begin to record."""
        self.running, self.paused = True, False
        engine.get().observe(self.observed)
        watch(self.watched)
        if self.config["continuous_dump"] and self._writer is None:
            self._writer = Writer(self)

    def stop(self) -> None:
        """End recording, when all that was pushed has run."""
        if self.running:
            engine.get().wait_for_all()
        self.running = False
        engine.get().observe(None)
        watch(None)
        if self._writer is not None:
            self._writer.ended.set()
            self._writer.join()  # else it might write by the settings that come next
            self._writer = None

    def observed(self, name: str | None, ctx: Context, begin: float, end: float) -> None:
        """What the engine tells of a function: its time on this thread."""
        symbolic, self._here.symbolic = getattr(self._here, "symbolic", False), False
        what = "symbolic" if symbolic else "imperative"
        if not (self.active and self.wants(what)):
            return
        category, custom = "operator", getattr(self._here, "custom", "")
        if custom:
            category, name = CUSTOM, f"{custom}::{name}"
        self.record.events.append(
            Span(category, name or "function", self.record.here(), begin, end)
        )
        if self.wants("memory"):
            self._look_at_memory(ctx, end)

    @contextmanager
    def within(self, custom: str) -> Iterator[None]:
        """The time of the Python code of an operator that a user wrote: what it calls is its."""
        self._here.custom, begin = custom, now()
        try:
            yield
        finally:
            self._here.custom = ""
            if self.active and (self.wants("symbolic") or self.wants("imperative")):
                name = f"{custom}::pure_python"
                self.record.events.append(Span(CUSTOM, name, self.record.here(), begin, now()))

    def _look_at_memory(self, ctx: Context, now: float) -> None:
        used = pool.stats().used
        if used != self._used:
            self._used = used
            name = f"Memory: {ctx.device_type}/{ctx.device_id}"
            self.record.events.append(Count(table.MEMORY, name, now, used))

    def watched(self, program: Program, timings: list[Timing]) -> None:
        """What a program tells of its steps, on the thread that ran it."""
        self._here.symbolic = program.name != ANONYMOUS
        if not (self.active and self._here.symbolic and self.wants("symbolic")):
            return
        thread = self.record.here()
        self.record.events += [
            Span("kernel", t.name, thread, t.begin, t.begin + t.seconds, t.bytes, t.flops)
            for t in timings
        ]

    def write(self) -> None:
        """Write the trace into the file of the settings."""
        text = json.dumps(trace(self.record))
        with replacing("profiler.dump", self.config["filename"]) as stream:
            stream.write(text.encode())


class Writer(threading.Thread):
    """Writes the trace every `dump_period` seconds until `ended`; where it cannot, a log tells."""

    def __init__(self, profiler: Profiler) -> None:
        super().__init__(name="profiler", daemon=True)
        self.profiler, self.ended = profiler, threading.Event()
        self.start()

    def run(self) -> None:
        """Write, and wait for the next time."""
        while not self.ended.wait(float(self.profiler.config["dump_period"])):
            try:
                self.profiler.write()
            except GnomonError as error:
                log.warning("%s", error)


PROFILER = Profiler()


def set_config(**kwargs: Any) -> None:
    """Say what to record and where: call it before `set_state('run')`.

    Args:
        filename: the trace that `dump` writes (profile.json).
        profile_all: everything.
        profile_symbolic: programs of executors, kernel by kernel.
        profile_imperative: functions that are pushed to the engine by operators on arrays.
        profile_memory: bytes of memory in use, as a counter.
        profile_api: no meaning here: there is no C interface to record.
        aggregate_stats: whether `dumps` may be asked for tables.
        continuous_dump: write the file every `dump_period` seconds as well (1.0).
        profile_process: 'worker'.

    Raises:
        ParamError: another name, or a value that does not fit.
    """
    given = {OLD.get(name, name): value for name, value in kwargs.items()}
    for name, value in given.items():
        if name not in DEFAULTS:
            expected = f"one of {', '.join(DEFAULTS)}{nearest(name, DEFAULTS)}"
            raise ParamError(complaint("profiler.set_config", name, expected, shown(value)))
        _check(name, value)
    _check_process("set_config", given.get("profile_process", "worker"))
    PROFILER.config.update(given)


def _check(name: str, value: Any) -> None:
    default = DEFAULTS[name]
    if isinstance(default, bool):
        fits = value in (0, 1)
    elif isinstance(default, float):
        fits = isinstance(value, int | float) and value > 0
    else:
        fits = isinstance(value, str)
    if not fits:
        expected = {bool: "True or False", float: "seconds above 0"}.get(type(default), "a string")
        raise ParamError(complaint("profiler.set_config", name, expected, shown(value)))


def _check_process(where: str, process: str) -> None:
    if process != "worker":
        expected = "'worker': this process, there are no servers"
        raise ParamError(complaint(f"profiler.{where}", "profile_process", expected, repr(process)))


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """'run' begins to record, after a pause too, 'stop' ends it.

    Raises:
        ParamError: another word.
    """
    _check_process("set_state", profile_process)
    if state not in STATES:
        expected = f"one of {', '.join(STATES)}"
        raise ParamError(complaint("profiler.set_state", "state", expected, repr(state)))
    if state == "run":
        atexit.unregister(_write_at_exit)
        atexit.register(_write_at_exit)
        PROFILER.start()
    else:
        PROFILER.stop()


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`."""
    _check_process("pause", profile_process)
    PROFILER.paused = True


def resume(profile_process: str = "worker") -> None:
    """Record again."""
    _check_process("resume", profile_process)
    PROFILER.paused = False


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write the trace into the file of `set_config`; with `finished`, recording ends.

    Raises:
        GnomonError: the file cannot be written; what stood there is untouched.
    """
    _check_process("dump", profile_process)
    engine.get().wait_for_all()
    if finished:
        PROFILER.stop()
    PROFILER.write()


def dumps(
    reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False
) -> str:
    """What was recorded, summed up by name: a table, or JSON.

    With `reset` later sums begin here; the trace that `dump` writes keeps what was before.

    Empty, as MXNet's, where `set_config` did not say `aggregate_stats`.

    Raises:
        ParamError: another format or column.
    """
    if not PROFILER.config["aggregate_stats"]:
        return ""
    if format not in ("table", "json"):
        raise ParamError(complaint("profiler.dumps", "format", "'table' or 'json'", repr(format)))
    engine.get().wait_for_all()
    record = PROFILER.record
    found = table.sums(record.events[record.summed :], sort_by, ascending)
    if reset:
        record.sum_anew()
    return table.as_text(found) if format == "table" else table.as_json(found)


def set_kvstore_handle(handle: Any) -> None:
    """Nothing: a store here has no servers of its own to profile."""


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """The old form of `set_config`: `mode` is 'symbolic' or 'all'.

    Raises:
        ParamError: another mode.
    """
    if mode not in ("symbolic", "all"):
        expected = "'symbolic' or 'all'"
        raise ParamError(complaint("profiler_set_config", "mode", expected, repr(mode)))
    set_config(filename=filename, profile_all=mode == "all", profile_imperative=mode == "all")


def profiler_set_state(state: str = "stop") -> None:
    """The old form of `set_state`."""
    set_state(state)


def dump_profile() -> None:
    """The old form of `dump`."""
    dump(True)


def begin() -> None:
    """Record from now on to the end of the process, and write the file then."""
    set_config(profile_all=True, aggregate_stats=True)
    set_state("run")


def _write_at_exit() -> None:
    """Write a profile that was not ended or written."""
    if PROFILER.running:
        dump()


def now() -> float:
    """The time by the clock of profiles."""
    return time.perf_counter()

"""Records of work: the operator (what to run, prepared once) and the job (one push of it)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import ref

from gnomon.base import EngineError, complaint, shown
from gnomon.engine.failure import Failure, Site
from gnomon.engine.gates import open_gates
from gnomon.engine.var import Var
from gnomon.ground.record import inner, put
from gnomon.native.words import Boxed, native, new

if TYPE_CHECKING:
    from _thread import LockType

    from gnomon.context import Context
    from gnomon.runtime.execution.stream import Task

Function = Callable[..., Any]

SYNC: Final = 0  # fn(run_ctx), on a worker
INLINE: Final = 1  # fn(run_ctx), short: on the pushing thread where it is ready at the push
ASYNC: Final = 2  # fn(run_ctx, on_complete), on a worker; done when on_complete is called
WAIT: Final = 3  # no function: a thread sleeps on `gate` until the job's turn comes
BULK: Final = 4  # `fn` is a list: synchronous jobs, one after another on one worker
CLEANUP: Final = 5  # as SYNC, but runs on poisoned variables too, and they stay so

NEW: Final = 0
WAITING: Final = 1  # blocked by others on at least one variable
READY: Final = 2  # holds all its variables: in a work_queue, running, or open until on_complete
DONE: Final = 3
HERE: Final = 4  # holds all its variables, and lies in the backlog of one thread
BEHIND: Final = 5  # in the stream; it may wait for others there (see `behind.py`)

_STATES = ("new", "waiting", "ready", "done", "here", "behind")
PENDING_READERS = attrgetter("pending_readers")

BRIEF: Final = 6  # inline, and so short that it may run under the engine's lock

KINDS: Final = {"sync": SYNC, "async": ASYNC, "inline": INLINE, "brief": BRIEF}


class RunContext:
    """What a function learns when it runs: its device, and the device's stream if it has any."""

    __slots__ = ("ctx", "stream")

    def __init__(self, ctx: Context, stream: object = None) -> None:
        self.ctx = ctx
        self.stream = stream

    def get_stream(self) -> object:
        """The stream that the function's work belongs on; None on the processor."""
        return self.stream


class Repeatable:
    """A function that may be called again where an exception ended it, with the same effect.

    A signal's handler may raise an exception, as Ctrl-C does, while an inline function runs on the
    main thread. The engine then calls a function that has a true attribute `resumable` again, until
    it comes to its end, and raises that exception to the code that pushed it. A function without is
    over with any exception, and what it writes is not computed.
    """

    __slots__ = ("fn",)

    resumable = True

    def __init__(self, fn: Function) -> None:
        self.fn = fn

    def __call__(self, run_ctx: RunContext) -> None:
        self.fn(run_ctx)


class Native(Protocol):
    """A function that is native work, which may run in the stream in the place of being called.

    `is_long`: whether that is worth it. `task` gives that work, None where Python must do some of
    it. `done` is filled when it is on its way, or done: it does nothing then when it is called
    again, by a signal's handler too that came amidst a call.
    """

    resumable: bool
    done: list[Any]

    @property
    def is_long(self) -> bool: ...

    def task(self) -> Task | None: ...

    def __call__(self, run_ctx: RunContext) -> None: ...


@inner
class Operator:
    """A function with its dependency record, built once and pushed many times.

    Made by `engine.new_operator`. `active` counts its pushes that are not finished. A resumable
    function knows how far it is, so each push has one of its own, by `fn.anew()` where it has that.
    """

    __slots__ = (
        "active",
        "anew",
        "brief",
        "const",
        "copy",
        "deleted",
        "fn",
        "gates",
        "kind",
        "mutate",
        "name",
    )

    active: int
    anew: Callable[[], Function] | None
    brief: bool
    const: tuple[Var, ...]
    copy: bool
    deleted: bool
    fn: Any
    gates: list[LockType]  # of those who wait until no push is active
    kind: int
    mutate: tuple[Var, ...]
    name: str

    def __init__(
        self,
        fn: Function,
        kind: int,
        const: tuple[Var, ...],
        mutate: tuple[Var, ...],
        name: str,
        copy: bool,
    ) -> None:
        self.fn = fn
        self.anew = getattr(fn, "anew", None)
        self.kind = INLINE if kind == BRIEF else kind
        self.const = const
        self.mutate = mutate
        self.name = name
        self.copy = bool(copy)
        self.active = 0
        self.deleted = False
        self.brief = kind == BRIEF
        self.gates = []

    def __repr__(self) -> str:
        return f"Operator({self.name})"

    def wake_sleepers(self) -> None:
        """Wake those who wait for the last push that is active, if it was."""
        if not self.active:
            open_gates(self.gates)

    def forget(self) -> None:
        """No push is active: those that were are the parent process's."""
        self.active = 0
        self.gates.clear()


@inner
class Job:
    """One push: what runs, on which variables, who pushed it, and how far it is.

    Made by `make_job`.
    """

    __slots__ = (
        "__weakref__",
        "blockers",
        "const",
        "copy",
        "ctx",
        "failure",
        "fn",
        "gate",
        "interrupt",
        "kind",
        "label",
        "mutate",
        "operator",
        "outer",
        "priority",
        "site",
        "state",
        "task",
    )

    fn: Any
    kind: int
    const: tuple[Var, ...]
    mutate: tuple[Var, ...]
    ctx: Context | None
    priority: Any  # a number
    label: str | None
    copy: bool
    site: Site | None
    state: int
    failure: Failure | None
    interrupt: BaseException | None  # to be raised when the job is settled
    operator: Operator | None
    blockers: int  # how many variables it still queues for; from its admission on
    outer: Job | None  # the job in whose function this one runs on one thread; while it runs
    gate: LockType  # of the thread that sleeps until it is done; only where one may
    task: Task | None  # of the stream; only where it was to go there

    @property
    def name(self) -> str:
        """The name to show: the given one, or the function's."""
        return self.label or name_of(self.fn)

    def __repr__(self) -> str:
        return f"Job({self.name}, {_STATES[self.state]})"

    def fail(self, failure: Failure) -> None:
        """Mark all that this job writes as not computed: what is there may be anything."""
        self.failure = failure
        for var in self.mutate:
            put(var, "failure", failure)

    def poison(self, failure: Failure) -> None:
        """Mark all that this job, which is left out, was to write; what has a value keeps it."""
        kept = [
            ref(var)
            for var in self.mutate
            if (var.has_value() if var.failure is None else ref(var) in var.failure.kept)
        ]
        self.fail(failure)
        failure.kept.update(kept)

    def heal(self) -> None:
        """Mark all that this job wrote as computed."""
        for var in self.mutate:
            put(var, "failure", None)

    def raise_interrupt(self) -> None:
        """Raise what a signal's handler raised while the function ran: it is the program's."""
        if self.failure is not None:
            self.failure.raise_interrupt()
        if self.interrupt is not None:
            raise self.interrupt

    def open_gate(self) -> None:
        """Done: wake the thread that waits for this job."""
        self.state = DONE
        if self.gate.locked():
            self.gate.release()

    def inherited(self) -> Failure | None:
        """The failure that keeps this job from running: of what it reads, or writes unreported."""
        if self.kind == CLEANUP or self.state == DONE:
            return None
        for var in self.const:
            if var.failure is not None:
                return var.failure
        for var in self.mutate:
            if var.failure is not None and not var.failure.reported:
                return var.failure
        return None


@native
def make_job(
    fn: Any,
    kind: Boxed,
    const: tuple[Var, ...],
    mutate: tuple[Var, ...],
    ctx: Context | None = None,
    priority: Any = 0,
    label: Any = None,
    copy: bool = False,
    site: Site | None = None,
) -> Job:
    """A new job. A class that is called takes half as long again, and each push makes one."""
    job = new(Job)
    job.fn = fn
    job.kind = kind
    job.const = const
    job.mutate = mutate
    job.ctx = ctx
    job.priority = priority
    job.label = label
    job.copy = copy
    job.site = site
    job.state = NEW
    job.failure = None
    job.interrupt = None
    job.operator = None
    return job


def is_native(fn: object) -> bool:
    """Whether a function is `Native`, or as good."""
    return bool(getattr(fn, "resumable", False)) and hasattr(fn, "done")


def name_of(fn: Function | None) -> str:
    """A function's own name, or how it prints."""
    return "nothing" if fn is None else getattr(fn, "__qualname__", None) or repr(fn)


def check_variables(
    where: str, const: Sequence[Var], mutate: Sequence[Var]
) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Both lists as tuples, once they are known to be variables, live and each named once.

    Pending readers of what is to be written are pushed first.

    Raises:
        EngineError: a variable is listed twice, or both read and written, or deleted, or none.
    """
    had_readers = False
    try:
        if type(const) is not tuple:
            const = tuple(const)
        if type(mutate) is not tuple:
            mutate = tuple(mutate)
        for var in const:
            if var.deleted:
                raise EngineError(f"{where}: {var!r} was deleted")
        for var in mutate:
            if var.deleted:
                raise EngineError(f"{where}: {var!r} was deleted")
            if var.pending_readers:
                had_readers = True
        count = len(const) + len(mutate)
        if count == 2:  # the most frequent, for a fifth of the price
            one, other = const + mutate
            twice = one is other
        else:
            twice = count > 2 and len({*const, *mutate}) != count
        if twice:
            raise EngineError(_twice(where, const, mutate))
    except (TypeError, AttributeError):
        argument, given = ("mutate_vars", mutate) if _are(const) else ("const_vars", const)
        raise EngineError(complaint(where, argument, "a list of variables", shown(given))) from None
    if had_readers:
        for var in mutate:
            var.push_pending_readers()
    return const, mutate


def _are(given: object) -> bool:
    """Whether what was given are variables."""
    return type(given) is tuple and all(isinstance(var, Var) for var in given)


def _twice(where: str, const: tuple[Var, ...], mutate: tuple[Var, ...]) -> str:
    """The complaint about a variable that stands in the lists more than once."""
    for var in mutate:
        if var in const:
            expected = "each variable either read or written"
            return complaint(where, "mutate_vars", expected, f"{var!r} in both lists")
    argument, listed = (
        ("const_vars", const) if len(set(const)) < len(const) else ("mutate_vars", mutate)
    )
    var = next(v for v in listed if listed.count(v) > 1)
    return complaint(where, argument, "each variable once", f"{var!r} twice")

"""The engine's face: variables, operators and pushes, the same for every kind of engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real

from gnomon.base import EngineError, complaint, shown
from gnomon.context import Context
from gnomon.engine.execution import Observer
from gnomon.engine.failure import push_site
from gnomon.engine.job import (
    ASYNC,
    CLEANUP,
    INLINE,
    KINDS,
    PENDING_READERS,
    SYNC,
    Function,
    Job,
    Operator,
    RunContext,
    check_variables,
    make_job,
    name_of,
)
from gnomon.engine.lifecycle import Lifecycle
from gnomon.engine.var import Var
from gnomon.ground.record import put

Vars = Sequence[Var]


class Engine(Lifecycle):
    """Runs functions in the order that their declared reads and writes demand.

    Two functions that write a common variable run in push order; a reader sees every write pushed
    before it and none pushed after; everything else may run at the same time. `ctx` says which
    device's workers run the function; `copy=True` gives it to the workers that only copy.
    Priorities order what is ready: higher first.

    A function that raises poisons the variables it writes. What reads a poisoned variable does not
    run and poisons what it writes in turn; the wait for any of them raises an EngineError whose
    cause is the function's exception. Once that was raised, a function that only writes the
    variable runs again and heals it, and an array that only functions were to change that did not
    run is what it was.
    """

    # --- variables ------------------------------------------------------------------------------

    def new_variable(self, name: str | None = None) -> Var:
        """A tag for any resource; `name` shows in reports."""
        return Var(name)

    new_var = new_variable

    def delete_variable(self, var: Var) -> None:
        """Refuse `var` from now on; what was pushed with it still runs."""
        check_variables("delete_variable", (), (var,))
        self._flush()
        put(var, "deleted", True)

    def push_delete(
        self, fn: Callable[[RunContext], object], ctx: Context | None, var: Var
    ) -> None:
        """Run `fn(run_ctx)` when `var` is not in use any more; refuse the variable from now on.

        It runs even where the variable is poisoned: resources must be freed.
        """
        check_variables("push_delete", (), (var,))
        if not callable(fn):
            raise _no_function("push_delete", fn)
        _check_place("push_delete", ctx, 0)
        self._push(make_job(fn, CLEANUP, (), (var,), ctx, site=push_site()))
        put(var, "deleted", True)

    # --- pushes ---------------------------------------------------------------------------------

    def push_sync(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None = None,
        const_vars: Vars = (),
        mutate_vars: Vars = (),
        priority: int = 0,
        name: str | None = None,
        copy: bool = False,
    ) -> None:
        """Have `fn(run_ctx)` run on a worker; returns at once.

        >>> from gnomon import engine
        >>> e = engine.get()
        >>> box, told = e.new_variable(), []
        >>> e.push_sync(lambda run_ctx: told.append("written"), mutate_vars=[box])
        >>> e.wait_for_var(box)
        >>> told
        ['written']

        Raises:
            EngineError: a variable is listed twice, or both read and written, or was deleted.
        """
        const, mutate = check_variables("push_sync", const_vars, mutate_vars)
        if not callable(fn):
            raise _no_function("push_sync", fn)
        if ctx is not None or priority:
            _check_place("push_sync", ctx, priority)
        self._push(make_job(fn, SYNC, const, mutate, ctx, priority, name, bool(copy), push_site()))

    def push_async(
        self,
        fn: Callable[[RunContext, Callable[..., None]], object],
        ctx: Context | None = None,
        const_vars: Vars = (),
        mutate_vars: Vars = (),
        priority: int = 0,
        name: str | None = None,
        copy: bool = False,
    ) -> None:
        """Have `fn(run_ctx, on_complete)` begun on a worker; it is done when `on_complete()` is.

        `on_complete` may be called from any thread, once; `on_complete(error)` says that it failed.

        Raises:
            EngineError: a variable is listed twice, or both read and written, or was deleted.
        """
        const, mutate = check_variables("push_async", const_vars, mutate_vars)
        if not callable(fn):
            raise _no_function("push_async", fn)
        if ctx is not None or priority:
            _check_place("push_async", ctx, priority)
        self._push(make_job(fn, ASYNC, const, mutate, ctx, priority, name, bool(copy), push_site()))

    def push_inline(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None = None,
        const_vars: Vars = (),
        mutate_vars: Vars = (),
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        """Run `fn(run_ctx)` here if it is ready now, else on whatever thread makes it ready.

        For gnomon's own short kernels, which neither block nor call back into user code.

        Raises:
            EngineError: a variable is listed twice, or both read and written, or was deleted.
        """
        const, mutate = check_variables("push_inline", const_vars, mutate_vars)
        self._push_inline(make_job(fn, INLINE, const, mutate, ctx, priority, name))

    def push_operator(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None,
        const_vars: Vars,
        mutate_vars: Vars,
        name: str,
    ) -> None:
        """As `push_sync`, for an operator of gnomon's in Python.

        Where pending operators hold much memory, it waits for them; so does a fork.
        """
        const, mutate = check_variables("push_operator", const_vars, mutate_vars)
        job = make_job(fn, SYNC, const, mutate, ctx, 0, name, False, push_site())
        self._count(job)
        self._push(job)

    def push_brief(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None,
        const: tuple[Var, ...],
        mutate: tuple[Var, ...],
        name: str | None = None,
    ) -> None:
        """As `push_inline`, for live variables each listed once and a kernel fit for `run_brief`,
        which it runs by where no job is in its way.
        """
        for var in mutate:
            if var.pending_readers:
                var.push_pending_readers()
        if not self.run_brief(fn, const, mutate, ctx, name):
            self._push_inline(make_job(fn, INLINE, const, mutate, ctx, 0, name))

    def push_checked(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None,
        const: tuple[Var, ...],
        mutate: tuple[Var, ...],
        name: str | None = None,
    ) -> None:
        """As `push_inline`, for live variables each listed once; pending readers stay pending.

        For a pending reader that pushes itself by this.
        """
        self._push_inline(make_job(fn, INLINE, const, mutate, ctx, 0, name))

    def push_later(
        self,
        fn: Callable[[RunContext], object],
        ctx: Context | None = None,
        const_vars: Vars = (),
        mutate_vars: Vars = (),
        name: str | None = None,
    ) -> Job:
        """As `push_inline`, but held back until anybody next asks this engine for anything.

        Only the timing shows it. Until then the code that pushed it may have it joined with what
        comes right after, by `hold_instead`. For live variables, each listed once.
        """
        if any(map(PENDING_READERS, mutate_vars)):
            for var in mutate_vars:
                var.push_pending_readers()
        job = make_job(fn, INLINE, tuple(const_vars), tuple(mutate_vars), ctx, 0, name)
        self._flush()
        self._hold_back(job)
        return job

    def is_held_back(self, job: Job) -> bool:
        """Whether `job` of `push_later` is, and what it writes has got no pending readers since."""
        if self._late is not job or self._lock._is_owned():  # it may be entered just now
            return False
        return not any(map(PENDING_READERS, job.mutate))

    def hold_instead(
        self, job: Job, fn: Function, const: tuple[Var, ...], mutate: tuple[Var, ...], name: str
    ) -> Job | None:
        """Hold `fn`, which does the work of `job` of `push_later` too, back in its place.

        None where that is not held back any more. At no time is neither of them: what a signal's
        handler asks for is computed first. What comes next is `push_held`.
        """
        if any(map(PENDING_READERS, mutate)):
            for var in mutate:
                var.push_pending_readers()
        held = make_job(fn, INLINE, const, mutate, job.ctx, 0, name)
        with self._lock:  # nothing is called in this block, so no handler comes amid it
            if self._late is not job:
                return None
            self._late = held
        return held

    def push_held(self, job: Job, brief: bool) -> None:
        """Push what is held back, if it still is, as by `push_brief` where it is `brief`."""
        ran = brief and self.run_brief(job.fn, job.const, job.mutate, job.ctx, job.label, job)
        if not ran and not self._goes_behind(job, True):
            self._flush()

    # --- operators ------------------------------------------------------------------------------

    def new_operator(
        self,
        fn: Function,
        const_vars: Vars = (),
        mutate_vars: Vars = (),
        name: str | None = None,
        kind: str = "async",
        copy: bool = False,
    ) -> Operator:
        """A function with its variables, checked once, to be pushed many times.

        `kind` says how it is called: 'async' `fn(run_ctx, on_complete)`, 'sync' `fn(run_ctx)` on a
        worker, 'inline' `fn(run_ctx)` as by `push_inline`, 'brief' an inline kernel of a few
        microseconds, which may run under the engine's lock as by `run_brief`.

        Raises:
            EngineError: no such kind; a variable is listed twice, or both read and written, or was
                deleted.
        """
        const, mutate = check_variables("new_operator", const_vars, mutate_vars)
        if not callable(fn):
            raise _no_function("new_operator", fn)
        if kind not in KINDS:
            expected = "one of " + ", ".join(KINDS)
            raise EngineError(complaint("new_operator", "kind", expected, repr(kind)))
        return Operator(fn, KINDS[kind], const, mutate, name or name_of(fn), copy)

    def push(self, operator: Operator, ctx: Context | None = None, priority: int = 0) -> None:
        """Push a prepared operator; as often as wanted, before the last push is done too.

        Raises:
            EngineError: the operator, or one of its variables, was deleted; no operator.
        """
        try:
            deleted, const, mutate = operator.deleted, operator.const, operator.mutate
        except AttributeError:
            got = shown(operator)
            raise EngineError(complaint("push", "operator", "one of new_operator", got)) from None
        if deleted:
            raise EngineError(f"push: operator {operator.name!r} was deleted")
        if ctx is not None or priority:
            _check_place("push", ctx, priority)
        for var in const:
            if var.deleted:
                raise _deleted(var, operator)
        for var in mutate:
            if var.deleted:
                raise _deleted(var, operator)
            if var.pending_readers:
                var.push_pending_readers()
        fn = operator.fn if operator.anew is None else operator.anew()
        if operator.brief and self.run_brief(fn, const, mutate, ctx, operator.name):
            return
        job = make_job(fn, operator.kind, const, mutate, ctx, priority, operator.name)
        job.copy = operator.copy
        job.operator = operator
        if operator.kind == INLINE:
            self._push_inline(job)
        else:
            job.site = push_site()
            self._push(job)

    # --- scopes and settings --------------------------------------------------------------------

    def set_bulk_size(self, size: int) -> int:
        """Join up to `size` of this thread's synchronous pushes to one; returns the size before.

        What is joined is handed over when `size` is reached, at any other call of this engine by
        any thread, and at the end of the scope: only the timing shows it.
        """
        if not isinstance(size, int) or size < 0:
            expected = "an integer of at least 0"
            raise EngineError(complaint("set_bulk_size", "size", expected, repr(size)))
        state = self._state()
        before, state.bulk_size = state.bulk_size, size
        self._flush()
        return before

    @contextmanager
    def bulk(self, size: int) -> Iterator[None]:
        """A scope in which up to `size` of this thread's synchronous pushes become one."""
        before = self.set_bulk_size(size)
        try:
            yield
        finally:
            self.set_bulk_size(before)

    def observe(self, observer: Observer | None) -> None:
        """Have `observer(name, ctx, begin, end)` told of each function, in `perf_counter` seconds.

        It runs on the function's thread; None ends it.
        """
        self._observer = observer

    @abstractmethod
    def stop(self) -> None:
        """Wait until nothing is pending and end the engine's threads; a push starts new ones."""

    # --- what a kind of engine does -------------------------------------------------------------

    @abstractmethod
    def _push_inline(self, job: Job) -> None:
        """Take in a short kernel."""

    def _count(self, job: Job) -> None:
        """Count a job among the operators that are pending; here none ever is."""

    def _goes_behind(self, job: Job, late: bool = False) -> bool:
        """Have a short kernel run behind the program, if it is native and long; here none does."""
        return False

    def _hold_back(self, job: Job) -> None:
        """Take in a short kernel that may wait for the next entry; here none does."""
        self._push_inline(job)


def _check_place(where: str, ctx: object, priority: object) -> None:
    """Raise unless there can be a worker and a place in its queue: a later error would be lost."""
    if ctx is not None and not isinstance(ctx, Context):
        raise EngineError(complaint(where, "ctx", "a Context or None", repr(ctx)))
    if not isinstance(priority, (int, Real)):
        raise EngineError(complaint(where, "priority", "a number", repr(priority)))


def _no_function(where: str, fn: object) -> EngineError:
    """The complaint about what cannot be called."""
    return EngineError(complaint(where, "fn", "a function", repr(fn)))


def _deleted(var: Var, operator: Operator) -> EngineError:
    """The complaint about a prepared operator one of whose variables is gone."""
    return EngineError(f"push: {var!r} of operator {operator.name!r} was deleted")

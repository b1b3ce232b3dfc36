"""What waits on what, in words: for a thread that waits so long that something must be wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from operator import attrgetter

from gnomon.engine.failure import describe_site
from gnomon.engine.job import ASYNC, WAITING, Job
from gnomon.engine.var import Var

_CONST, _MUTATE = attrgetter("const"), attrgetter("mutate")
_SHOWN = 20


def neighbourhood(roots: Collection[Job]) -> Iterator[tuple[Var, list[Job]]]:
    """Each variable of `roots` and of what shares variables with them, and so on; its users.

    A variable is looked at once, by loops in C: a million jobs may queue for it. The job that gets
    it may change it.
    """
    seen = set[Var]()
    fresh = _variables(roots)
    while fresh:
        var = fresh.pop()
        seen.add(var)
        users = var.users()
        fresh |= _variables(users) - seen
        yield var, users


def _variables(jobs: Collection[Job]) -> set[Var]:
    """All that some jobs read or write."""
    return set(chain.from_iterable(chain(map(_CONST, jobs), map(_MUTATE, jobs))))


def reachable(roots: Collection[Job]) -> set[Job]:
    """The jobs that share variables with `roots`, directly or through others."""
    return set(roots).union(*(users for _, users in neighbourhood(roots)))


def awaited(job: Job) -> set[Job]:
    """The jobs that must be done before one that waits can run, directly or through others."""
    found, fresh, seen = set[Job](), [job], set[Var]()
    before: dict[Job, list[Job]] = {}
    while fresh:
        one = fresh.pop()
        for var in {*one.const, *one.mutate} - seen:
            seen.add(var)
            for each, holders in _holders_before(var):
                before.setdefault(each, []).extend(holders)
        fresh += set(before.get(one, ())) - found
        found.update(before.get(one, ()))
    return found


def _holders_before(var: Var) -> Iterator[tuple[Job, list[Job]]]:
    """Each job that queues for a variable, with those that hold it right before."""
    readers, writers = list(var.readers), [] if var.writer is None else [var.writer]
    for entry in var.queue or ():
        if isinstance(entry, tuple):
            yield entry[0], writers
            readers.append(entry[0])
        else:
            yield entry, readers or writers
            readers, writers = [], [entry]


def describe(jobs: Iterable[Job], pending: int) -> str:
    """One paragraph per unfinished job: what it is, what it waits for, where it was pushed."""
    listed = sorted(jobs, key=lambda job: job.state == WAITING)
    lines = [_describe(job) for job in listed[:_SHOWN]]
    if pending > len(lines):
        lines.append(f"... and {pending - len(lines)} more")
    return "\n".join(lines)


def _describe(job: Job) -> str:
    """One unfinished job."""
    if job.state == WAITING:
        awaited = [v for v in (*job.const, *job.mutate) if v.awaited_by(job)]
        how = "waits for " + "; ".join(_holders(v) for v in awaited)
    elif job.kind == ASYNC:
        how = "has begun, and its on_complete was not called"
    else:
        how = "is ready or runs"
    return f"{job.name!r} {how}\n  {describe_site(job.site)}"


def _holders(var: Var) -> str:
    """A variable and who holds it."""
    names = sorted({repr(j.name) for j in ({var.writer} if var.writer else var.readers)})
    how = "written" if var.writer else "read"
    return f"{var!r}, {how} by {', '.join(names)}"

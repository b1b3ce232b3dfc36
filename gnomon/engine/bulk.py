"""Bulk: synchronous pushes of one thread that are handed over as one job."""

from __future__ import annotations

from gnomon.engine.job import BULK, SYNC, Job, make_job
from gnomon.engine.thread import ThreadState


class Bulk:
    """What one thread has pushed in a bulk scope and the engine has not seen yet."""

    __slots__ = ("jobs", "owner")

    def __init__(self, owner: ThreadState, first: Job) -> None:
        self.owner = owner
        self.jobs = [first]

    def accepts(self, job: Job, state: ThreadState) -> bool:
        """Whether `job`, pushed by `state`'s thread, may run right after the others."""
        first = self.jobs[0]
        return state is self.owner and is_plain(job) and first.ctx == job.ctx

    @property
    def full(self) -> bool:
        """Whether the scope's size is reached."""
        return len(self.jobs) >= self.owner.bulk_size

    def joined(self) -> Job:
        """One job that runs all of them in order; each has its own failures and variables."""
        mutate = dict.fromkeys(var for job in self.jobs for var in job.mutate)
        const = dict.fromkeys(v for job in self.jobs for v in job.const if v not in mutate)
        first = self.jobs[0]
        label = f"{len(self.jobs)} functions from {first.name}"
        joined = make_job(self.jobs, BULK, tuple(const), tuple(mutate), first.ctx, label=label)
        joined.site = first.site
        joined.priority = max(job.priority for job in self.jobs)
        return joined


def is_plain(job: Job) -> bool:
    """Whether a job may be joined with others at all."""
    return job.kind == SYNC and job.operator is None and not job.copy

"""Dead-code elimination: tasks whose results are not read are removed, with what only they read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gnomon.graph.node import Entry
from gnomon.graph.tasks.task import Task


def alive(tasks: Sequence[Task], kept: Collection[Entry]) -> list[Task]:
    """Those of `tasks`, in their order, that lead to an entry of `kept` or run on data.

    An expression says what it reads better than its node does: zeros like a value read nothing.
    """
    read = set(kept)
    found = []
    for task in reversed(tasks):
        if not task.is_expression or not read.isdisjoint(task.made):
            found.append(task)
            read.update(task.reads)
    return found[::-1]

"""Where a pass is cut, so that gradients may be sent while the rest of it is computed.

State: `sending.nbytes`, set by who sends gradients: passes made from then on end a segment wherever
so many bytes of gradients are there. None: a pass is one native program, as short as can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gnomon.executor.programs.layout import Layout, size_of
from gnomon.graph.tasks.task import Task


class Sending:
    """After how many bytes of gradients a pass is cut; None where nothing is sent."""

    nbytes: int | None = None


sending = Sending()


def cut(layout: Layout, tasks: Sequence[Task]) -> list[Sequence[Task]]:
    """Neighbouring tasks in parts, each of which ends when enough gradients are there.

    Branches that run side by side stay together.
    """
    if sending.nbytes is None:
        return [tasks]
    behind, branches = set(layout.tasks[layout.forward :]), layout.branch_of
    sizes = [_stored(layout, task) if task in behind else 0 for task in tasks]
    found, start, ready, left = list[Sequence[Task]](), 0, 0, sum(sizes)
    for end, (task, after) in enumerate(pairwise(tasks), 1):
        ready, left = ready + sizes[end - 1], left - sizes[end - 1]
        if ready >= sending.nbytes and left and not (task in branches and after in branches):
            found.append(tasks[start:end])
            start, ready = end, 0
    return [*found, tasks[start:]]


def _stored(layout: Layout, task: Task) -> int:
    """The bytes that a task stores in the caller's arrays."""
    stores = [layout.stores[e].dest for e in task.made if e in layout.stores]
    homes = [layout.buffers[e] for e in task.made if e in layout.homes and e not in layout.stores]
    return sum(map(size_of, (*stores, *homes)))

"""Regions: neighbouring tasks that fall into branches, done side by side, a branch a thread.

A step that is too small for two threads leaves one idle, and a larger one costs a meeting of both.
Branches that need nothing of each other (of an Inception module, the heads of a detector, the
gradients of a layer's weight and of its data) meet once, at their end. Within a region each task
runs on one thread, in the parts that it is cut into anyway: the same numbers to the last bit.

A region is taken where the estimate says that it saves more than `LEAST`. Its values live from its
beginning to its end, since it is not known which branch is how far; where the memory plan would
grow by too much, the regions with the most bytes go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from gnomon.graph.node import Entry
from gnomon.graph.tasks.cost_model import Cost
from gnomon.graph.tasks.memory import Branch
from gnomon.graph.tasks.task import Life, Task

LONGEST = 16  # tasks of a region
MEETING = 130_000  # work (see `division.GRAIN`) that a step on several threads costs beside its own
BEGIN = 60_000  # and a region
FEW = 16  # regions that are tried one less at a time
SHARED = 2_500_000  # of a step on several threads from which it is better off with all of them
LEAST = 100_000
GROWTH = 0.03  # of a memory plan
ROOM = 2 << 20  # bytes by which one that is no larger may grow

Estimate = Callable[[Task], Cost | None]


class Region(NamedTuple):
    """Tasks from number `begin` on, as chains: each the numbers of some, in order."""

    begin: int
    end: int
    chains: tuple[tuple[int, ...], ...]


def regions(tasks: Sequence[Task], estimate: Estimate, threads: int) -> list[Region]:
    """The regions among `tasks` that save most, none in another."""
    if threads < 2:
        return []
    return _Search(tasks, estimate, threads).best()


class _Search:
    """Goes through the tasks from the last to the first: what the rest saves is known then."""

    def __init__(self, tasks: Sequence[Task], estimate: Estimate, threads: int) -> None:
        self.costs = [self._fit(estimate(t)) if t.is_expression else None for t in tasks]
        self.threads = threads
        makers = {entry: k for k, task in enumerate(tasks) for entry in task.made}
        self.before = [sorted({makers[e] for e in t.reads if e in makers}) for t in tasks]
        self.latest = [each[-1] if each else -1 for each in self.before]

    @staticmethod
    def _fit(cost: Cost | None) -> Cost | None:
        """The cost of a task that may be part of a region."""
        large = cost is not None and cost.parts > 1 and cost.work > SHARED
        return None if large else cost

    def best(self) -> list[Region]:
        """The regions, in order."""
        count, ends = len(self.costs), self._most()
        saved, chosen = [0] * (count + 1), [Region(k, k + 1, ()) for k in range(count)]
        for begin in reversed(range(count)):
            saved[begin] = saved[begin + 1]
            if ends[min(begin + LONGEST, count)] - ends[begin] - BEGIN < LEAST:
                continue  # with its share of the work alone a thread takes too long
            if min(self.latest[begin + 1 : begin + LONGEST], default=begin) >= begin:
                continue  # all that follows needs this one
            for region, gain in self._from(begin):
                if gain + saved[region.end] > saved[begin]:
                    saved[begin], chosen[begin] = gain + saved[region.end], region
        found, at = [], 0
        while at < count:
            if chosen[at].chains:
                found.append(chosen[at])
            at = chosen[at].end
        return found

    def _most(self) -> list[int]:
        """What may be saved of all tasks before each, at most: some thread has its share."""
        each = (0 if c is None else self._alone(c) - self._share(c.work) for c in self.costs)
        return list(accumulate(each, initial=0))

    @staticmethod
    def _alone(cost: Cost) -> int:
        """What a task takes where nothing runs beside it."""
        return cost.work if cost.parts < 2 else cost.work // cost.parts + MEETING

    def _share(self, work: int) -> int:
        """What the busiest thread has of some work, at least."""
        return work // self.threads

    def _from(self, begin: int) -> list[tuple[Region, int]]:
        """The regions that begin at one task, and what they save."""
        found: list[tuple[Region, int]] = []
        branch_of: dict[int, Chain] = {}
        alone = most = work = 0
        for number in range(begin, min(begin + LONGEST, len(self.costs))):
            cost = self.costs[number]
            if cost is None:
                break
            alone, work = alone + self._alone(cost), work + cost.work
            branch = Chain(cost.work, [number])
            before = {id(b): b for k in self.before[number] if (b := branch_of.get(k))}
            for other in before.values():
                branch = Chain(branch.work + other.work, other.tasks + branch.tasks)
            branch_of.update(dict.fromkeys(branch.tasks, branch))
            if alone - self._share(work) - BEGIN < max(LEAST, most + 1):
                continue  # however the branches are shared out
            branches = {id(b): b for b in branch_of.values()}
            if len(branches) < 2:
                continue
            chains = _shared_out(branches.values(), self.threads)
            gain = alone - max(c.work for c in chains) - BEGIN
            if gain >= max(LEAST, most + 1):
                most = gain
                order = tuple(tuple(sorted(c.tasks)) for c in chains if c.tasks)
                found.append((Region(begin, number + 1, order), gain))
        return found


class Chain(NamedTuple):
    """Tasks by their numbers, and their work."""

    work: int
    tasks: list[int]


def _shared_out(branches: Iterable[Chain], threads: int) -> list[Chain]:
    """Branches for each thread: the largest first, each to who has least to do."""
    chains = [Chain(0, [])] * threads
    for branch in sorted(branches, key=lambda b: -b.work):
        least = min(range(threads), key=lambda k: chains[k].work)
        given = chains[least]
        chains[least] = Chain(given.work + branch.work, given.tasks + branch.tasks)
    return chains


class Lasting(NamedTuple):
    """How long the memory plan keeps a value, and the branch in which the steps' order counts."""

    born: int
    dies: int
    branch: Branch | None


def lasting(
    tasks: Sequence[Task], life: Life, found: Sequence[Region]
) -> Callable[[Entry], Lasting]:
    """What the memory plan is told of values: those of a region live as long as the region."""
    begin, end = list(range(len(tasks))), list(range(len(tasks) + 1))
    branch_of = {k: c for c, chain in enumerate(c for r in found for c in r.chains) for k in chain}
    region_of = {k: number for number, r in enumerate(found) for c in r.chains for k in c}
    for region in found:
        for k in range(region.begin, region.end):
            begin[k], end[k] = region.begin, region.end - 1
    users: dict[Entry, dict[int, set[int]]] = {}  # for each region, the branches that use it
    for k, region_number in region_of.items():
        for entry in (*tasks[k].made, *tasks[k].reads):
            users.setdefault(entry, {}).setdefault(region_number, set()).add(branch_of[k])

    def told(entry: Entry) -> Lasting:
        born, dies = life.born[entry], life.dies[entry]
        alone = (c for c in users.get(entry, {}).values() if len(c) == 1)
        branch = next((Branch(min(c), born, dies) for c in alone), None)
        return Lasting(begin[born], end[dies], branch)

    return told


def too_large(total: int, without: int) -> bool:
    """Whether a memory plan of regions takes too many bytes beside one `without`."""
    return total - without > max(GROWTH * without, min(ROOM, without))


def lighter(
    tasks: Sequence[Task], found: Sequence[Region], sizes: Mapping[Entry, int]
) -> list[Region]:
    """`found` without the one whose values have the most bytes; of many, half of them."""

    def nbytes(region: Region) -> int:
        made = (e for t in tasks[region.begin : region.end] for e in t.made)
        return sum(sizes.get(e, 0) for e in made)

    count = len(found) - 1 if len(found) <= FEW else len(found) // 2
    return sorted(sorted(found, key=nbytes)[:count])  # by where they begin


def show_regions(found: Sequence[Region], names: Mapping[int, str]) -> str:
    """A line for each region: its branches."""
    return "\n".join(" | ".join(", ".join(names[k] for k in c) for c in r.chains) for r in found)

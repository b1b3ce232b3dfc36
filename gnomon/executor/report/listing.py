"""What an executor tells of itself: its memory plan, and the listing of `debug_str`."""

from __future__ import annotations

from typing import NamedTuple

from gnomon.executor.programs.layout import Layout, size_of
from gnomon.graph import show
from gnomon.graph.node import Entry, Graph
from gnomon.ground.record import record

WIDTH = 60


class Life(NamedTuple):
    """A value: where it lives (`offset` -1: memory of its own), and from which task to which."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    offset: int
    born: int
    dies: int


@record(slots=False)
class MemoryPlan:
    """The lives of all values of a program; `total` bytes are allocated for those between tasks,
    `kept` for those that stay from run to run."""

    lives: list[Life]
    total: int
    tasks: list[str]
    kept: int = 0

    @property
    def unshared(self) -> int:
        """The bytes that would be needed if no value shared memory with another."""
        return sum(life.nbytes for life in self.lives if life.offset >= 0)

    def __str__(self) -> str:
        head = f"{self.total} bytes for {self.unshared} of values, {len(self.tasks)} tasks"
        head += f", {self.kept} kept" if self.kept else ""
        return "\n".join([head, *(self._row(life) for life in self.lives)])

    def _row(self, life: Life) -> str:
        where = "own" if life.offset < 0 else f"@{life.offset}"
        shape = "x".join(map(str, life.shape))
        text = f"{life.name:32.32} {shape:>16} {life.nbytes:>12} {where:>12} "
        return text + self._bar(life)

    def _bar(self, life: Life) -> str:
        """The life as a bar on the line of all tasks."""
        scale = min(1.0, WIDTH / max(len(self.tasks), 1))
        begin, end = int(life.born * scale), int(life.dies * scale)
        return " " * begin + "#" * (end - begin + 1)


def memory_plan(layout: Layout) -> MemoryPlan:
    """The memory plan of a layout, its values in the order they are made."""
    born: dict[Entry, int] = {}
    dies: dict[Entry, int] = {}
    for number, task in enumerate(layout.tasks):
        for entry in task.made:
            born[entry] = number
        for entry in (*task.made, *task.reads):
            dies[layout.aliases.get(entry, entry)] = number
    lives = [_life(layout, e, at, dies[e]) for e, at in born.items() if e not in layout.aliases]
    end = len(layout.tasks) - 1
    kept = [_life(layout, e, 0, end) for e in layout.kept]
    held = sum(life.nbytes for life in kept)
    return MemoryPlan([*kept, *lives], layout.plan.total, [t.name for t in layout.tasks], held)


def _life(layout: Layout, entry: Entry, born: int, dies: int) -> Life:
    delivery = layout.stores.get(entry)
    buffer = layout.buffers[entry] if delivery is None else delivery.dest
    place = layout.plan.places.get(entry)
    offset = -1 if place is None else layout.plan.offset(place)
    return Life(repr(entry), buffer.shape, buffer.dtype.name, size_of(buffer), offset, born, dies)


def debug_str(graph: Graph, layout: Layout) -> str:
    """The listing of a graph and what its program allocates, in the form of MXNet's."""
    total = layout.plan.total + sum(size_of(layout.buffers[e]) for e in layout.kept)
    lines = (f"Total {total >> 20} MB allocated", "Total 0 TempSpace resource requested")
    return show.listing(graph) + "\n".join(lines) + f"\n{total} bytes between operators\n"

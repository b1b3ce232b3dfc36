"""What the lockstep interpreter finds in grid programs that were spoilt on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.base import DeviceError
from gnomon.code.races import Actors, Race, Watch
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.plan.gpu import grid
from gnomon.plan.gpu.grid import Barrier, Body, Fetch, Grid, Loop, Share, Shuffle, When, Wide
from gnomon.plan.gpu.sorting import Sorted
from gnomon.plan.ir import Put
from gnomon.plan.statement import Store
from tests.code.gpu import run_group
from tests.plan.test_expressions import over

X = np.random.default_rng(0).normal(size=(5, 300)).astype(np.float32)
TEAM = (32, 2)  # a block of two groups of a warp


def bodies(body: Body) -> Iterator[Body]:
    """A body, and those inside of it."""
    yield body
    for stmt in body:
        if isinstance(stmt, Loop | When | Wide):
            yield from bodies(stmt.body)


def everything(program: Grid) -> list[Body]:
    """All bodies of a program."""
    return [body for entry in program.entries for body in bodies(entry.body)]


def dropping(kind: type, keep: int = 0) -> Callable[[Grid], None]:
    """What takes the statements of a kind out of a program, but for the first `keep` of a body."""

    def change(program: Grid) -> None:
        for body in everything(program):
            found = [s for s in body if isinstance(s, kind)]
            for stmt in found[keep:]:
                del body[next(k for k, s in enumerate(body) if s is stmt)]

    return change


def row_sum(change: Callable[[Grid], None], team: tuple[int, int] = TEAM) -> np.ndarray:
    """The sums of rows by a spoilt program."""
    e = ext.reduce(over(X), "sum", (1,))
    return stored(e, change, team)


def stored(e: Expr, change: Callable[[Grid], None], team: tuple[int, int]) -> np.ndarray:
    dest = np.zeros(e.shape, e.dtype.numpy)
    run_group([Store(over(dest), "saveto", e)], team, 2, change)
    return dest


def test_what_is_not_spoilt_runs():
    np.testing.assert_allclose(row_sum(lambda program: None, (64, 1)), X.sum(1), rtol=1e-4)


def test_a_missing_barrier_is_a_race():
    """Without the second one a warp reads what another has not written; or has, by chance."""
    with pytest.raises(Race, match=r"of shared memory is read by thread \d+ .* was written"):
        row_sum(dropping(Barrier, keep=1), (64, 1))


def test_a_missing_first_barrier_is_a_race_between_items():
    """Without the first one a warp writes for its next row what others still read."""

    def change(program: Grid) -> None:
        for body in everything(program):
            first = next((k for k, s in enumerate(body) if isinstance(s, Barrier)), None)
            if first is not None:
                del body[first]

    with pytest.raises(Race, match=r"of shared memory is written .* was read"):
        row_sum(change, (64, 1))


def test_a_group_of_which_all_store_races():
    """Of different warps, that is: the threads of one may write the same value."""

    def change(program: Grid) -> None:
        for body in everything(program):
            for k, stmt in enumerate(body):
                if isinstance(stmt, When) and isinstance(stmt.body[0], Put):
                    body[k] = stmt.body[0]

    with pytest.raises(Race, match="is written by thread"):
        row_sum(change, (64, 1))
    np.testing.assert_allclose(row_sum(change, (32, 2)), X.sum(1), rtol=1e-4)


def test_threads_that_meet_in_memory_race():
    """Every item of work done by two blocks: both store each element."""

    def change(program: Grid) -> None:
        arena = program.kernel.arena
        for loop in program.entries[-1].body:
            assert isinstance(loop, Loop)
            loop.first, loop.step = grid.register(arena, "tid.x"), grid.register(arena, "ntid.x")

    with pytest.raises(Race, match=r"is written by thread .* was written by another"):
        stored(over(X) * 2.0, change, TEAM)
    with pytest.raises(Race, match=r"is written by thread .* was written by another"):
        stored(over(X[:, 1:]) * 2.0, change, TEAM)  # element by element


@pytest.mark.parametrize("step", [1, -1])
def test_pieces_that_lie_at_no_multiple_are_found(step):
    def change(program: Grid) -> None:
        for body in everything(program):
            for stmt in body:
                if isinstance(stmt, Wide) and stmt.width > 1:
                    stmt.first = stmt.first + 1

    with pytest.raises(DeviceError, match="16 bytes at once, from no multiple of them"):
        stored(over(X[:, ::step]) * 2.0, change, TEAM)


def test_pieces_of_elements_that_are_apart_are_found():
    """A column taken at once, as if it were dense."""

    def change(program: Grid) -> None:
        for body in everything(program):
            for stmt in body:
                if isinstance(stmt, Wide):
                    reads = (t for t in program.kernel.arena.table.values() if t.op == "read")
                    stmt.moved = {(t.payload.slot, t.args[0].id): 1 for t in reads}

    with pytest.raises(DeviceError, match="at once, from no multiple of them"):
        stored(over(X[:, ::3]) * 2.0, change, TEAM)


def test_reading_what_another_thread_keeps_is_a_race():
    """Exponentials are kept in memory, by each thread for itself; here for its neighbour."""
    x = over(X)
    e = fn.exp(x - ext.broadcast_to(ext.reduce(x, "max", (1,), keepdims=True), x.shape))
    total = ext.broadcast_to(ext.reduce(e, "sum", (1,), keepdims=True), x.shape)

    def change(program: Grid) -> None:
        (entry,) = program.entries
        by_memory = entry.body[-1]
        assert isinstance(by_memory, When)
        (items,) = by_memory.body
        assert isinstance(items, Loop)
        arena = program.kernel.arena
        for last in items.body[-2:]:
            assert isinstance(last, Loop)
            last.first = grid.register(arena, "ntid.x") - 1 - grid.register(arena, "tid.x")

    np.testing.assert_allclose(stored(e / total, lambda p: None, TEAM).sum(1), 1, rtol=1e-5)
    with pytest.raises(Race, match=r"is read by thread .* was written"):
        stored(e / total, change, TEAM)


def test_a_barrier_that_threads_miss_is_found():
    def change(program: Grid) -> None:
        entry = program.entries[0]
        first = grid.register(program.kernel.arena, "tid.x")
        entry.body.append(When(first < 7, [Barrier()]))

    with pytest.raises(DeviceError, match="barrier: expected every thread of the block"):
        row_sum(change)


def test_an_exchange_that_threads_miss_is_found():
    def change(program: Grid) -> None:
        for entry in program.entries:
            first = grid.register(program.kernel.arena, "tid.x")
            entry.body[:] = [When(first < 7, entry.body[:])]

    for team, many in ((TEAM, 32), ((8, 8), 8)):
        with pytest.raises(DeviceError, match=f"shuffle: expected all {many} threads of a group"):
            row_sum(change, team)


def test_groups_of_a_warp_that_reach_too_far_are_found():
    """Sums wrong where threads join what others of another group have, not of their own."""

    def change(program: Grid) -> None:
        for body in everything(program):
            for stmt in body:
                if isinstance(stmt, When) and isinstance(stmt.body[0], Shuffle):
                    stmt.condition = program.kernel.arena.const(True, dt.bool_)

    assert not np.allclose(row_sum(change, (8, 8)), X.sum(1), rtol=1e-2)
    np.testing.assert_allclose(row_sum(lambda p: None, (8, 8)), X.sum(1), rtol=1e-4)


def test_shared_memory_that_was_not_written_is_found():
    with pytest.raises(DeviceError, match="reads what no thread has written"):
        row_sum(dropping(Share), (64, 1))


def test_shared_memory_has_an_end():
    def change(program: Grid) -> None:
        for body in everything(program):
            for stmt in body:
                if isinstance(stmt, Share | Fetch):
                    stmt.place = stmt.place + 1000

    with pytest.raises(DeviceError, match="shared memory: expected one of 8 places, got 100"):
        row_sum(change, (64, 1))


@pytest.mark.parametrize(("last", "how"), [(0, "read .* was written"), (1, "written .* was read")])
def test_a_missing_barrier_between_tiles_is_a_race(last, how):
    """Read before other warps have kept what lies there; kept before others have read."""
    x = over(np.ones((70, 40), np.float32))

    def change(program: Grid) -> None:
        for body in everything(program):
            barriers = [k for k, s in enumerate(body) if isinstance(s, Barrier)]
            if barriers:
                del body[barriers[last]]

    assert stored(ext.transpose(x), lambda p: None, TEAM).all()
    with pytest.raises(Race, match=f"of shared memory is {how}"):
        stored(ext.transpose(x), change, TEAM)


@pytest.mark.parametrize(
    ("barrier", "how"), [(0, "written .* was read"), (1, "read .* was written")]
)
def test_a_missing_barrier_of_a_scan_is_a_race(barrier, how):
    """Warps exchange what they come to: before others have, and while others read it still."""
    e = ext.scan(over(X), "sum", 1)

    def change(program: Grid) -> None:
        for body in everything(program):
            found = [k for k, s in enumerate(body) if isinstance(s, Barrier)]
            if found:
                del body[found[barrier]]

    scanned = stored(e, lambda p: None, (64, 1))
    np.testing.assert_allclose(scanned, X.cumsum(1), rtol=1e-3, atol=1e-3)
    with pytest.raises(Race, match=f"of shared memory is {how}"):
        stored(e, change, (64, 1))


@pytest.mark.parametrize("barrier", [0, 1])
def test_a_missing_barrier_of_a_sort_is_a_race(barrier):
    """Before a row's keys go out, and before each step."""
    keys = np.random.default_rng(0).permutation(5 * 300).reshape(5, 300)
    e = Sorted(over(keys))

    def change(program: Grid) -> None:
        found = [(body, s) for body in everything(program) for s in body if isinstance(s, Barrier)]
        body, stmt = found[barrier]
        del body[next(k for k, s in enumerate(body) if s is stmt)]

    np.testing.assert_array_equal(stored(e, lambda p: None, (64, 1)), np.sort(keys))
    with pytest.raises(Race, match=r"of shared memory is read .* was written"):
        stored(e, change, (64, 1))


def test_threads_beyond_a_row_must_join_its_scan():
    """The last piece of a row has fewer elements than the group has threads."""

    def change(program: Grid) -> None:
        for body in everything(program):
            wides = [s for s in body if isinstance(s, Wide)]
            if len(wides) == 2:  # what a thread has is read, then stored
                (when,) = wides[0].body
                body[:] = [When(when.condition, body[:])]

    with pytest.raises(DeviceError, match="shuffle: expected all 8 threads of a group"):
        stored(ext.scan(over(X), "sum", 1), change, (8, 8))


@pytest.mark.parametrize(
    ("threads", "blocks", "barriers", "fine"),
    [
        ((3, 3), (0, 0), (0, 0), True),  # itself
        ((3, 4), (0, 0), (0, 0), False),
        ((3, 4), (0, 0), (0, 1), True),
        ((3, 300), (0, 1), (0, 1), False),  # a barrier of another block
    ],
)
@pytest.mark.parametrize(("first", "then"), [("write", "read"), ("read", "write"), ("write",) * 2])
def test_two_accesses(threads, blocks, barriers, fine, first, then):
    watch = Watch("memory", 10)

    def touch(k: int, how: str) -> None:
        actors = Actors(*(np.array([n[k]]) for n in (threads, blocks, barriers)))
        extra = [np.array([float(k)])] if how == "write" else []
        getattr(watch, how)(np.array([5]), actors, *extra)

    touch(0, first)
    if fine:
        touch(1, then)
        return
    with pytest.raises(Race, match="place 5 of memory"):
        touch(1, then)


def test_many_readers_are_all_remembered():
    watch, many = Watch("memory", 4), np.arange(3)
    watch.read(np.zeros(3, int), Actors(many, many * 0, many * 0))
    for thread in range(3):
        one = np.array([thread])
        with pytest.raises(Race):
            watch.write(np.zeros(1, int), Actors(one, one * 0, one * 0), np.ones(1))
    late = Actors(np.array([1]), np.array([0]), np.array([1]))
    watch.write(np.zeros(1, int), late, np.ones(1))

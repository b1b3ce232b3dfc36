"""Regions: which branches run side by side, and that whatever their pace nobody meets the wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.dtype import float32
from gnomon.expr import call, fn
from gnomon.expr.node import Buffer
from gnomon.graph.node import Entry, Node
from gnomon.graph.tasks import regions as search
from gnomon.graph.tasks.cost_model import Cost, cost
from gnomon.graph.tasks.form import Form
from gnomon.graph.tasks.memory import Sharing, Value, overlaps, plan
from gnomon.graph.tasks.regions import (
    LONGEST,
    SHARED,
    Region,
    _Search,
    lasting,
    lighter,
    regions,
    too_large,
)
from gnomon.graph.tasks.task import Task, lives

LONG = 1_000_000


def network(*reads):
    """Task k makes value k and reads those of the tasks that are named."""
    entries = [Entry(Node(None, f"v{k}"), 0) for k in range(len(reads))]
    return [
        Task((e.node,), Form([], []), tuple(entries[j] for j in r), (e,))
        for e, r in zip(entries, reads, strict=True)
    ]


def found(tasks, work=None, threads=2):
    """The regions where tasks have this `work` each, in one part."""
    works = work or [LONG] * len(tasks)
    table = {t: None if w is None else Cost(w, 1) for t, w in zip(tasks, works, strict=True)}
    return regions(tasks, table.__getitem__, threads)


def test_two_branches_between_a_fork_and_a_join():
    tasks = network([], [0], [1], [0], [3], [2, 4])
    assert found(tasks) == [Region(1, 5, ((1, 2), (3, 4)))]
    assert found(tasks, threads=1) == []


def test_a_chain_has_no_branches():
    assert found(network([], *([k] for k in range(50)))) == []


def test_branches_are_shared_out_by_their_work():
    tasks = network([], [0], [0], [0], [0], [1, 2, 3, 4])
    work = [LONG, 3 * LONG, LONG, LONG, LONG, LONG]
    assert found(tasks, work) == [Region(1, 5, ((1,), (2, 3, 4)))]
    (three,) = found(tasks, work, threads=3)
    assert sorted(map(len, three.chains)) == [1, 1, 2]


def test_what_is_short_or_unknown_or_large_stays_alone():
    tasks = network([], [0], [0], [1, 2])
    assert found(tasks, [LONG, LONG, 1000, LONG]) == []
    assert found(tasks, [LONG, LONG, None, LONG]) == []
    assert len(regions(tasks, lambda t: Cost(SHARED, 2), 2)) == 1
    assert regions(tasks, lambda t: Cost(SHARED + 1, 2), 2) == []


@given(st.data())
@settings(max_examples=60)
def test_what_cannot_pay_is_not_searched_and_nothing_is_lost(data):
    count = data.draw(st.integers(2, 30))
    reads = [sorted(data.draw(st.sets(st.integers(0, k - 1), max_size=2))) if k else []
             for k in range(count)]  # fmt: skip
    tasks = network(*reads)
    sizes = st.one_of(st.none(), st.tuples(st.integers(0, 400_000), st.integers(1, 3)))
    kinds = {t: data.draw(sizes) for t in tasks}
    costs = {t: None if k is None else Cost(*k) for t, k in kinds.items()}
    quick = regions(tasks, costs.__getitem__, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Search, "_most", lambda self: [k << 40 for k in range(count + 1)])
        patch.setattr(_Search, "_share", lambda self, work: -1 << 40)
        assert regions(tasks, costs.__getitem__, 3) == quick


def test_branches_with_too_little_for_two_threads_are_not_shared_out(monkeypatch):
    asked, shared_out = [], search._shared_out

    def noted(branches, threads):
        asked.append(sum(b.work for b in branches))
        return shared_out(branches, threads)

    monkeypatch.setattr(search, "_shared_out", noted)
    assert found(network([], [0], [0], [0], [0], [3, 4]), [1000, 1000, 1000, LONG, LONG, 1000])
    assert asked and min(asked) - min(asked) // 2 - search.BEGIN >= search.LEAST


def test_gradients_of_weight_and_data_go_in_pairs():
    """Even tasks are gradients of data, one after the other; odd ones of weights."""
    tasks = network([], *([k - k % 2] for k in range(20)))
    pairs = found(tasks)
    assert len(pairs) > 1
    assert sum(r.end - r.begin for r in pairs) >= 16
    assert all(r.end - r.begin <= LONGEST for r in pairs)


def test_a_plan_may_grow_a_little_and_the_lightest_regions_stay():
    assert not too_large(2 << 10, 1 << 10)
    assert too_large((2 << 10) + 1, 1 << 10)
    assert too_large(110 << 20, 100 << 20)
    assert not too_large(103 << 20, 100 << 20)
    tasks = network([], [], [], [])
    both = [Region(0, 2, ((0,), (1,))), Region(2, 4, ((2,), (3,)))]
    sizes = {t.made[0]: n for t, n in zip(tasks, (9, 9, 1, 1), strict=True)}
    assert lighter(tasks, both, sizes) == both[1:]
    assert lighter(tasks, both[1:], sizes) == []


def test_the_lightest_regions_stay_in_order():
    tasks = network(*[()] * 6)
    every = [Region(k, k + 2, ((k,), (k + 1,))) for k in (0, 2, 4)]
    sizes = {t.made[0]: size for t, size in zip(tasks, (3, 3, 9, 9, 1, 1), strict=True)}
    assert lighter(tasks, every, sizes) == [every[0], every[2]]


def test_the_effort_of_forms():
    a, b = (Buffer((64, 64), float32) for _ in range(2))
    product = cost(Form([call.dot(a, b)], [a, b]), 2)
    assert product == Cost(3 * 64 * 64 * 2 + 64**3 // 2, 1)
    large = Buffer((1024, 1024), float32)
    assert cost(Form([call.dot(large, large)], [large]), 2).parts == 2
    assert cost(Form([fn.exp(a)], [a]), 2).parts == 1
    assert cost(Form([fn.exp(large)], [large]), 2).parts == 2
    picture, weight = Buffer((1, 8, 9, 9), float32), Buffer((8, 8, 3, 3), float32)
    made = call.convolution(picture, weight, (1, 1), (1, 1), (1, 1), 1)
    assert cost(Form([made], [picture, weight]), 2).parts == 1


@st.composite
def programs(draw):
    """Tasks with what they read, sizes, work, and which may overwrite or show what they read."""
    count = draw(st.integers(2, 30))
    near = st.integers(1, 6)
    reads = [
        sorted({max(0, k - draw(near)) for _ in range(draw(st.integers(0, 2)))}) if k else []
        for k in range(count)
    ]
    sizes = [draw(st.sampled_from([0, 1, 64, 100, 640])) for _ in range(count)]
    work = [draw(st.sampled_from([None, 1000, LONG, 3 * LONG])) for _ in range(count)]
    kinds = [[draw(st.sampled_from(["no", "over", "view"])) for _ in r] for r in reads]
    return reads, sizes, work, kinds


def planned(program):
    """The tasks, their regions, and where the values lie."""
    reads, sizes, work, kinds = program
    tasks = network(*reads)
    chosen = found(tasks, work)
    told = lasting(tasks, lives(tasks), chosen)
    sharings = []
    for k, task in enumerate(tasks):
        for entry, kind, source in zip(task.reads, kinds[k], reads[k], strict=True):
            if kind == "view" and sizes[k] == sizes[source]:
                sharings.append(Sharing(task.made[0], entry, view=True))
                break
            if kind == "over":
                sharings.append(Sharing(task.made[0], entry))
    rows = [(t.made[0], n, told(t.made[0])) for t, n in zip(tasks, sizes, strict=True)]
    values = [Value(e, n, how.born, how.dies, 0, how.branch) for e, n, how in rows]
    return tasks, chosen, plan(values, sharings), sharings


def paced(tasks, chosen, choose):
    """Numbers of tasks in an order in which the regions' branches go on at any pace."""
    at = 0
    while at < len(tasks):
        region = next((r for r in chosen if r.begin == at), Region(at, at + 1, ((at,),)))
        left = [list(chain) for chain in region.chains]
        while left := [chain for chain in left if chain]:
            yield choose(left).pop(0)
        at = region.end


@settings(deadline=None, max_examples=300)
@given(programs(), st.data())
def test_whatever_their_pace_branches_leave_each_other_alone(program, data):
    tasks, chosen, where, sharings = planned(program)
    reads, sizes, *_ = program
    for region in chosen:
        numbers = sorted(k for chain in region.chains for k in chain)
        assert numbers == list(range(region.begin, region.end))
    assert not overlaps(where, sharings)
    shown = {s.made: s.source for s in sharings if s.view}
    makers = {t.made[0]: k for k, t in enumerate(tasks)}

    def content(entry):
        """The number of the value that is seen in a view, where it is one in this plan."""
        while entry in shown and where.places[entry] == where.places[shown[entry]]:
            entry = shown[entry]
        return makers[entry]

    held = np.full(max(where.total, 1), -1)
    for number in paced(tasks, chosen, lambda left: data.draw(st.sampled_from(left))):
        for entry, source in zip(tasks[number].reads, reads[number], strict=True):
            begin = where.places[entry].offset
            assert (held[begin : begin + sizes[source]] == content(entry)).all()
        made = tasks[number].made[0]
        begin = where.places[made].offset
        held[begin : begin + sizes[number]] = content(made)


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_a_long_program_is_searched_quickly(threads):
    tasks = network([], *([k - k % 3, k // 2] for k in range(5_000)))
    assert found(tasks, threads=threads)

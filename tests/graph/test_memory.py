"""The memory plan: what may share bytes does, what may not never does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.graph.tasks import memory
from gnomon.graph.tasks.memory import Plan, Sharing, Value, overlaps, plan


def chain(count, size=64):
    """Values that each live until the next is made."""
    return [Value(k, size, k, k + 1) for k in range(count)]


def over(count):
    """Each value may overwrite the one before."""
    return [Sharing(k, k - 1) for k in range(1, count)]


def test_a_chain_needs_two_places_and_in_place_one():
    assert plan(chain(9)).total == 128
    assert plan(chain(9), over(9)).total == 64


def test_what_lives_together_lies_apart():
    found = plan([Value("a", 100, 0, 5), Value("b", 100, 1, 5), Value("c", 100, 2, 2)])
    assert found.total == 3 * 128
    assert not overlaps(found)


def test_a_hole_takes_the_value_that_fits_best():
    values = [Value("big", 640, 0, 1), Value("mid", 128, 0, 1), Value("keep", 64, 0, 9)]
    found = plan([*values, Value("late", 128, 3, 4), Value("wide", 640, 3, 4)])
    assert found.total == 640 + 128 + 64
    assert found.places["late"] == found.places["mid"]


def test_overwriting_waits_for_the_last_reader():
    values = [Value("a", 64, 0, 2), Value("b", 64, 1, 3)]
    assert plan(values, [Sharing("b", "a")]).total == 128


def test_one_source_is_overwritten_once():
    values = [Value("a", 64, 0, 1), Value("b", 64, 1, 2), Value("c", 64, 1, 2)]
    found = plan(values, [Sharing("b", "a"), Sharing("c", "a")])
    assert found.places["b"] == found.places["a"] != found.places["c"]


def test_a_view_shares_while_both_live_and_shields_from_overwriting():
    values = [Value("a", 64, 0, 2), Value("view", 64, 1, 4), Value("b", 64, 2, 3)]
    sharings = [Sharing("view", "a", view=True), Sharing("b", "a")]
    found = plan(values, sharings)
    assert found.places["view"] == found.places["a"]
    assert found.places["b"] != found.places["a"]
    assert not overlaps(found, sharings)


def test_a_view_of_a_view_may_be_overwritten_by_its_last_reader():
    values = [Value(n, 64, k, k + 1) for k, n in enumerate("abcd")]
    sharings = [Sharing("b", "a", True), Sharing("c", "b", True), Sharing("d", "c")]
    found = plan(values, sharings)
    assert found.total == 64
    assert not overlaps(found, sharings)


def test_a_larger_value_does_not_fit_in_place():
    values = [Value("a", 64, 0, 1), Value("b", 65, 1, 2)]
    found = plan(values, [Sharing("b", "a")])
    assert found.places["a"].offset != found.places["b"].offset
    assert not overlaps(found, [Sharing("b", "a")])


def test_an_output_nobody_reads_has_a_place_of_its_own():
    values = [Value("a", 64, 0, 1), Value("used", 64, 1, 3), Value("unused", 64, 1, 1)]
    assert not overlaps(plan(values))


def test_nothing_needs_nothing():
    assert plan([]).total == 0
    assert plan([Value("empty", 0, 0, 0)]).total == memory.ALIGNMENT


def test_the_checker_sees_a_bad_plan():
    a, b = Value("a", 64, 0, 1), Value("b", 64, 1, 2)
    good = plan([a, b])
    bad = Plan(dict.fromkeys("ab", memory.Place(0, 0)), (64,), good.blocks)
    assert overlaps(bad) == [(a, b)]
    assert not overlaps(bad, [Sharing("b", "a")])


def test_the_table_tells_each_life():
    found = plan(chain(3), over(3))
    assert [(v.key, v.born, v.dies, p.offset) for v, p in found.table()] == [
        (0, 0, 1, 0),
        (1, 1, 2, 0),
        (2, 2, 3, 0),
    ]


@st.composite
def programs(draw):
    """Values in the order they are made, each reading some before, with sharings at random.

    They are told to lie in one buffer, or in one of three each.
    """
    count = draw(st.integers(1, 40))
    reads = [draw(st.lists(st.integers(0, k - 1), max_size=3)) if k else [] for k in range(count)]
    dies = {k: max([j for j in range(count) if k in reads[j]], default=k) for k in range(count)}
    sizes = [draw(st.sampled_from([0, 1, 64, 100, 640, 4096])) for _ in range(count)]
    sharings = []
    for k in range(count):
        for source in reads[k]:
            kind = draw(st.sampled_from(["no", "over", "view"]))
            # a view has its source's size
            if kind == "view" and sizes[k] == sizes[source]:
                sharings.append(Sharing(k, source, view=True))
                break
            if kind == "over":
                sharings.append(Sharing(k, source))
    home = st.integers(0, draw(st.sampled_from([0, 2])))
    return [Value(k, sizes[k], k, dies[k], draw(home)) for k in range(count)], sharings


@settings(deadline=None)
@given(programs(), st.booleans())
def test_no_two_live_values_overlap(program, large):
    values, sharings = program
    limit, memory.EXACT = memory.EXACT, 0 if large else memory.EXACT
    try:
        found = plan(values, sharings)
    finally:
        memory.EXACT = limit
    assert set(found.places) == {v.key for v in values}
    assert not overlaps(found, sharings)
    assert all(p.offset % memory.ALIGNMENT == 0 for p in found.places.values())
    peak = max(sum(v.size for v in values if v.born <= t <= v.dies) for t in range(len(values)))
    assert found.total >= peak or sharings
    shown = {s.made for s in sharings if s.view}
    for value in values:
        assert value.key in shown or found.places[value.key].buffer == value.buffer


@pytest.mark.parametrize("lag", [1, 50])
def test_a_hundred_thousand_values_are_planned(lag):
    values = [Value(k, 64 * (1 + k % 7), k, k + lag) for k in range(100_000)]
    assert plan(values, over(100_000)).total <= 64 * 7 * (lag + 1) * 2

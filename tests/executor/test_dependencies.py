"""Which segments wait for which: whatever the threads do, everyone reads what it is to read."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.executor.programs.dependencies import Memory, Part, waits
from gnomon.graph.node import Entry, Node
from gnomon.graph.tasks.form import Form
from gnomon.graph.tasks.memory import Value, plan
from gnomon.graph.tasks.task import Task


def task(reads, *made):
    return Task((Node(None, "n"),), Form([], []), tuple(reads), made)


def parts_and_memory(lanes, reads, sizes):
    """A task for each lane that is named, of what it reads; the plan of what they make."""
    entries = [Entry(Node(None, f"v{k}"), 0) for k in range(len(lanes))]
    dies = [max([k, *(j for j, r in enumerate(reads) if k in r)]) for k in range(len(lanes))]
    values = [Value(e, sizes[k], k, dies[k], lanes[k]) for k, e in enumerate(entries)]
    parts = [
        Part([task([entries[j] for j in reads[k]], entries[k])], lane)
        for k, lane in enumerate(lanes)
    ]
    return parts, Memory(plan(values).places, dict(zip(entries, sizes, strict=True)), {})


def test_what_needs_nothing_of_each_other_does_not_wait():
    parts, memory = parts_and_memory([0, 1, 0, 1, 0], [[], [], [0], [1], [2, 3]], [64] * 5)
    assert waits(parts, memory) == [(), (), (0,), (1,), (2, 3)]


def test_who_overwrites_waits_for_the_reader():
    parts, memory = parts_and_memory([0, 1, 0], [[], [0], []], [64] * 3)
    assert waits(parts, memory) == [(), (0,), (0, 1)]


def test_views_of_the_callers_arrays_are_the_engines_affair():
    made, seen = Entry(Node(None, "made"), 0), Entry(Node(None, "seen"), 0)
    parts = [Part([task([], made)], 0), Part([task([seen])], 1)]
    table = plan([Value(made, 64, 0, 1)]).places
    places = table | {seen: table[made]}
    sizes = {made: 64, seen: 64}
    assert waits(parts, Memory(places, sizes, {}))[1] == (0,)
    assert waits(parts, Memory(places, sizes, {seen: made}))[1] == ()


@st.composite
def programs(draw):
    count = draw(st.integers(1, 25))
    lanes = [draw(st.integers(0, 2)) for _ in range(count)]
    reads = [draw(st.lists(st.integers(0, k - 1), max_size=3)) if k else [] for k in range(count)]
    return lanes, reads, [draw(st.sampled_from([0, 1, 64, 100, 640])) for _ in range(count)]


@settings(deadline=None)
@given(programs(), st.data())
def test_any_order_that_keeps_the_waits_gives_the_same(program, data):
    _, reads, _ = program
    parts, memory = parts_and_memory(*program)
    before = waits(parts, memory)
    held, done = {}, set()
    while len(done) < len(parts):
        ready = [k for k, w in enumerate(before) if k not in done and done.issuperset(w)]
        number = data.draw(st.sampled_from(ready))
        for source in reads[number]:
            (place,) = memory.used(parts[source].tasks[0].made)
            assert all(held[place[0], b] == source for b in range(*place[1:]))
        ((buffer, begin, end),) = memory.used(parts[number].tasks[0].made)
        held.update(((buffer, b), number) for b in range(begin, end))
        done.add(number)

"""Templates: one making of steps serves operands anywhere in memory, from several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from gnomon import autograd, config, nd, shadow
from gnomon.dtype import float32
from gnomon.expr import ext, fn
from gnomon.expr.call import dot
from gnomon.expr.node import Buffer
from gnomon.gluon import nn
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.runtime.kernels.template import Copy, Template
from gnomon.runtime.kernels.workspace import KEPT_BYTES, RUN_MEMORY, Reused, working_memory
from gnomon.runtime.libraries import gemm
from gnomon.runtime.statements.family import Slot, family_of
from gnomon.runtime.statements.prepare import Store, prepare


def address(array):
    return array.__array_interface__["data"][0]


def making(shapes, value, saver="saveto"):
    """A function that makes steps storing `value(operands)` into the last operand."""

    def make(addresses):
        *operands, dest = (
            Buffer(s, float32, None, a) for s, a in zip(shapes, addresses, strict=True)
        )
        return prepare([Store(dest, saver, value(*operands))])

    return make


CASES = {
    "map": (((6, 7), (6, 7), (6, 7)), lambda a, b: fn.exp(a) + b * 2),
    "reduction": (((6, 7), (6,)), lambda a: ext.reduce(a, "sum", (1,))),
    "sums so far in a map": (((6, 7), (6, 7)), lambda a: fn.exp(ext.cumsum(a, 1)) + 1),
    "sums so far in a row": (
        ((6, 7), (42,), (42,)),
        lambda a, b: fn.exp(ext.reshape(ext.cumsum(a, 1), (42,))) + b,
    ),
    "product": (((6, 7), (7, 5), (6, 5)), dot),
    "product in a map": (((6, 7), (7, 5), (6, 5)), lambda a, b: fn.tanh(dot(a, b)) + 1),
    "product of a map": (((6, 7), (7, 5), (6, 5)), lambda a, b: dot(a * 2, b)),
}
EXPECTED = {
    "map": lambda a, b: np.exp(a) + b * 2,
    "reduction": lambda a: a.sum(1),
    "sums so far in a map": lambda a: np.exp(a.cumsum(1)) + 1,
    "sums so far in a row": lambda a, b: np.exp(a.cumsum(1).reshape(42)) + b,
    "product": lambda a, b: a @ b,
    "product in a map": lambda a, b: np.tanh(a @ b) + 1,
    "product of a map": lambda a, b: (a * 2) @ b,
}


def operands(shapes, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("name", CASES)
def test_operands_anywhere(name):
    shapes, value = CASES[name]
    made = Template(making(shapes, value), len(shapes))
    for seed in range(4):
        arrays = operands(shapes, seed)
        made.run([address(a) for a in arrays])
        np.testing.assert_allclose(arrays[-1], EXPECTED[name](*arrays[:-1]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_share_temporaries(name):
    shapes, value = CASES[name]
    made, wrong = Template(making(shapes, value), len(shapes)), []

    def program(seed):
        for _ in range(50):
            arrays = operands(shapes, seed)
            made.run([address(a) for a in arrays])
            if not np.allclose(arrays[-1], EXPECTED[name](*arrays[:-1]), 1e-4, 1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=program, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("shapes", [((6, 7), (7, 5)), ((300, 300), (300, 300)), ((1, 9), (9, 1))])
@pytest.mark.parametrize("onednn", [True, False])
def test_steps_of_products_are_made_once(shapes, onednn):
    """Products by any library say which of their words are addresses: nothing is compared."""
    made = []
    steps = making((*shapes, (shapes[0][0], shapes[1][1])), dot)

    def make(addresses):
        made.append(steps(addresses))
        return made[-1]

    with config.using(onednn=onednn):
        product = Template(make, 3)
        assert len(made) == 1
        for seed in (1, 2):
            a, b = operands(shapes, seed)
            c = np.empty((len(a), b.shape[1]), np.float32)
            product.run([address(x) for x in (a, b, c)])
            np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_adding_to_an_operand():
    made = Template(making(((3,), (3,)), lambda a: a * 2, "plusto"), 2)
    a, b = np.ones(3, np.float32), np.full(3, 5, np.float32)
    made.run([address(a), address(b)])
    made.run([address(a), address(b)])
    assert b.tolist() == [9, 9, 9]


@pytest.mark.parametrize("name", CASES)
def test_no_template_holds_memory(name):
    """What a run leaves is for the next one, of whatever work."""
    shapes, value = CASES[name]
    arrays = operands(shapes, 0)
    RUN_MEMORY.give(RUN_MEMORY.take(1 << 16))
    before = pool.stats().used
    for _ in range(3):
        made = Template(making(shapes, value), len(shapes))
        for _ in range(2):
            made.run([address(a) for a in arrays])
        assert len(made._free) == 1
        assert pool.stats().used == before
    np.testing.assert_allclose(arrays[-1], EXPECTED[name](*arrays[:-1]), rtol=1e-5, atol=1e-5)


def test_much_memory_is_the_pools_between_runs():
    before = pool.stats().used
    RUN_MEMORY.give(RUN_MEMORY.take(KEPT_BYTES + 1))
    assert pool.stats().used <= before
    RUN_MEMORY.give(RUN_MEMORY.take(1 << 20))
    assert RUN_MEMORY.take(100).nbytes >= 100


def test_exceptions_leave_a_thread_without_a_workspace():
    class Stop(BaseException):
        pass

    def make(addresses):
        working_memory(100)
        raise Stop

    with pytest.raises(Stop):
        Template(make, 1)
    assert isinstance(working_memory(100), pool.Storage)


def statement():
    x = shadow.Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))
    expected = x.numpy() + x.numpy().T
    x[:] = x + x.T  # by a temporary
    assert (x.numpy() == expected).all()


def network():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.MaxPool2D(), nn.LayerNorm(), nn.Dense(2))
    net.initialize()
    net.hybridize()
    with autograd.record():
        y = net(nd.ones((1, 2, 8, 8)))
    y.backward()
    assert np.isfinite(y.asnumpy()).all()


@pytest.mark.parametrize("work", [statement, network])
def test_what_a_handler_does_while_a_template_is_made_works_in_memory_of_the_pool(work):
    shapes, value = CASES["sums so far in a map"]
    steps = making(shapes, value)

    def make(addresses):
        work()
        return steps(addresses)

    a, b = operands(shapes, 0)
    Template(make, len(shapes)).run([address(a), address(b)])
    np.testing.assert_allclose(b, np.exp(a.cumsum(1)) + 1, rtol=1e-5)


def test_memory_that_is_used_again_grows_and_stays():
    memory = Reused()
    first = memory.of(1000)
    assert memory.of(10) is first
    second = memory.of(1001)
    assert second.nbytes == 2000 and memory.of(2000) is second
    assert first.address  # steps may lie there still


def test_memory_for_the_larger_of_two_that_grow_at_once_is_large_enough(monkeypatch):
    appended, over = threading.Event(), threading.Event()

    class Slow(list):
        def append(self, storage):
            super().append(storage)
            if storage.nbytes == 1000:
                appended.set()
                over.wait(5)

    def allocate(nbytes):
        if nbytes == 10:
            larger.start()
            appended.wait(5)
        return take(nbytes)

    memory, found, take = Reused(), [], pool.allocate
    memory._storages = Slow()
    larger = threading.Thread(target=lambda: found.append(memory.of(1000)))
    monkeypatch.setattr(pool, "allocate", allocate)
    assert memory.of(10).nbytes >= 10
    over.set()
    larger.join()
    assert found[0].nbytes >= 1000


def test_an_exception_leaves_the_stream_no_copy_without_memory(monkeypatch):
    """Its temporaries would lie at stand-in addresses."""
    shapes, value = CASES["product of a map"]
    made, arrays = Template(making(shapes, value), len(shapes)), operands(shapes, 0)
    addresses = [address(a) for a in arrays]

    def work_in(copy, storage):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Copy, "work_in", work_in)
        with pytest.raises(KeyboardInterrupt):
            made.task(addresses)
    made.task(addresses)
    assert made._streamed.memory is not None


def test_members_of_a_family_work_in_memory_of_their_own_size():
    """The first one's work was too little for several tasks, so that it had no partial sums."""
    shapes = (10,), ()
    family = family_of(Template(making(shapes, lambda a: ext.reduce(a, "sum", (0,))), 2))
    assert family is not None
    source, found = np.arange(3_000_000, dtype=np.float32) % 7, np.zeros((), np.float32)
    member = family.member({Slot(0, ("dim", 0)): source.size}, moved=source.nbytes)
    for _ in range(2):
        member.run([address(source), address(found)])
        assert found == source.sum(dtype=np.float64)


@pytest.mark.parametrize("name", ["sums so far in a map", "sums so far in a row"])
def test_copies_of_kernels_have_memory_of_their_own_and_are_not_planned_again(name):
    made = []
    shapes, value = CASES[name]
    steps = making(shapes, value)

    def make(addresses):
        made.append(steps(addresses))
        return made[-1]

    work = Template(make, len(shapes))
    copies = [work.own() for _ in range(3)]
    assert len(made) == 1 and len(made[0]) > 1
    memory = [copy.memory for copy in copies]
    assert all(memory) and len({storage.address for storage in memory}) == len(copies)
    arrays = [operands(shapes, seed) for seed in range(3)]
    for copy, each in zip(copies, arrays, strict=True):
        copy.place([address(a) for a in each])
    for k in range(max(len(c.steps) for c in copies)):  # by turns
        for copy in copies:
            copy.steps[k].run()
    for *given, found in arrays:
        np.testing.assert_allclose(found, EXPECTED[name](*given), rtol=1e-5, atol=1e-5)


def test_steps_made_for_another_number_of_threads_are_not_copied():
    before, shapes = threads.num_threads(), ((500, 500), (500, 500))
    try:
        threads.set_num_threads(2)
        work = Template(making(shapes, lambda a: fn.tanh(fn.exp(a))), 2)
        two = [work.reserve() for _ in range(2)]
        threads.set_num_threads(1)
        one = [work.reserve() for _ in range(2)]
    finally:
        threads.set_num_threads(before)
    cuts = [[copy.blocks[0].words[k] for k in range(5)] for copy in (*two, *one)]
    assert cuts[0] == cuts[1] != cuts[2] == cuts[3]


def test_nothing_to_do():
    made = Template(making(((0, 3), (0, 3)), lambda a: a + 1), 2)
    made.run([0, 0])


@pytest.mark.parametrize("later", [1, 3])
def test_a_copy_made_for_another_number_of_threads_has_places_of_its_own(later):
    """Work is cut otherwise then, and what is cut otherwise has other blocks."""
    sides = [np.random.default_rng(k).normal(size=(300, 300)).astype(np.float32) for k in (0, 1)]
    found, before = np.empty((300, 300), np.float32), threads.num_threads()

    def make(addresses):
        return [gemm.gemm_step("float32", 300, 300, 300, *addresses)]

    try:
        threads.set_num_threads(2)
        work = Template(make, 3)
        taken = work.reserve()
        threads.set_num_threads(later)
        work.run([x.ctypes.data for x in (*sides, found)])
        assert taken is not work.reserve()
    finally:
        threads.set_num_threads(before)
    np.testing.assert_allclose(found, sides[0] @ sides[1], rtol=1e-3, atol=1e-3)


def test_one_making_tells_where_the_operands_of_a_recurrence_are(monkeypatch):
    """Chains beside each other, and steps that are repeated, say which words hold addresses."""
    size = 2 * 4 * 16 * (5 + 16 + 2) + 2 * 4 * 16 * (32 + 16 + 2)
    given = [nd.random.normal(0, 0.1, (size,)), nd.zeros((4, 8, 16)), nd.zeros((4, 8, 16))]
    sequences = [nd.random.normal(shape=(length, 8, 5)) for length in (7, 31)]
    made_twice, usual = [], Template._compare

    def compared(template, *copies):
        made_twice.append(template)
        return usual(template, *copies)

    monkeypatch.setattr(Template, "_compare", compared)
    for x in sequences:
        x.attach_grad()
        with autograd.record():
            y = nd.RNN(x, *given, mode="lstm", state_size=16, num_layers=2, bidirectional=True)
        y.backward()
        assert x.grad.asnumpy().any()
    assert max([template.count for template in made_twice], default=0) < len(given)

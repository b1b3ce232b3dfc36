"""Pending arrays: whatever comes between, values are those of computing each statement at once.

Random programs run lazily, eagerly, under the naive engine (all to the bit), and in NumPy:
in place, through views and further names, on two contexts, among random draws and gradients.
"""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, engine, nd
from gnomon.runtime.devices import pool

SHAPE = (4, 5)
KEYS = ["[:]", "[1:]", "[:-1]", "[::-1]", "[:, 1:3]", "[2]", "[:, ::2]", "[1:3, :1]", "[..., 0]"]
PAIRS = ["{a} + {b}", "{a} - {b}", "{a} * {b} * 0.5", "maximum({a}, {b})", "{a} / ({b} * {b} + 1)"]
ONES = ["{a} * 0.5", "1 - {a}", "-{a}", "abs({a})", "({a} > 0) * {a}", "{a}", "2 / (abs({a}) + 1)"]
LONG = "({a} + {b}) * 0.25 - {a} * ({b} + {a} * 0.125)"


def statement(rng: random.Random) -> str:
    """One statement over the arrays x0..x3 and the views v0..v2, in Python for NumPy and us."""
    x, y, z = (f"x{rng.randrange(4)}" for _ in range(3))
    key = rng.choice(KEYS)
    whole = rng.choice([*PAIRS, *PAIRS, *ONES, LONG])
    kind = rng.randrange(17)
    if kind < 4:
        return f"{x} = {whole.format(a=y, b=z)}"
    if kind == 4:
        return f"{x}{key} = {whole.format(a=y + key, b=z + key)}"
    if kind == 5:
        return f"{x} {rng.choice('+-*')}= 0.25 * ({whole.format(a=y, b=z)})"
    if kind == 6:
        return f"{x}[1:] += {x}[:-1] * 0.5"
    if kind == 7:
        return f"v{rng.randrange(3)} = {x}{key}"
    if kind == 8:
        return f"v{rng.randrange(3)}[...] *= 0.75"
    if kind == 9:
        return f"{x} = {y}"
    if kind == 10:
        return f"{x} = moved({y})"
    if kind == 11:
        return f"{x}[:] = draw({x}) - {y}"
    if kind == 12:
        return f"{x} = slope({y}, {z})"
    if kind == 13:
        return f"{x}[:] = {x}[::-1] * 0.5 + {y}"
    if kind == 14:
        return f"{x} = {x} * 1; {x} *= 0.5; {y} -= {x}; {x} += {z}"
    if kind == 15:
        return f"{x}[:] = {whole.format(a=y, b=z)}"
    return f"{x} -= {y} * 0.125"


def program(seed: int, length: int) -> str:
    rng = random.Random(seed)
    first = ["v0 = x0[1:]", "v1 = x1[:, 1]", "v2 = x2[::-1]"]
    return "\n".join([*first, *(statement(rng) for _ in range(length))])


def values() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=SHAPE).astype(np.float32) for _ in range(4)]


def moved(x):
    return x.as_in_context(mx.cpu(1 - x.context.device_id))


def slope(a, b):
    """The derivative by `a` of a chain that is recorded."""
    a = a.copy()
    a.attach_grad()
    with autograd.record():
        y = a * b + a / (b * b + 1)
        z = nd.tanh(y) * 0.5
    z.backward()
    return a.grad


def slope_of_numpy(a, b):
    y = a * b + a / (b * b + 1)
    return 0.5 * (1 - np.tanh(y) ** 2) * (b + 1 / (b * b + 1))


def run(text: str, drawn: list | None = None) -> dict[str, np.ndarray]:
    def draw(x):
        made = nd.random.uniform(-1, 1, shape=SHAPE, ctx=x.context)
        if drawn is not None:
            drawn.append(made.asnumpy())
        return made

    mx.random.seed(3)
    names = {f"x{k}": nd.array(v) for k, v in enumerate(values())}
    names.update(maximum=nd.maximum, moved=moved, draw=draw, slope=slope)
    exec(text, names)
    return {k: v.asnumpy() for k, v in names.items() if k[0] in "xv" and k[1:].isdigit()}


@pytest.mark.parametrize("seed", range(20))
def test_a_random_program(seed):
    text, drawn = program(seed, 30), []
    lazily = [run(text) for _ in range(3)]  # later rounds know the chains
    with config.using(lazy=False):
        at_once = run(text, drawn)
    before = engine.get()
    try:
        engine.use(engine.NaiveEngine())
        naive = run(text)
    finally:
        engine.use(before)
    names = {f"x{k}": v for k, v in enumerate(values())}
    draws = iter(drawn)
    names.update(maximum=np.maximum, moved=np.copy, draw=lambda x: next(draws))
    names.update(slope=slope_of_numpy)
    with np.errstate(all="ignore"):
        exec(text, names)
    for name, value in at_once.items():
        for found in (*lazily, naive):
            np.testing.assert_array_equal(found[name], value, err_msg=f"{name} of\n{text}")
        np.testing.assert_allclose(value, names[name], 1e-3, 1e-4, err_msg=f"{name} of\n{text}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int8", "uint8"])
def test_chains_of_every_dtype_round_at_each_operator(dtype):
    rng = np.random.default_rng(2)
    given = rng.uniform(1, 120, (2, 40)).astype(np.float32)

    def chain():
        a, b = nd.array(given[0], dtype=dtype), nd.array(given[1], dtype=dtype)
        c = a * b - a * 3 + b / 7
        return [x.astype("float64").asnumpy() for x in (c, c * c + a, (a > b) * c, 7 - c)]

    lazily = [chain() for _ in range(3)]
    with config.using(lazy=False):
        at_once = chain()
    for found in lazily:
        for x, y in zip(found, at_once, strict=True):
            np.testing.assert_array_equal(x, y)


def is_pending(x) -> bool:
    return x._pending_in is not None


def test_what_is_pending_and_what_needs_it():
    a, b = nd.array([1.0, 2.0]), nd.array([[3.0], [4.0]])
    row = nd.array([5.0, 6.0])
    assert is_pending(a + 1) and is_pending(a * row) and is_pending(b + a) and is_pending(-a)
    c = a * 2 + row
    assert (c.shape, c.dtype, c.context, c.size) == ((2,), np.float32, mx.cpu(0), 2)
    assert is_pending(c)
    c += a
    assert is_pending(c) and c.asnumpy().tolist() == [8, 12] and not is_pending(c)
    needs = {
        "wait": lambda x: x.wait_to_read(),
        "view": lambda x: x[:1],
        "reshape": lambda x: x.reshape((2, 1)),
        "reduction": nd.sum,
        "detach": lambda x: x.detach(),
        "other shape": lambda x: x + b,
        "wait for all": lambda x: nd.waitall(),
        "dlpack": np.from_dlpack,
        "setting": lambda x: (config.set("hang_report_seconds", 60.0), x + 1),
    }
    for what, need in needs.items():
        d = a - row
        assert is_pending(d), what
        need(d)
        assert not is_pending(d), what
        assert d.asnumpy().tolist() == [-4, -4], what


def test_writes_leave_pending_values_alone():
    a, b = nd.array([1.0, 2.0, 3.0]), nd.array([1.0, 1.0, 1.0])
    view = a[1:]
    pairs = []
    for write in (
        lambda: a.__iadd__(1),
        lambda: a.__setitem__(slice(None), 7),
        lambda: view.__setitem__(0, -1),
        lambda: view.__imul__(2),
        lambda: nd.broadcast_add(b, b, out=a),
        lambda: b.copyto(a),
        lambda: a.__setitem__([0, 2], 9),
        lambda: a.__setitem__(slice(None), np.arange(3)),
        lambda: nd.sgd_update(a, b, out=a, lr=0.5),
        lambda: a.__setitem__(slice(None), a * 2 + b),
    ):
        pairs.append((a * 2 - b, a.asnumpy() * 2 - b.asnumpy()))
        write()
    for found, expected in pairs:
        np.testing.assert_array_equal(found.asnumpy(), expected)


def test_a_value_that_was_stored_elsewhere_stays():
    a, b = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    v = a + b
    a[:] = v
    assert a.asnumpy().tolist() == v.asnumpy().tolist() == [4, 6]
    v = a * b
    b[:] = v
    b += 1
    assert v.asnumpy().tolist() == [12, 24] and b.asnumpy().tolist() == [13, 25]
    v = a + 1
    b[:] = v
    a[:] = v  # stored twice
    v += 1
    assert (a.asnumpy().tolist(), v.asnumpy().tolist()) == ([5, 7], [6, 8])


def test_errors_come_at_the_call():
    a = nd.ones((2, 3))
    with pytest.raises(ValueError, match="broadcast_add"):
        (a + 1) + nd.ones((2, 4))
    with pytest.raises(mx.MXNetError, match="int32"):
        (a * 2) + nd.ones((2, 3), dtype="int32")
    with pytest.raises(mx.MXNetError, match="elemwise_add"):
        nd.elemwise_add(a + 1, nd.ones((3, 2)))
    assert (a + 1).asnumpy().sum() == 12


def test_what_others_may_write_is_read_at_once():
    a = nd.ones((3,))
    shared = np.from_dlpack(a)
    c = a + 1
    assert not is_pending(c)
    source = np.ones(3, np.float32)
    d = nd.from_numpy(source) * 2
    assert not is_pending(d)
    assert shared.tolist() == [1, 1, 1] and d.asnumpy().tolist() == [2, 2, 2]


def test_a_statement_takes_no_memory_but_what_it_writes():
    w, g = nd.ones((300, 1000)), nd.ones((300, 1000))
    w.wait_to_read(), g.wait_to_read()
    w[:] = -0.5 * (g + 0.25 * w)  # compiled
    before = pool.stats().allocations
    for _ in range(3):
        w[:] = -0.5 * (g + 0.25 * w)
    w.wait_to_read()
    assert pool.stats().allocations == before


def test_twenty_statements_take_their_inputs_and_outputs():
    a, b = nd.ones((1000, 250)), nd.full((1000, 250), 0.5)

    def twenty():
        x = a + b
        for _ in range(6):
            y = x * 0.5
            x = y - a
            x = nd.maximum(x, b)
        x += 1
        return x

    expected = np.float32(1.5)
    for _ in range(6):
        expected = max(expected * np.float32(0.5) - 1, np.float32(0.5))
    twenty().wait_to_read()
    before = pool.stats()
    x = twenty()
    x.wait_to_read()
    after = pool.stats()
    assert after.allocations - before.allocations == 1
    assert (x.asnumpy() == expected + 1).all()


def test_many_operators_and_much_memory_end_a_window():
    x = nd.ones((10,))
    for _ in range(500):
        x = x + 1
    assert x._pending_in is None or x._pending_in.trace.count <= 24
    assert x.asnumpy().tolist() == [501] * 10
    big = (64 << 20) // 16
    x = nd.zeros((big,))
    for _ in range(6):
        x = x + nd.ones((big,)).copy()  # the copy lies in memory once it is taken
        assert x._pending_in is None or len(x._pending_in.read) <= 4
    assert float(x[0].asscalar()) == 6


def test_pending_arrays_that_nobody_holds_are_never_computed():
    a = nd.ones((1 << 15,))
    a.wait_to_read()
    before = pool.stats().allocations
    kept = None
    for _ in range(10):
        kept = a * 3 + 1
    nd.waitall()
    assert pool.stats().allocations == before + 1 and kept[0].asscalar() == 4


def test_arrays_go_when_they_are_computed():
    a = nd.ones((1 << 16,))
    a.wait_to_read()
    gc.collect()
    before = pool.stats().used
    for _ in range(20):
        b = a * 2
        c = b + 1
        c.wait_to_read()
    del b, c
    nd.waitall()
    gc.collect()
    assert pool.stats().used == before


@pytest.mark.parametrize("seed", range(3))
def test_threads_share_pending_arrays(seed):
    rng = np.random.default_rng(seed)
    failures: list[BaseException] = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    for _ in range(15):
        base = rng.normal(size=(6, 7)).astype(np.float32)
        x, y = nd.array(base), nd.array(base * 2)
        shared = [x * k + y for k in range(4)]
        chain = shared[0] + shared[1]
        expected = [base * k + base * 2 for k in range(4)]

        def read(k, x=x, y=y, shared=shared, chain=chain, expected=expected):
            for j in range(4):
                mine = shared[(k + j) % 4] * 2 + chain
                want = expected[(k + j) % 4] * 2 + expected[0] + expected[1]
                np.testing.assert_allclose(mine.asnumpy(), want, 1e-5, 1e-5)
                np.testing.assert_allclose(shared[j].asnumpy(), expected[j], 1e-5, 1e-5)

        def write(x=x, y=y):
            x[:] = x * 0 - 1
            y += 100
            x *= 2

        works = [lambda k=k: read(k) for k in range(3)] + [write]
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        assert (x.asnumpy() == -2).all()
        np.testing.assert_allclose(y.asnumpy(), base * 2 + 100, 1e-5)


def test_two_threads_run_programs_at_once():
    texts = [program(100 + k, 25) for k in range(4)]
    quiet = [t.replace("draw(", "(") for t in texts]  # one generator for all threads
    expected = [run(t) for t in quiet]
    failures: list[BaseException] = []

    def work(k):
        try:
            for _ in range(3):
                for name, value in run(quiet[k]).items():
                    np.testing.assert_array_equal(value, expected[k][name])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_an_operator_that_does_not_wait_leaves_the_window_as_it_was():
    a, flags = nd.array([1.0, 2.0]), nd.array([1, 0], dtype="bool")
    for _ in range(3):
        b = a + 1
        both = flags + flags
        with pytest.raises(mx.MXNetError):
            a + flags
        c = b * a
        assert (both.asnumpy().tolist(), c.asnumpy().tolist()) == ([1, 0], [2, 6])


def test_memory_that_only_a_window_holds_goes_when_its_thread_does_something_else():
    before = pool.stats().used
    for n in range(3):
        x = nd.ones((20 << 20) // 4 + n)
        x.wait_to_read()
        y = x * 2
        del x, y
        (nd.ones((3,)) + 1).wait_to_read()
        assert pool.stats().used - before < 20 << 20


def test_a_written_array_is_freed_with_its_last_name():
    gc.collect()
    gc.disable()
    try:
        before = pool.stats().used
        w, g = nd.ones((50_000,)), nd.ones((50_000,))
        for _ in range(3):
            w[:] = w * 0.5 + g
        assert len(w._chunk.pending_readers) <= 1
        w.wait_to_read()
        del w, g
        assert pool.stats().used == before
    finally:
        gc.enable()


def test_in_place_statements_wait_where_no_other_array_looks():
    for _ in range(3):  # by a chain's first kernels, and by native code
        x, b = nd.array([1.0, 2.0, 3.0]), nd.array([1.0, 1.0, 1.0])
        address, before = x._address, pool.stats().allocations
        old = x * 10
        x += b
        x *= 2
        x[:] = (x - b) * x
        assert x._pending_in is not None and pool.stats().allocations == before
        view = x[1:]  # looks at the memory: what is pending is computed
        assert x._pending_in is None and x._address == address
        assert old.asnumpy().tolist() == [10, 20, 30]
        assert x.asnumpy().tolist() == [12, 30, 56]
        x += b  # seen by the view: at once
        assert x._pending_in is None and view.asnumpy().tolist() == [31, 57]
        del view
        alias = x
        x -= b
        assert alias is x and x._pending_in is not None and alias.asnumpy().tolist() == [12, 30, 56]


def test_threads_may_write_one_array_in_place():
    shared, wrong = nd.zeros((16,)), []

    def work():
        for _ in range(300):
            shared.__iadd__(1)
            values = shared.asnumpy()
            if (values != values[0]).any():
                wrong.append(values)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and shared.asnumpy()[0] == 1200


def test_what_failed_fails_alone():
    def fail(run_ctx):
        raise ValueError("no value")

    for lazily in (True, False):
        with config.using(lazy=lazily):
            bad, good = nd.ones((5,)), nd.ones((5,))
            first = good * 2
            engine.get().push_sync(fail, mutate_vars=[bad._var])
            second, third = bad + good, good * 3
            good += 1
            with pytest.raises(engine.EngineError, match="no value"):
                second.asnumpy()
            assert [x.asnumpy()[0] for x in (first, third, good)] == [2, 3, 2]
            bad[:] = good
            assert bad.asnumpy()[0] == 2


def test_a_function_of_one_array_waits_as_operators_do():
    """With and without parameters, as a method, on the tape, on views, sparse and of no array."""
    given = np.abs(values()[0]) + 0.5
    x = nd.array(given)
    for _ in range(3):
        y = nd.sqrt(x).square().relu()
        assert y._pending_in is not None
        np.testing.assert_allclose(nd.log(y).asnumpy(), np.log(given), 1e-5, 1e-5)
        np.testing.assert_allclose(nd.sqrt(data=x[1:]).asnumpy(), np.sqrt(given[1:]), 1e-6)
        np.testing.assert_allclose(x.sum().asnumpy(), [given.sum()], 1e-5)
    x.attach_grad()
    with autograd.record():
        y = nd.sqrt(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 0.5 / np.sqrt(given), 1e-5)
    rows = x.tostype("row_sparse")
    assert abs(rows).stype == nd.sqrt(rows).stype == "row_sparse"
    for wrong in (3.0, None, "x", given):
        with pytest.raises((TypeError, mx.base.MXNetError)):
            nd.sqrt(wrong)

"""Functions of assignments as one native call: they do what their lines do one by one."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import shadow
from gnomon.base import DTypeError, ShapeError
from gnomon.runtime.execution import threads
from gnomon.shadow import Random, Tensor, TensorContainer, fn


def tensors(count: int, n: int = 20, dtype="f") -> list[Tensor]:
    rng = np.random.default_rng(count)
    return [Tensor(rng.integers(-4, 5, size=n).astype(dtype)) for _ in range(count)]


def copies(given) -> list:
    return [Tensor(a.numpy().copy()) if isinstance(a, Tensor) else a for a in given]


def agrees(function, *args, calls: int = 3, **options) -> shadow.jit:
    """`jit` of the function does what the function does, at the first call and later."""
    fast = shadow.jit(function, **options)
    for _ in range(calls):
        twins = copies(args)
        function(*twins)
        fast(*args)
        for a, b in zip(args, twins, strict=True):
            if isinstance(a, Tensor):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    return fast


def launched(fast) -> bool:
    """Whether calls are native."""
    return fast._last is not None


def done(*_: object) -> None:
    """Nothing, whatever was done."""


# -- what it computes --------------------------------------------------------------------------


def test_momentum():
    def update(w, m, g, lr, mu=0.5):
        m[:] = mu * m - lr * (g + 0.125 * w)
        w[:] += m

    fast = agrees(update, *tensors(3), 0.25, 0.5)
    w, m, g = tensors(3)
    with pytest.raises(TypeError, match="missing a required argument: 'lr'"):
        fast(w, m, g)
    with pytest.raises(TypeError, match="too many"):
        fast(w, m, g, 0.1, 0.2, 0.3)
    before = w.numpy().copy()
    fast(w, lr=0.0, m=m, g=g, mu=0.0)
    np.testing.assert_array_equal(w.numpy(), before)


def test_all_savers_views_and_captured_tensors():
    bias = Tensor(np.arange(20, dtype="f"))

    def body(a, b):
        a += b
        a -= 2.0
        b[1:] *= a[:-1]
        b[::2] /= 2.0
        a[3] = 7.0
        a[:] = a + bias
        shadow.flip(b, 0).assign(a)

    assert launched(agrees(body, *tensors(2)))


def test_numbers_that_products_are_divided_by():
    def body(out, v, m, number):
        out[:] = shadow.dot(v, m) / number

    ones = Tensor(np.ones(3, "f")), Tensor(np.ones((3, 3), "f"))
    for number in (0.0, 2.0, 1e-39):
        agrees(body, Tensor(np.ones(3, "f")), *ones, number)


def test_reductions_products_and_functions():
    def body(m, v, s, out):
        s[:] = shadow.reduce(v, "sum", 0, True)
        v[:] = v / shadow.broadcast_to(fn.abs(s) + 1.0, v.shape)
        v[:] = shadow.sum_rows(m) + v
        out[:] = 2.0 * shadow.dot(v, m)
        shadow.softmax(m, m)
        m[:] = m + shadow.broadcast_to(out, m.shape)

    rng = np.random.default_rng(0)
    m = Tensor(rng.normal(size=(5, 5)).astype("f"))
    v, s, out = Tensor(np.ones(5, "f")), Tensor(np.ones(1, "f")), Tensor(np.ones(5, "f"))
    agrees(body, m, v, s, out)


def test_operators_of_ones_own_and_temporaries():
    @shadow.op
    def leaky(x):
        return x if x > 0.0 else 0.125 * x

    def body(a, b):
        t = TensorContainer(a.shape, init=1.0)
        t += shadow.F(leaky)(a)
        b[:] = t * t

    assert launched(agrees(body, *tensors(2)))


@pytest.mark.parametrize("dtype", ["f", "d", "e", "u1", "i1", "i4", "i8", "?"])
def test_dtypes(dtype):
    def body(a, b, k):
        a[:] = b + k
        b *= a
        a -= b

    agrees(body, *tensors(2, dtype=dtype), 1)


def test_numbers_are_computed_as_python_does():
    def body(a, b, beta, k):
        a[:] = a * beta + (1 - beta) * b
        b[:] = b / (1 - beta**k) + abs(-k) * 2

    fast = shadow.jit(body)
    a, b = tensors(2)
    for k in range(1, 6):
        twins = copies([a, b])
        body(*twins, 0.9 / k, k)
        fast(a, b, 0.9 / k, k)
        np.testing.assert_array_equal(a.numpy(), twins[0].numpy())
        np.testing.assert_array_equal(b.numpy(), twins[1].numpy())
    fast(a, b, np.float32(0.5), np.int64(3))


def test_whole_numbers_beside_integers_are_such_as_these_hold():
    def body(a, k):
        a[:] = fn.minimum(a, k)

    fast = shadow.jit(body)
    for k in (200, 7):
        a = Tensor(np.array([1, 100, 255], np.uint8))
        (twin,) = copies([a])
        body(twin, k)
        fast(a, k)
        np.testing.assert_array_equal(a.numpy(), twin.numpy())
    for k in (300, -5):
        with pytest.raises(DTypeError, match=f"an integer that uint8 holds, got {k}"):
            fast(a, k)
    with pytest.raises(DTypeError, match="a number of uint8"):
        fast(a, 0.5)


def test_random_numbers_go_on_in_their_stream():
    ours, theirs = Random(seed=3), Random(seed=3)

    def body(a, rnd):
        a[:] = rnd.uniform(a.shape) - rnd.gaussian(a.shape)

    fast = shadow.jit(body)
    a, b = tensors(2)
    for _ in range(4):
        fast(a, ours)
        body(b, theirs)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    other = Tensor(np.zeros(40, "f")[::2])
    fast(other, ours)
    body(b, theirs)
    np.testing.assert_array_equal(other.numpy(), b.numpy())
    assert ours.state == theirs.state


def test_arrays_that_the_function_makes_are_new_at_each_call():
    def zeros(x):
        return np.zeros(x.shape, np.float32)

    def gathers(x, y):
        total = Tensor(zeros(x))
        total += x
        y[:] = total

    def has_two_handles(x, y):
        array = zeros(x)
        a, b = Tensor(array), Tensor(array[::-1])
        a += x
        b += y
        y[:] = a

    def has_parts(x, y):
        table = Tensor(np.arange(40, dtype="f").reshape(2, 20)[::-1])
        table[0] += x
        table[1, 0:2] += x[0:2]
        y[:] = table[0] * table[1]

    def needs_no_zeros(x, y):
        double = Tensor(np.empty(x.shape, np.float32))
        double[:] = x * 2.0
        double += y
        y[:] = double

    def ends_in_a_cycle(x, y):
        total = Tensor(zeros(x))

        def add(count):
            if count:
                total.assign(total + x)
                add(count - 1)

        add(3)
        y[:] = total

    for body in (gathers, has_two_handles, has_parts, needs_no_zeros, ends_in_a_cycle):
        assert launched(agrees(body, *tensors(2), calls=4))


def test_arrays_that_outlive_the_function_go_on():
    array, kept = np.zeros(20, np.float32), {}

    def gathers(x, y):
        total = Tensor(array)
        total += x
        y[:] = total

    def remembers(x, y):
        total = kept.get("total")
        if total is None:
            total = kept["total"] = Tensor(np.zeros(20, np.float32))
        total += x
        y[:] = total

    for body in (gathers, remembers):
        x, y = tensors(2)
        fast = shadow.jit(body)
        for k in range(1, 4):
            fast(x, y)
            np.testing.assert_array_equal(y.numpy(), k * x.numpy())


def test_streams_that_the_function_makes_begin_anew():
    def draws(x, y):
        own = Random(seed=4)
        first, second = own.split(2)
        x[:] = own.uniform(x.shape) + first.gaussian(x.shape)
        y[:] = own.uniform(x.shape) + second.gaussian(x.shape)

    assert launched(agrees(draws, *tensors(2)))


def test_shapes_of_every_kind():
    def body(a, b):
        a[:] = b * 2.0 + a
        b -= a

    fast = shadow.jit(body)
    for shape in [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 4, 5)]:
        for turn in (lambda x: x, lambda x: x.T):
            x, y = (turn(np.arange(np.prod(shape), dtype="f").reshape(shape)) for _ in range(2))
            given, twins = [Tensor(x), Tensor(y)], [Tensor(x.copy()), Tensor(y.copy())]
            for _ in range(2):
                fast(*given)
                body(*twins)
            np.testing.assert_array_equal(x, twins[0].numpy())


# -- when operands are other ones ---------------------------------------------------------------


def test_operands_that_overlap_otherwise_than_when_it_was_traced():
    def body(a, b, c):
        a[:] = b + c
        c[:] = a * 2.0
        b[:] = c - b

    fast = shadow.jit(body)
    memory = np.arange(40, dtype="f")
    places = [(0, 10, 20), (0, 0, 0), (1, 0, 20), (0, 1, 2), (0, 10, 10), (20, 10, 0), (3, 9, 6)]
    for turn in range(3):
        for place in places:
            ours, theirs = memory.copy(), memory.copy()
            fast(*(Tensor(ours[p : p + 10]) for p in place))
            body(*(Tensor(theirs[p : p + 10]) for p in place))
            np.testing.assert_array_equal(ours, theirs, f"{place} in turn {turn}")


def test_tensors_that_take_another_shape():
    bias = TensorContainer((4,), init=2.0)

    def body(a):
        a[:] = a + bias

    fast = shadow.jit(body)
    a = TensorContainer((4,), init=1.0)
    fast(a)
    fast(a)
    bias.resize((6,)).assign(1.0)
    with pytest.raises(ShapeError):
        fast(a)
    a.resize((6,)).assign(0.0)
    fast(a)
    np.testing.assert_array_equal(a.numpy(), np.ones(6))


def test_what_is_static_is_traced_for_each_value():
    def body(a, power, square, k):
        for _ in range(power):
            a[:] = a * a if square else a + k

    fast = shadow.jit(body, static=["power"])
    for power, square in [(1, True), (3, False), (1, True), (2, True)]:
        (a,) = tensors(1)
        (twin,) = copies([a])
        fast(a, power, square, 0.5)
        body(twin, power, square, 0.5)
        np.testing.assert_array_equal(a.numpy(), twin.numpy())


def test_any_number_of_arguments():
    def body(rate, *weights):
        for k, w in enumerate(weights):
            w[:] = w * rate + k

    fast = shadow.jit(body)
    for count in (2, 1, 3, 2):
        given = tensors(count)
        twins = copies(given)
        fast(0.5, *given)
        body(0.5, *twins)
        for a, b in zip(given, twins, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_methods_and_functions_within_functions():
    class Layer:
        @shadow.jit
        def step(self, a, k):
            a[:] = a * k

    inner = shadow.jit(lambda a: done(a.assign(a + 1.0)))

    @shadow.jit
    def outer(a):
        inner(a)
        inner(a)

    (a,) = tensors(1)
    before = a.numpy().copy()
    for _ in range(2):
        Layer().step(a, 2.0)
        outer(a)
    np.testing.assert_array_equal(a.numpy(), (before * 2 + 2) * 2 + 2)


def test_threads_at_once_and_other_numbers_of_threads():
    @shadow.jit
    def body(a, b, k):
        a[:] = shadow.reduce(b, "sum", 0, True) * 0.0 + k
        b[:] = b + shadow.broadcast_to(a, b.shape)

    wrong = []

    def work(k: float) -> None:
        a, b = Tensor(np.zeros(1, "f")), Tensor(np.zeros(100_000, "f"))
        for _ in range(50):
            body(a, b, k)
        if not (b.numpy() == 50 * k).all():
            wrong.append(k)

    workers = [threading.Thread(target=work, args=(k + 1.0,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    count = threads.num_threads()
    try:
        for n in (1, 3):
            threads.set_num_threads(n)
            work(0.5)
    finally:
        threads.set_num_threads(count)
    assert not wrong


def test_numbers_are_compared_as_they_are():
    x = Tensor(np.array([0, 7, 255], np.uint8))
    y = TensorContainer((3,), "uint8")

    @shadow.jit
    def above(y, x, n):
        y[:] = x >= n

    for n in (300, 255, 7, 0, -5, 2**40):
        above(y, x, n)
        assert y.numpy().tolist() == [int(v >= n) for v in (0, 7, 255)], n


# -- anything against the same line by line -----------------------------------------------------

BINARY = ("add", "sub", "maximum", "minimum")


@st.composite
def programs(draw: st.DrawFn):
    count = draw(st.integers(1, 4))
    starts = [draw(st.sampled_from([0, 40, 80, 120, 1, 43])) for _ in range(count)]
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in range(count)]
    pick = st.integers(0, count - 1)
    part = st.sampled_from(["whole", "whole", "front", "back", "turned"])
    rows = []
    for _ in range(draw(st.integers(2, 6))):
        saver = draw(st.sampled_from(["saveto", "plusto", "minusto", "multo"]))
        kind = draw(st.sampled_from(["map", "map", "number", "sum", "flip"]))
        rows.append((saver, kind, draw(part), draw(pick), draw(pick), draw(pick)))
    return draw(st.sampled_from([2, 9, 33])), starts, steps, rows, draw(st.integers(0, 99))


def piece(t: Tensor, part: str) -> Tensor:
    if part == "front":
        return t[:-1]
    if part == "back":
        return t[1:]
    return shadow.flip(t, 0) if part == "turned" else t


def body_of(rows):
    def body(k, *leaves):
        for saver, kind, part, d, a, b in rows:
            dest, x, y = (piece(leaves[i], part) for i in (d, a, b))
            value = fn.maximum(x, -8.0) - y
            if kind == "number":
                value = x * k + (k - 1)
            elif kind == "flip":
                value = shadow.flip(x, 0) + y
            elif kind == "sum":
                value = shadow.broadcast_to(shadow.reduce(x, "max", 0, True), y.shape) - y
            dest.assign(fn.minimum(fn.maximum(value, -64.0), 64.0), saver)

    return body


@settings(max_examples=40, deadline=None)
@given(programs())
def test_random_functions_equal_their_lines_one_by_one(program) -> None:
    n, starts, steps, rows, seed = program
    body = body_of(rows)
    fast = shadow.jit(body)
    ours = np.random.default_rng(seed).integers(-3, 4, size=200).astype(np.float64)
    theirs = ours.copy()

    def views(memory):
        found = [memory[s : s + n * abs(k)][::k][:n] for s, k in zip(starts, steps, strict=True)]
        return [Tensor(v) for v in found]

    for turn in range(3):
        fast(2.0 - turn, *views(ours))
        body(2.0 - turn, *views(theirs))
        np.testing.assert_array_equal(ours, theirs)
        starts = starts[1:] + starts[:1] if turn else starts


def test_numbers_are_divided_as_python_does():
    def scale(x, k):
        x[:] = x * (k // 2) + x * (7 % k)

    agrees(scale, *tensors(1), 5)
    agrees(scale, *tensors(1), 2.5)


def test_numbers_meet_those_of_numpy():
    def scale(x, k):
        x[:] = np.add(x * (np.float64(0.5) * k), k)

    agrees(scale, *tensors(1), 0.5)


@pytest.mark.parametrize("number", [np.float32(2), np.float16(2), np.int8(2), np.True_])
def test_numbers_meet_those_of_numpy_that_are_not_python_s(number):
    def scale(x, k):
        x[:] = x * (number * k) + (+k - number)

    for k in (3, 0.5):
        assert launched(agrees(scale, *tensors(1), k))
    agrees(lambda x, k: done(x.assign(x * (k + np.int32(1)))), *tensors(1, dtype="i"), 3)

"""Statements, views and nodes that came before are native code's; they mean what Python's did."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import GnomonError, ShapeError
from gnomon.expr import ext
from gnomon.expr.node import Map, Scalar
from gnomon.runtime.statements import call_cache, fields
from gnomon.shadow import F, Tensor, TensorContainer, fn


@pytest.fixture(autouse=True)
def known():
    """Native code has taken over."""
    a, b = TensorContainer((3,), init=1.0), TensorContainer((3,))
    for _ in range(call_cache.PATIENCE + 4):
        b[:] = a + a
    assert call_cache._installed


def tensors(*shapes, dtype="float32"):
    arrays = [np.arange(np.prod(s), dtype=np.float32).reshape(s).astype(dtype) for s in shapes]
    return arrays, [Tensor(a.copy()) for a in arrays]


def test_methods_are_native():
    assert type(Tensor.__add__).__name__ == type(Tensor.__setitem__).__name__ == "method_descriptor"
    assert type(fn.exp).__call__ is not object.__call__


@pytest.mark.parametrize("times", [1, 3, 5])
def test_operators_with_tensors_and_numbers(times):
    (x, y), (a, b) = tensors((7,), (7,))
    y += 1
    b += 1.0
    c = TensorContainer((7,))
    lines = [
        (lambda u, v: u + v), (lambda u, v: u - 2.5), (lambda u, v: 3 * u), (lambda u, v: 1.0 / v),
        (lambda u, v: -u), (lambda u, v: u**2), (lambda u, v: 2.0**v), (lambda u, v: u * u - v / v),
        (lambda u, v: np.float32(0.5) * u), (lambda u, v: u + np.float64(0.25)),
    ]  # fmt: skip
    for line in lines:
        for _ in range(times):
            c[:] = line(a, b)
            np.testing.assert_allclose(c.numpy(), line(x, y), rtol=1e-6)
    for order in ("__lt__", "__le__", "__gt__", "__ge__"):
        for _ in range(times):
            c[:] = getattr(a, order)(3)
            assert (c.numpy() == getattr(x, order)(3)).all()


def test_nodes_are_what_python_makes():
    _, (a, b) = tensors((2, 3), (2, 3))
    made = [fn.maximum(a * 2.0 + b, -b) for _ in range(4)]
    for node in made:
        assert type(node) is Map
        assert node.fn is fn.maximum
        assert node.shape == (2, 3)
        assert node.args[1].args == (b,)
        two = node.args[0].args[0].args[1]
        assert type(two) is Scalar
        assert (two.value, two.shape, two.dtype.name) == (2.0, (), "float32")
    assert made[2].pattern is made[3].pattern


def test_errors_are_python_s_own():
    _, (a, b) = tensors((3,), (4,), dtype="int32")
    for _ in range(3):
        with pytest.raises(ShapeError, match="operand 1"):
            a + b
        with pytest.raises(GnomonError, match="a number of int32"):
            a + 0.5
        with pytest.raises(TypeError, match="operand 1"):
            a + "x"
        with pytest.raises(TypeError, match="operand 1"):
            a * np.ones(3)
        with pytest.raises(TypeError):
            a.__add__()
        with pytest.raises(TypeError):
            fn.exp()
        with pytest.raises(ShapeError, match="destination"):
            a[:] = b
        with pytest.raises(IndexError):
            a[5]
        with pytest.raises(TypeError, match="index"):
            a["x"]


def test_whole_numbers_are_held_to_integers_each_time():
    x = Tensor(np.array([250, 3], np.uint8))
    y = TensorContainer((2,), "uint8")
    for number, wanted in [(10, [4, 13]), (200, [194, 203]), (10, [4, 13]), (127, [121, 130])]:
        for _ in range(3):
            y[:] = x + number
            assert y.numpy().tolist() == wanted, number


KEYS = [
    slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2), slice(-3, 2),
    slice(5, 1), slice(2, 100), slice(-100, 100, 3), slice(None, -(2**63)), slice(2**70, None),
    0, -1, 2,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_views(key):
    (x, y), (a, b) = tensors((6, 5), (6, 5))
    for _ in range(3):
        view = a[key]
        np.testing.assert_array_equal(view.numpy(), x[key])
        assert view.strides == tuple(s // 4 for s in x[key].strides) or 0 in view.shape
        assert view.owner is a.owner
        x[key] = y[key] * 2
        a[key] = b[key] * 2.0
        x[key] -= 1
        a[key] -= 1.0
        np.testing.assert_array_equal(a.numpy(), x)


def test_elements_and_everything():
    (x,), (a,) = tensors((5,))
    for _ in range(3):
        assert [a[k] for k in range(-5, 5)] == [x[k] for k in range(-5, 5)]
        assert a[:] is a
        a[2] = 9.0
        a[2] += 1.0
        assert a[2] == 10.0
        a[2] = 2.0
        assert a[True] == x[1], "a truth value counts as the whole number it is"


def test_a_view_keeps_the_memory():
    view = TensorContainer((4,), init=3.0)[1:]
    for _ in range(4):
        view = TensorContainer((4,), init=3.0)[1:]
    gc.collect()
    other = [TensorContainer((4,), init=7.0) for _ in range(50)]
    assert view.numpy().tolist() == [3, 3, 3]
    assert len(other) == 50


def test_storing_a_part_into_itself_does_nothing():
    _, (a,) = tensors((5,))
    for _ in range(4):
        a[1:] += 1.0
        a[:] = a
        a[1:] = a[1:]
    assert a.numpy().tolist() == [0, 5, 6, 7, 8]


def test_shifts_overlap_safely_each_time():
    (x,), (a,) = tensors((9,))
    for _ in range(6):
        a[1:] = a[:-1] + 1.0
        x[1:] = x[:-1] + 1
        a[:-1] = a[1:]
        x[:-1] = x[1:].copy()
        a[:] = a[::-1] * 1.0
        x[:] = x[::-1].copy()
        np.testing.assert_array_equal(a.numpy(), x)


def test_the_same_statement_over_memory_that_overlaps_now_and_then():
    memory = np.arange(12, dtype=np.float32)
    a, apart = Tensor(memory[:6]), Tensor(np.arange(6, dtype=np.float32))
    for other in (apart, apart, apart, Tensor(memory[3:9]), apart, Tensor(memory[:6]), apart):
        wanted = a.numpy() + other.numpy()
        a[:] = a + other
        np.testing.assert_array_equal(a.numpy(), wanted)


def test_a_container_that_takes_another_shape():
    box, other = TensorContainer((4,), init=1.0), TensorContainer((4,), init=2.0)
    for size in (4, 4, 4, 6, 6, 4, 2, 2):
        if box.shape != (size,):
            box.resize((size,))
            other.resize((size,))
        box[:], other[:] = 1.0, 2.0
        for _ in range(3):
            box[:] = box + other * 2.0
            box += 1
        assert box.numpy().tolist() == [16.0] * size
        assert box[1:].shape == (size - 1,)


def test_freed_memory_is_refused_each_time():
    fresh, other = shadow.alloc_space((4,)), TensorContainer((4,), init=1.0)
    for _ in range(5):
        other[:] = fresh
    shadow.free_space(fresh)
    for _ in range(3):
        with pytest.raises(GnomonError):
            other[:] = fresh
        with pytest.raises(GnomonError):
            fresh[:] = other


def test_functions_of_expressions_are_recalled():
    (x, v), (a, b) = tensors((4, 5), (5,))
    c, d = TensorContainer((4, 5)), TensorContainer((5,))
    for _ in range(4):
        c[:] = a + shadow.broadcast_to(b, (4, 5))
        np.testing.assert_array_equal(c.numpy(), x + v)
        d[:] = shadow.sum_rows(a * 2.0)
        np.testing.assert_array_equal(d.numpy(), 2 * x.sum(0))
        c[:] = shadow.flip(a * 1.0, 1)
        np.testing.assert_array_equal(c.numpy(), x[:, ::-1])
        c[:] = shadow.flip(a * 1.0, 0)
        np.testing.assert_array_equal(c.numpy(), x[::-1])
        assert shadow.reshape(a, (5, 4)).shape == (5, 4)
        assert shadow.reshape(a, (2, 10)).shape == (2, 10)
        assert a.T.T is a


def test_arguments_given_by_name_are_recalled_and_told_from_others():
    (x,), (a,) = tensors((3, 4))
    named = ({"axes": 1, "keepdims": True}, {"axes": 0}, {"keepdims": False, "axes": 1})
    for _ in range(3):
        made = [shadow.reduce(a, "max", **given) for given in named]
        assert [e.shape for e in made] == [(3, 1), (4,), (3,)]
        with pytest.raises(TypeError, match="reduce"):
            shadow.reduce(a, "max", 1, "keepdims", True)
        a[:] = Tensor(x)
        a -= shadow.broadcast_to(shadow.reduce(a, "max", 1, keepdims=True), shape=a.shape)
        assert a.numpy().tolist() == [[-3, -2, -1, 0]] * 3
    assert made[0].pattern is not None  # native code has made it


def test_arguments_that_are_nearly_the_same():
    _, (a,) = tensors((4, 5))
    for _ in range(3):
        assert shadow.pad(a, 1, 0).shape == (6, 5)
        for wrong in (1.0, "1", None, np.ones(2)):
            with pytest.raises((TypeError, GnomonError)):
                shadow.flip(a, wrong)
        with pytest.raises(ShapeError):
            shadow.flip(a, 2)
        assert shadow.flip(a * 1.0, -1).shape == (4, 5)


def test_a_pad_of_minus_zero_is_another_kernel():
    _, (a,) = tensors((2,))
    for value in (0.0, -0.0, 0.0, -0.0):
        c = TensorContainer((4,))
        c[:] = ext.pad(a, (1,), (1,), value)
        assert np.signbit(c.numpy()[[0, 3]]).tolist() == [np.signbit(value)] * 2


def test_what_is_known_is_bounded():
    before = len(call_cache._kept)
    (x,), (a,) = tensors((3000,))
    for k in range(2999):
        assert a[k : k + 1].numpy()[0] == x[k]
    assert before <= len(call_cache._kept) <= 1 << 12


def test_nothing_leaks():
    _, (a, b, c) = tensors((10,), (10,), (10,))
    F(fn.maximum)

    def lines():
        for _ in range(200):
            c[:] = -0.5 * (a + 2.0 * b)
            c[1:] = a[:-1]
            c[:] = F(fn.maximum)(a, b) * np.float32(2)
            c[:] = shadow.flip(a + b, 0)
            c[:] = 0.25

    lines()
    gc.collect()
    before, references = sys.getallocatedblocks(), sys.getrefcount(a.pattern)
    lines()
    gc.collect()
    assert abs(sys.getallocatedblocks() - before) < 100
    assert abs(sys.getrefcount(a.pattern) - references) < 10


def test_threads_at_once():
    _, (a, b) = tensors((50,), (50,))
    found = []

    def work(k):
        c = TensorContainer((50,))
        good = True
        for j in range(300):
            c[:] = a * float(k) + b[::-1][::-1] * float(j)
            good &= bool((c.numpy() == a.numpy() * k + b.numpy() * j).all())
        found.append(good)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_fields_are_where_they_are_found():
    class Point:
        __slots__ = ("x", "y")

    found = fields.field(Point, "y")
    assert found is not None
    assert found.kind is Point
    assert fields.field(Point, "__doc__") is None
    assert fields.field(int, "real") is None


def test_tensors_that_nobody_has_looked_at_yet():
    memory = np.arange(9, dtype=np.float32).reshape(3, 3)
    wanted = memory.T.copy()
    turned, plain = Tensor(memory.T), Tensor(memory)
    assert turned.address == plain.address
    plain[:] = turned
    np.testing.assert_array_equal(memory, wanted)
    for _ in range(3):
        with pytest.raises(ValueError, match="step"):
            Tensor(memory)[0:0:0]
        Tensor(memory)[0:0] = 1.0


def test_views_by_functions_outlive_a_change_of_their_container():
    for _ in range(4):
        box = TensorContainer((2, 3), init=3.0)
        flipped, cut = shadow.flip(box, 0), shadow.slice(box, 0, 1)
        box.resize((500, 300))
        others = [TensorContainer((2, 3), init=7.0) for _ in range(20)]
        assert (flipped.numpy() == 3.0).all()
        assert (cut.numpy() == 3.0).all()
        assert len(others) == 20


def test_views_by_functions_are_recalled():
    (x, y), (a, b) = tensors((4, 5), (4, 5))
    for k in range(4):
        source, array = (a, x) if k % 2 else (b[:], y)
        np.testing.assert_array_equal(shadow.flip(source, 0).numpy(), array[::-1])
        np.testing.assert_array_equal(shadow.flip(source, 1).numpy(), array[:, ::-1])
        np.testing.assert_array_equal(shadow.slice(source, 1, 3).numpy(), array[1:3])
        assert type(shadow.flip(source, 0)) is Tensor


def test_functions_of_the_same_operand_twice_and_of_two():
    rng = np.random.default_rng(0)
    x, y = (rng.random((3, 3), np.float32) for _ in range(2))
    a, b, c = Tensor(x.copy()), Tensor(y.copy()), TensorContainer((3, 3))
    for left, right, wanted in [(a, a, x @ x), (a, a, x @ x), (a, b, x @ y), (b, a, y @ x)] * 2:
        c[:] = shadow.dot(left, right)
        np.testing.assert_allclose(c.numpy(), wanted, rtol=1e-5)


def test_functions_that_store_do_so_each_time():
    t = Tensor(np.zeros((4, 3), np.float32))
    dest, source = t[:2], t[2:]
    for k in range(1, 5):
        source[:] = float(k)
        assert shadow.copy(dest, source) is dest
        assert dest.numpy().tolist() == [[k] * 3] * 2
        shadow.softmax(dest, source)
        np.testing.assert_allclose(dest.numpy(), 1 / 3, rtol=1e-6)


def test_what_a_function_gives_back_is_not_made_anew():
    for _ in range(4):
        row = shadow.range(0.0, 5.0)
        assert shadow.reshape(row, (5,)) is row


def test_more_arguments_than_the_stack_holds():
    a = TensorContainer((3,), init=1.0)
    for method in (Tensor.__add__, Tensor.__getitem__, Tensor.__iadd__):
        with pytest.raises(TypeError, match="1000000 were given"):
            method(a, *[1.0] * 1_000_000)
    with pytest.raises(TypeError, match="1000000"):
        fn.exp(*[1.0] * 1_000_000)


def run(text):
    """Run in a fresh interpreter, after native code has taken over."""
    warm = """
        import gc, sys, threading, time
        import numpy as np
        from gnomon import shadow
        from gnomon.runtime.statements import call_cache, dispatch
        from gnomon.shadow import Tensor, TensorContainer
        a, b = TensorContainer((3,), init=1.0), TensorContainer((3,))
        for _ in range(call_cache.PATIENCE + 4):
            b[:] = a + a
        assert call_cache._installed
    """
    source = textwrap.dedent(warm) + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-c", source], check=False, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forgetting_while_other_threads_run():
    text = """
        sys.setswitchinterval(1e-5)
        end, bad = time.time() + 3, []

        def work(k):
            a, c = Tensor(np.arange(5000, dtype=np.float32)), TensorContainer((7,))
            big, to = TensorContainer((400_000,), init=1.0), TensorContainer((400_000,))
            rng = np.random.default_rng(k)
            while time.time() < end:
                to[:] = big * float(k)
                for j in map(int, rng.integers(0, 4900, 50)):
                    c[:] = a[j : j + 7] + a[j + 1 : j + 8]
                    part = shadow.slice(a, j, j + 3)
                    if c.numpy()[0] != 2 * j + 1 or part.address != a.address + 4 * j:
                        bad.append(j)
            done.append(k)

        def forget():
            while time.time() < end:
                dispatch.forget()
                junk = [bytes(k) for k in range(8, 4000, 8)]
                time.sleep(0.0005)
            done.append(-1)

        done = []
        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
        threads.append(threading.Thread(target=forget))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(sorted(done), bad)
    """
    assert run(text) == "[-1, 1, 2] []\n"


def test_a_finalizer_that_empties_the_table():
    text = """
        box, other = TensorContainer((4,)), TensorContainer((5,), init=1.0)
        count = 0

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                global count, junk
                count += 1
                box.resize((4 + count % 2,))
                other[1:], other + 1.0
                junk = [bytes(k) for k in range(40, 200, 8)]

        gc.set_threshold(17, 1, 1)
        a, c = Tensor(np.arange(50, dtype=np.float32)), TensorContainer((50,))
        for _ in range(3000):
            Cycle()
            c[:] = a * 2.0 + a
            assert shadow.flip(a, 0).shape == a[0:].shape == (a * 2.0).shape == (50,)
            assert (c.numpy() == a.numpy() * 3).all()
        print(count > 2000)
    """
    assert run(text) == "True\n"


def test_operators_while_the_interpreter_ends():
    text = """
        import os
        from gnomon import base
        from gnomon.runtime import ffi

        class Last:
            def __init__(self):
                self.a, self.b = TensorContainer((30,), init=1.0), TensorContainer((30,))

            def lines(self, range=range):
                for _ in range(5):
                    self.b[:] = self.a + self.a * 2.0
                    self.b[1:] = self.a[:-1]
                    self.b += 1.0

            def __del__(self, lines=lines, error=Exception):
                try:
                    lines(self)
                except error:
                    pass

        for place in (np, sys, base, call_cache, ffi, dispatch, Tensor, Last):
            place.last = Last()
            place.last.lines()
    """
    run(text)

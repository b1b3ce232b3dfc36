"""Maps over many shapes and strides share their kernels, and give what NumPy gives."""

import itertools
from collections import OrderedDict

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr.layout import ANY, JOINED, UNIT, ZERO
from gnomon.expr.node import Buffer, Cast
from gnomon.plan.canonical import canonical
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.statements.dispatch import store


def leaf(x):
    strides = [s // x.itemsize for s in x.strides]
    return Buffer(x.shape, dt.of(x.dtype.name), strides, x.ctypes.data, x)


def few(dest, value, saver="saveto"):
    """The canonical form of a statement."""
    stores = [Store(dest, saver, value)]
    (made,) = canonical(stores, Structure(stores))
    return made


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(3).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16, np.uint8, np.float64])
def test_every_order_of_axes(dtype):
    x = numbers(2, 3, 1, 4, 5, dtype=dtype)
    for order in itertools.permutations(range(5)):
        view = x.transpose(order)
        copied, added = np.empty(view.shape, dtype), np.empty(view.shape, dtype)
        store(leaf(copied), "saveto", leaf(view))
        store(leaf(added), "saveto", leaf(view) + leaf(copied))
        assert (copied == view).all()
        assert (added == view + copied).all()
        back = np.empty(x.shape, dtype)
        store(leaf(back.transpose(order)), "saveto", leaf(copied))
        assert (back == x).all()


def test_stretched_axes_in_every_place():
    for kept in itertools.product((False, True), repeat=4):
        shape = [n if here else 1 for n, here in zip((3, 2, 4, 5), kept, strict=True)]
        a, b = numbers(3, 2, 4, 5), numbers(*shape)
        over = np.broadcast_to(b, a.shape)
        out = np.zeros_like(a)
        store(leaf(out), "plusto", leaf(a) * leaf(over) - leaf(over))
        assert (out == a * b - b).all()


def test_slices_with_steps_forward_and_backward():
    x = numbers(6, 5, 7)
    for view in (x[::2, 1:4, ::3], x[::-1, :, ::-1], x[1:, ::-2], x[:, :, :3], x[4:5, 1:2]):
        out = np.zeros(view.shape, np.int32)
        store(leaf(out), "minusto", Cast(leaf(view), dt.int32))
        assert (out == -view.astype(np.int32)).all()


def test_a_copy_keeps_all_bits():
    for dtype, word in ((np.float32, np.uint32), (np.float64, np.uint64)):
        bits = np.array([[1, 2, 3], [4, 5, 6]], word) + ~word(5000)  # signalling and other NaNs
        x = bits.view(dtype).T
        out = np.empty((3, 2), dtype)
        store(leaf(out), "saveto", leaf(x))
        assert (out.view(word) == bits.T).all()


def test_what_is_stored_to_may_be_read_elsewhere():
    x = numbers(4, 5, 6)
    expected = x + x[::-1]
    store(leaf(x), "saveto", leaf(x) + leaf(x[::-1]))
    assert (x == expected).all()
    y = numbers(3, 4, 4)
    expected = y.transpose(0, 2, 1).copy()
    store(leaf(y), "saveto", leaf(y.transpose(0, 2, 1)))
    assert (y == expected).all()


def test_axes_are_joined_where_all_memories_allow_it():
    out, x = np.zeros((2, 3, 4, 5), np.float32), numbers(4, 5, 2, 3)
    turned = leaf(x.transpose(2, 3, 0, 1))
    made = few(leaf(out), turned)
    assert made.dest.shape == (6, 20)
    assert made.dest.layout == (JOINED, UNIT)
    assert made.value.layout == (UNIT, ANY)
    row = leaf(np.broadcast_to(numbers(1, 1, 4, 5), out.shape))
    added = few(leaf(out), leaf(out) + row)
    assert added.value.args[1].layout == (ZERO, UNIT)
    assert added.value.args[0] is added.dest
    column = leaf(np.broadcast_to(numbers(2, 3, 1, 1), out.shape))
    assert few(leaf(out), leaf(out) + column).value.args[1].layout == (ANY, ZERO)


def test_forms_do_not_tell_sizes_nor_outer_strides(monkeypatch):
    monkeypatch.setattr(CACHE, "kernels", OrderedDict())  # that of a long run of tests may be full

    def kernels(*views):
        for view in views:
            out = np.zeros(view.shape, view.dtype)
            store(leaf(out), "saveto", leaf(view))
            assert (out == view).all()
        return len(CACHE.kernels)

    x, y = numbers(2, 3, 4, 5), numbers(6, 6, 6, 6)
    first = kernels(x.transpose(2, 1, 0, 3))
    other = [y.transpose(2, 1, 0, 3), numbers(3, 3, 3, 1, 7).transpose(2, 1, 0, 3, 4)]
    ints = numbers(3, 4, 5, 6, dtype=np.int32).transpose(2, 1, 0, 3)
    assert kernels(*other, ints, np.broadcast_to(x[:, :1, :, :2], (2, 3, 4, 2))[:, ::-1]) == first


def forms(values):
    """How many forms there are of values that are stored densely."""
    found = set()
    for value in values:
        stores = [Store(leaf(np.empty(value.shape, np.float32)), "saveto", value)]
        found.add(Structure(canonical(stores, Structure(stores))).key)
    return len(found)


def test_stretched_operands_of_all_ranks_have_few_forms():
    def sums(shape):
        for kept in itertools.product((slice(None), slice(1)), repeat=len(shape)):
            x, y = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
            yield leaf(x) + leaf(np.broadcast_to(y[kept], shape))

    shapes = [s for rank in range(1, 6) for s in itertools.product((2, 3), repeat=rank)]
    # dense ones, with a number, and with a row or a column over two axes or more
    assert forms(value for shape in shapes for value in sums(shape)) == 6


def test_orders_of_three_to_five_axes_have_few_forms():
    def turned(rank):
        x = np.zeros(range(2, 2 + rank), np.float32)
        return (leaf(x.transpose(order)) for order in itertools.permutations(range(rank)))

    # a matrix turned; more axes with the last one, the one before, or neither dense; as they are
    assert forms(value for rank in range(1, 6) for value in turned(rank)) == 5


def test_squares_have_a_form_of_their_own_where_they_are_read_across():
    x, y = np.zeros((6, 6), np.float32), np.zeros((6, 7), np.float32)
    assert forms(leaf(view[:, :5]) for view in (x, y, x[:5])) == 1
    assert forms(leaf(view[::2, ::3]) for view in (x, y)) == 1
    assert forms(leaf(view.T) for view in (x, y)) == 2


@pytest.mark.parametrize(("dtype", "word"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_a_dense_copy_is_one_of_integers(dtype, word):
    for shape in ((), (1, 1), (7,), (2, 3)):
        x, out = numbers(*shape, dtype=dtype), np.empty(shape, dtype)
        made = few(leaf(out), leaf(x))
        assert made.dest.dtype is made.value.dtype is dt.of(word.__name__)
        store(leaf(out), "saveto", leaf(x))
        assert (out == x).all()

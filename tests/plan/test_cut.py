"""Where the results of library calls lie: in temporaries, or where maps of them are stored."""

from __future__ import annotations

import pytest

from gnomon.expr import ext, fn
from gnomon.expr.call.dot import dot
from gnomon.expr.node import Buffer, cast
from gnomon.plan.cut import Invoke, cut, scaled
from gnomon.plan.statement import Store


class Libraries:
    """They do every call, and store it anywhere."""

    def supported(self, call):
        return True

    def fits(self, call, dest):
        return True


def buffers():
    """Operands of a product, a row, a matrix, and a destination, far from each other."""
    shapes = (4, 5), (5, 3), (3,), (4, 3), (4, 3)
    return [Buffer(shape, address=(k + 1) << 20) for k, shape in enumerate(shapes)]


A, B, ROW, OTHER, DEST = buffers()


def product():
    return dot(A, B)


def spread():
    return ext.broadcast_to(ROW, (4, 3))


@pytest.mark.parametrize(
    ("value", "temporaries"),
    [
        (fn.relu(product() + spread()) * OTHER, 0),
        (product() * OTHER - ext.transpose(ext.transpose(OTHER)), 0),
        (ext.flip(product(), 0) + OTHER, 1),  # read in another order
        (product() + DEST, 1),  # what it would lie in is read
        (cast(cast(product(), "int32"), "float32"), 0),
    ],
)
def test_a_call_lies_where_maps_of_it_are_stored(value, temporaries):
    made = []

    def temporary(e):
        made.append(Buffer(e.shape, e.dtype, address=(64 + len(made)) << 20))
        return made[-1]

    pieces = cut([Store(DEST, "saveto", value)], Libraries(), temporary)
    (invoke,) = [p for p in pieces if isinstance(p, Invoke)]
    assert len(made) == temporaries
    assert (invoke.dest is DEST) is not temporaries


def test_a_call_that_two_statements_read_has_a_temporary():
    call, made = product(), []

    def temporary(e):
        made.append(Buffer(e.shape, e.dtype, address=64 << 20))
        return made[-1]

    stores = [Store(DEST, "saveto", call + OTHER), Store(OTHER, "saveto", call * 2.0)]
    pieces = cut(stores, Libraries(), temporary)
    assert pieces[0].dest is made[0] and len(made) == 1


@pytest.mark.parametrize(
    ("times", "factor"),
    [
        (lambda x: -(x * 3.0) / 2.0, -1.5),
        (lambda x: (x * 1e30) * 1e-30, 1.0),
        (lambda x: x * 0.0, None),  # NaN times 0 is NaN, which libraries do not read then
        (lambda x: x * float("nan"), None),
        (lambda x: x * float("inf"), None),
        (lambda x: x * 1e39, None),  # float32 has no such number
        (lambda x: x / 1e-39, None),
        (lambda x: x * 1e-39, None),
    ],
)
def test_factors_that_libraries_take_as_they_are_meant(times, factor):
    call = product()
    value = times(call)
    assert scaled(value) == ((value, 1.0) if factor is None else (call, pytest.approx(factor)))


def test_a_factor_that_is_none_of_a_call_is_multiplied_behind_it():
    invoke, (store,) = cut([Store(DEST, "saveto", product() * 0.0)], Libraries(), Buffer)
    assert invoke.scale == 1.0
    assert store.dest is DEST

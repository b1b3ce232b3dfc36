"""Epilogues: which parts of expressions become one call with a product, and which do not."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dtypes
from gnomon.base import ShapeError
from gnomon.expr import ext, fn
from gnomon.expr.call import Affine, batch_dot, dot
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.plan.cut import Invoke, cut
from gnomon.plan.epilogue import with_epilogue
from gnomon.plan.statement import Store
from gnomon.runtime.kernels.scratch import temporary
from tests.plan.test_expressions import over

NUMBERS = np.random.RandomState(0)


def drawn(*shape):
    return over(NUMBERS.randn(*shape).astype(np.float32))


A, B, C, ROW = drawn(4, 3), drawn(3, 5), drawn(4, 5), drawn(5)
MANY, TURNED = drawn(2, 4, 3), drawn(2, 5, 3)
AB, OTHER = dot(A, B), dot(C, drawn(5, 2))
SPREAD = ext.broadcast_axis(ROW, (4, 5), 1)
ONE = dot(drawn(1, 3), B)
BATCH = batch_dot(MANY, TURNED, transpose_b=True)
DEEP = ext.reshape(AB, (2, 2, 5))


@pytest.mark.parametrize(
    ("call", "value", "has_row", "relu"),
    [
        (AB, AB + SPREAD, True, False),
        (AB, SPREAD + AB, True, False),
        (AB, fn.relu(AB), False, True),
        (AB, fn.relu(AB + SPREAD), True, True),
        (AB, ext.reshape(fn.relu(ext.reshape(AB + SPREAD, (2, 10))), (20,)), True, True),
        (AB, fn.relu(DEEP + ext.broadcast_to(ROW, (2, 2, 5))), True, True),
        (AB, dot(fn.relu(AB + SPREAD), drawn(5, 2)), True, True),
        (AB, AB + ext.broadcast_axis(ROW * 2.0, (4, 5), 1), True, False),
        (ONE, ONE + drawn(1, 5), True, False),
        (BATCH, fn.relu(BATCH + ext.broadcast_axis(ROW, (2, 4, 5), 2)), True, True),
    ],
)
def test_what_is_one_call(call, value, has_row, relu):
    part, made = with_epilogue(call, [value], lambda call: True)
    whole = made if isinstance(made, Affine) else made.src
    assert (whole.row is not None, whole.relu) == (has_row, relu)
    np.testing.assert_allclose(evaluate(made), evaluate(part), rtol=1e-6)
    np.testing.assert_allclose(evaluate(whole.fallback()), evaluate(whole), rtol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        (AB,),
        (AB + C,),
        (AB + AB,),
        (AB + 1.0,),
        (AB * SPREAD,),
        (SPREAD - AB,),
        (AB + ext.broadcast_axis(drawn(4), (4, 5), 0),),
        (fn.tanh(AB + SPREAD),),  # a kernel reads the product anyhow
        (2.0 * fn.relu(AB),),
        (AB + SPREAD, AB),
        (fn.relu(AB + SPREAD) + AB,),
        (ext.reshape(AB, (5, 4)) + ext.broadcast_axis(drawn(4), (5, 4), 1),),
    ],
)
def test_what_is_not(values):
    assert with_epilogue(AB, values, lambda call: True) is None


def test_others_may_read_what_lies_between():
    biased = AB + SPREAD
    assert with_epilogue(AB, [biased, fn.relu(biased)], lambda call: True) is None
    part, made = with_epilogue(AB, [biased, dot(biased, drawn(5, 2))], lambda call: True)
    assert part is biased and not made.relu


def test_a_library_is_asked():
    asked = []
    assert with_epilogue(AB, [fn.relu(AB)], asked.append) is None
    assert [type(call) for call in asked] == [Affine]


class Everything:
    """Libraries that do every call, and store it anywhere."""

    has_epilogues = True

    def supported(self, call):
        return True

    def fits(self, call, dest):
        return True


def pieces_of(saver, value):
    dest = temporary(value)
    return dest, cut([Store(dest, saver, value)], Everything(), temporary)


def test_it_is_stored_straight():
    dest, (piece,) = pieces_of("saveto", fn.relu(AB + SPREAD))
    assert isinstance(piece, Invoke) and piece.dest is dest
    assert piece.call.row.strides == (1,) and piece.call.row.address == ROW.address


@pytest.mark.parametrize(("saver", "value"), [("plusto", AB + SPREAD), ("multo", fn.relu(AB))])
def test_an_update_of_it_is_a_kernel(saver, value):
    dest, (piece, (store,)) = pieces_of(saver, value)
    assert (piece.saver, piece.scale) == ("saveto", 1.0)
    assert (store.dest, store.saver, store.value) == (dest, saver, piece.dest)


def test_a_multiple_of_it_is_a_kernel():
    call = Affine(A, B, ROW, False, False, True)
    dest, (piece, (store,)) = pieces_of("saveto", call * 2.0)
    assert piece.scale == 1.0 and store.dest is dest and piece.dest is not dest


def test_a_row_where_it_is_stored_is_kept_till_then():
    square = drawn(1, 5)
    call = dot(drawn(1, 5), drawn(5, 5)) + square
    piece, (store,) = cut([Store(square, "saveto", call)], Everything(), temporary)
    assert piece.dest is not square and store.dest is square


@pytest.mark.parametrize(
    "row", [Buffer((4,)), Buffer((1, 5)), Buffer((5,), dtypes.float64)], ids=["4", "1x5", "float64"]
)
def test_a_row_that_does_not_fit_is_refused(row):
    with pytest.raises(ShapeError, match="argument 'row': expected shape \\(5,\\), float32"):
        Affine(A, B, row, False, False, False)

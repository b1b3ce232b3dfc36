"""What an expression is, by mshadow's names of the kinds."""

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ShapeError

A = shadow.Tensor(np.ones((2, 3), np.float32))
KINDS = {
    name: getattr(shadow, name)
    for name in (
        "RValueExp ScalarExp TypecastExp TransposeExp UnaryMapExp BinaryMapExp TernaryMapExp DotExp"
    ).split()
}


@pytest.mark.parametrize(
    ("e", "expected", "exp_type", "shape"),
    [
        (A, "RValueExp", 0, (2, 3)),
        (shadow.TensorContainer((2, 3)), "RValueExp", 0, (2, 3)),
        (shadow.concat(A, A), "RValueExp", 3, (4, 3)),
        (shadow.scalar(2), "ScalarExp", 1, None),
        (shadow.tcast("int32", A), "TypecastExp", 1, (2, 3)),
        (A.T, "TransposeExp", 3, (3, 2)),
        ((A + A).T, "TransposeExp", 3, (3, 2)),
        (-A, "UnaryMapExp", 1, (2, 3)),
        (2.0 - A, "BinaryMapExp", 1, (2, 3)),
        (shadow.fn.where(A, A, 0.0), "TernaryMapExp", 1, (2, 3)),
        (shadow.dot(A, A.T), "DotExp", 7, (2, 2)),
    ],
)
def test_an_expression_is_of_one_kind(e, expected, exp_type, shape):
    assert [name for name, kind in KINDS.items() if isinstance(e, kind)] == [expected]
    info = shadow.ExpInfo(e)
    assert (info.exp_type, info.shape, info.dim) == (exp_type, shape, shape and len(shape))
    assert info.dtype is e.dtype


def test_what_is_no_expression_is_of_no_kind():
    assert not any(isinstance(np.ones(3), kind) for kind in KINDS.values())
    with pytest.raises(TypeError, match=r"ExpInfo: argument 'e': expected an expression.*ndarray"):
        shadow.ExpInfo(np.ones(3))


@pytest.mark.parametrize("axes", [np.float32(2), (1, 0.0), (0, 0), (1,), "10", None])
def test_a_transpose_is_made_of_every_axis_once(axes):
    expected = r"transpose: argument 'axes': expected a tuple of every axis of <Tensor 2x3.*once"
    with pytest.raises(ShapeError, match=expected):
        shadow.TransposeExp(A, axes)

"""`autograd.Function`: what its `backward` gives is taken as its inputs are, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.base import ParamError, ShapeError


class Given(autograd.Function):
    """Twice its first input, with the gradients that it is told."""

    def __init__(self, gives):
        super().__init__()
        self.gives = gives

    def forward(self, x, *others):
        return x * 2

    def backward(self, dy):
        return self.gives(dy)


def gradient(gives, *, leaf: bool) -> np.ndarray:
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = Given(gives)(x if leaf else x * 3)
    y.backward()
    return x.grad.asnumpy()


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize(
    ("gives", "wanted"),
    [
        (lambda dy: nd.array([[1, 2, 3]]), [[1, 2, 3]] * 2),
        (lambda dy: nd.array([1, 2, 3]), [[1, 2, 3]] * 2),
        (lambda dy: dy.reshape((1, 2, 3)), [[1] * 3] * 2),
        (lambda dy: dy.astype("float64"), [[1] * 3] * 2),
        (lambda dy: dy.astype("int32"), [[1] * 3] * 2),
        (lambda dy: [None], [[0] * 3] * 2),
    ],
)
def test_a_gradient_takes_the_shape_and_dtype_of_its_input(gives, wanted, leaf):
    found = gradient(gives, leaf=leaf)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(wanted) * (1 if leaf else 3))


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize(
    ("gives", "error", "message"),
    [
        (lambda dy: nd.ones((3, 3)), ShapeError, r"'gradient 0'.*\(2, 3\).*got shape \(3, 3\)"),
        (lambda dy: nd.ones((2, 2, 3)), ShapeError, r"'gradient 0'.*got shape \(2, 2, 3\)"),
        (lambda dy: 1.0, TypeError, "'result': expected an NDArray or a list, got 1.0"),
        (lambda dy: dy.asnumpy(), TypeError, "'result': expected an NDArray or a list"),
        (lambda dy: [1.0], TypeError, "'gradient 0': expected an NDArray.*got 1.0"),
        (lambda dy: None, TypeError, "'result': expected an NDArray or a list, got None"),
        (lambda dy: [dy, dy], ParamError, "'result': expected 1 gradients, one an input, got 2"),
    ],
)
def test_another_gradient_is_refused_with_the_name_of_the_class(gives, error, message, leaf):
    with pytest.raises(error, match=f"^Given.backward: argument {message}"):
        gradient(gives, leaf=leaf)


@pytest.mark.parametrize("result", [None, 1.0, [1.0], [], np.ones(3)], ids=repr)
def test_outputs_are_arrays(result):
    class Wrong(autograd.Function):
        def forward(self, x):
            return result

    with pytest.raises((TypeError, ParamError), match=r"^Wrong.forward: argument 'result"):
        Wrong()(nd.ones(3))


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("recorded", [True, False])
def test_several_outputs_come_as_forward_gives_them(kind, recorded):
    class Two(autograd.Function):
        def forward(self, x):
            return kind([x * 2, x + 1])

    x = nd.array([3])
    x.attach_grad()
    with autograd.record() if recorded else autograd.pause():
        found = Two()(x)
    assert type(found) is kind
    assert [float(y.asscalar()) for y in found] == [6, 4]

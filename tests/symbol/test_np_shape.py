"""Shapes with sizes of 0 and without axes: inferred, bound and trained as arrays know them."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden import np_shapes

import gnomon as mx

RECORDED = json.loads(
    (Path(__file__).parent.parent / "golden" / "np_shapes.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("name", np_shapes.CASES)
def test_inference(name, active):
    assert np_shapes.inferred(mx, name, active) == RECORDED[name][str(active)]


def test_scalars_are_bound_and_trained():
    total = mx.sym.var("x") * mx.sym.var("y")
    with mx.np_shape():
        bound = total.simple_bind(mx.cpu(), x=(), y=())
    bound.arg_dict["x"][()], bound.arg_dict["y"][()] = 2, 3
    (output,) = bound.forward(is_train=True)
    bound.backward([mx.nd.array(np.float32(1))])
    assert (output.shape, output.asscalar()) == ((), 6)
    assert bound.grad_dict["x"].asscalar() == 3


def test_a_batch_of_nothing_trains_nothing():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="fc")
    net = mx.sym.sum(mx.sym.Activation(net, act_type="relu"), axis=0)
    with mx.np_shape():
        bound = net.simple_bind(mx.cpu(), x=(0, 3), grad_req="write")
    for gradient in bound.grad_dict.values():
        gradient[:] = 7
    (output,) = bound.forward(is_train=True)
    bound.backward([mx.nd.ones((4,))])
    assert output.asnumpy().tolist() == [0] * 4
    assert bound.grad_dict["x"].shape == (0, 3)
    assert not bound.grad_dict["fc_weight"].asnumpy().any()


def test_arrays_that_are_bound_need_no_scope():
    net = mx.sym.sum(mx.sym.var("x"), axis=0)
    (output,) = net.bind(mx.cpu(), {"x": mx.nd.empty((0, 3))}).forward()
    assert output.asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("hybrid", [False, True])
def test_layers_learn_their_sizes(hybrid):
    layer = mx.gluon.nn.HybridSequential()
    layer.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
    layer.initialize()
    if hybrid:
        layer.hybridize()
    with mx.np_shape():
        assert layer[0].weight.shape == (4, -1)
        assert layer(mx.nd.empty((0, 3))).shape == (0, 2)
    assert layer[0].weight.shape == (4, 3)
    assert layer(mx.nd.ones((2, 3))).shape == (2, 2)


def test_loops_over_nothing_keep_their_states():
    step = lambda x, s: (x + s, x + s)  # noqa: E731
    made, end = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    given = {"x": mx.nd.empty((0, 3)), "s": mx.nd.ones((3,))}
    outputs = mx.sym.Group([made, end]).bind(mx.cpu(), given).forward()
    assert outputs[0].shape == (0, 3)
    assert outputs[1].asnumpy().tolist() == [1, 1, 1]


def test_loops_over_elements():
    step = lambda x, s: (x * s, x + s)  # noqa: E731
    made, end = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("s"))
    given = {"x": mx.nd.array([1, 2, 3, 4, 5]), "s": mx.nd.array([2])}
    grads = {name: mx.nd.zeros(x.shape) for name, x in given.items()}
    bound = mx.sym.Group([made, end]).bind(mx.cpu(), given, grads)
    rows, last = bound.forward(is_train=True)
    bound.backward([mx.nd.ones((5, 1)), mx.nd.zeros((1,))])
    assert rows.shape == (5, 1)
    assert rows.asnumpy().ravel().tolist() == [2, 6, 15, 32, 60]
    assert last.asnumpy().tolist() == [17]
    assert grads["s"].asnumpy().tolist() == [15]
    assert grads["x"].asnumpy().tolist() == [16, 15, 14, 13, 12]


def test_one_element_of_an_array_has_no_axes_in_numpys_meaning():
    x = mx.nd.array([[1, 2], [3, 4]])
    assert x[1, 1].shape == (1,)
    x.attach_grad()
    with mx.np_shape():
        assert x[1, 1].shape == ()
        assert [row.shape for row in x[0]] == [(), ()]
        with mx.autograd.record():
            y = x[1, 0] * 2
        y.backward()
    assert y.shape == ()
    assert x.grad.asnumpy().tolist() == [[0, 0], [2, 0]]


def test_custom_operators_are_told_of_unknown_sizes_as_0():
    told = []

    class Rows(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] + 1)

    @mx.operator.register("test_np_shape_rows")
    class RowsProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            told.append(tuple(in_shape[0]))
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, shapes, dtypes):
            return Rows()

    net = mx.sym.Custom(mx.sym.var("x"), op_type="test_np_shape_rows")
    assert net.infer_shape_partial(x=(-1, 3))[1] == [(0, 3)]
    assert told[-1] == (0, 3)
    with mx.np_shape():
        assert net.infer_shape_partial(x=(-1, 3))[1] == [(-1, 3)]
        assert net.infer_shape(x=(0, 3))[1] == [(0, 3)]


def test_wrong_values_of_the_switch():
    with pytest.raises(TypeError):
        mx.util.set_np_shape("on")


@pytest.mark.parametrize(
    ("name", "value"), [("transpose", 0.5), ("softmax", 1), ("log_softmax", 0), ("softmin", 1)]
)
def test_operators_along_an_axis_take_scalars(name, value):
    with mx.np_shape():
        x = mx.nd.array(np.float32(0.5))
        x.attach_grad()
        with mx.autograd.record():
            y = getattr(mx.nd, name)(x)
        y.backward()
        assert (y.shape, y.asscalar()) == ((), value)
        assert x.grad.asscalar() == (name == "transpose")


def test_the_determinant_of_one_matrix_is_a_number_there():
    matrix = mx.nd.array([[2, 1], [1, 3]])
    for active, shape in ((False, (1,)), (True, ()), (False, (1,))):
        with mx.np_shape(active):
            matrix.attach_grad()
            with mx.autograd.record():
                y = mx.nd.linalg.det(matrix)
            y.backward()
            assert [x.shape for x in (y, *mx.nd.linalg.slogdet(matrix))] == [shape] * 3
            np.testing.assert_allclose(matrix.grad.asnumpy(), [[3, -1], [-1, 2]], 1e-5)
            assert mx.nd.linalg.sumlogdiag(matrix).shape == (1,)
        bound = mx.sym.linalg.det(mx.sym.var("A")).bind(mx.cpu(), {"A": matrix})
        assert bound.forward()[0].shape == (1,)


@pytest.mark.parametrize(
    ("shape", "lengths"),  # recorded of MXNet, for k from -3 to 4
    [
        ((0, 3), [None, None, None, 0, 0, 0, 0, None]),
        ((3, 0), [0, 0, 0, 0, None, None, None, None]),
        ((2, 3), [None, 0, 1, 2, 2, 1, 0, None]),
    ],
)
def test_diagonals_of_nothing(shape, lengths):
    with mx.np_shape():
        x = mx.nd.zeros(shape)
        found = {k: mx.nd.diag(x, k=k).shape for k, n in enumerate(lengths, -3) if n is not None}
        assert found == {k: (n,) for k, n in enumerate(lengths, -3) if n is not None}
        for k in (k for k, n in enumerate(lengths, -3) if n is None):
            with pytest.raises(mx.MXNetError, match="such a diagonal"):
                mx.nd.diag(x, k=k)

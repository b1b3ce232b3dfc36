"""Applying operators: functions, out=, states, errors that leave everything as it was, engines."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

from gnomon import autograd, engine, nd
from gnomon.base import DTypeError, EngineError, GnomonError, ParamError, ShapeError
from gnomon.ndarray.api import functions
from gnomon.ops import Op, op, param
from gnomon.ops.property import Operator, OperatorProperty, register_op_property
from gnomon.ops.requests import SAVERS
from gnomon.resource import ResourceRequest


def test_functions_have_signatures_and_documentation():
    function = nd.FullyConnected
    assert function.__name__ == "FullyConnected"
    assert "num_hidden" in str(function.__signature__)
    assert "Rows of `weight`" in function.__doc__
    assert nd.FullyConnected is function
    assert "FullyConnected" in dir(nd)
    assert nd.op.FullyConnected.__doc__ == function.__doc__
    with pytest.raises(AttributeError, match="no_such_operator"):
        nd.no_such_operator
    assert nd.random.uniform is not None


def test_inputs_by_position_and_by_name():
    x, w, b = nd.ones((2, 3)), nd.ones((4, 3)), nd.ones((4,))
    by_place = nd.FullyConnected(x, w, b, num_hidden=4)
    by_name = nd.FullyConnected(data=x, weight=w, bias=b, num_hidden=4)
    without = nd.FullyConnected(x, w, num_hidden=4, no_bias=True)
    assert (by_place.asnumpy() == 4).all()
    assert (by_name.asnumpy() == 4).all()
    assert (without.asnumpy() == 3).all()


@pytest.mark.parametrize(
    ("call", "first", "second"),
    [
        (lambda x, p: nd.transpose(x, axes=p), [1, 0, 2], [2, 1, 0]),
        (nd.transpose, [0, 2, 1], [2, 0, 1]),
        (lambda x, p: x.sum(axis=p), [0, 1], [1, 2]),
        (
            lambda x, p: nd.slice(x, begin=p[0], end=p[1]),
            [[0, 1, 0], [1, 2, 4]],
            [[1, 0, 2], [2, 3, 3]],
        ),
    ],
)
def test_parameters_in_lists_are_read_once(call, first, second, monkeypatch):
    """As those in tuples are; what changes in a list after a call changes nothing of that call."""
    x = nd.array(np.arange(24).reshape(2, 3, 4))
    read = []
    understood = functions._understood
    monkeypatch.setattr(functions, "_understood", lambda *a: read.append(a) or understood(*a))
    lists = [copy.deepcopy(given) for given in (first, second)]
    wanted = [call(x, tuple(given)).asnumpy() for given in lists]
    read.clear()
    changing = copy.deepcopy(first)
    for k in (0, 1, 0, 1, 0):
        changing[:] = lists[k]
        np.testing.assert_array_equal(call(x, changing).asnumpy(), wanted[k])
    assert len(read) <= 2


def test_a_list_without_a_hash_in_it_is_read_each_time():
    x = nd.array(np.arange(6).reshape(2, 3))
    for axis in (0, 1, 0):
        found = nd.sum(x, axis=[np.array(axis)])
        np.testing.assert_array_equal(found.asnumpy(), x.asnumpy().sum(axis))


def test_a_kept_operator_has_a_list_of_its_own():
    x = nd.array(np.arange(96).reshape(1, 1, 8, 12))
    kernel = [2, 2]
    nd.Pooling(x, kernel=kernel, pool_type="avg", stride=(2, 2))
    kernel[:] = [4, 4]
    y = nd.array(np.arange(64).reshape(1, 1, 8, 8))
    found = nd.Pooling(y, kernel=[2, 2], pool_type="avg", stride=(2, 2)).asnumpy()
    np.testing.assert_array_equal(found[0, 0, 0], [4.5, 6.5, 8.5, 10.5])


def test_out():
    x, out = nd.array([1, 4, 9]), nd.zeros((3,))
    assert nd.sqrt(x, out=out) is out
    assert out.asnumpy().tolist() == [1, 2, 3]
    assert nd.sqrt(x, out=x) is x
    assert x.asnumpy().tolist() == [1, 2, 3]
    parts = [nd.zeros((1,)) for _ in range(3)]
    nd.split(x, num_outputs=3, axis=0, out=parts)
    assert [p.asscalar() for p in parts] == [1, 2, 3]
    view = nd.zeros((3, 2))
    nd.square(x, out=view[:, 1])
    assert view.asnumpy().tolist() == [[0, 1], [0, 4], [0, 9]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: nd.sqrt(x, out=nd.zeros((4,))), ShapeError, "sqrt"),
        (lambda x: nd.sqrt(x, out=nd.zeros((3,), dtype="int32")), DTypeError, "float32"),
        (lambda x: nd.sqrt(x, out=[x, x]), ShapeError, "expected 1 arrays, got 2"),
        (lambda x: nd.sqrt(x, out=np.zeros(3)), TypeError, "expected an NDArray"),
        (lambda x: nd.sqrt(3), TypeError, "expected an NDArray"),
        (lambda x: nd.sqrt(x, x, x), ParamError, "expected 1 of them: data, got 3"),
        (lambda x: nd.clip(x, 1), ParamError, "a_max"),
        (lambda x: nd.clip(x, 1, 2, a_mux=3), ParamError, "a_mux"),
        (lambda x: nd.dot(x, nd.ones((4,))), ShapeError, "dot"),
        (lambda x: nd.FullyConnected(x, num_hidden=3), ParamError, "weight.*an array"),
        (lambda x: nd.Concat(x, nd.ones((2, 2)), dim=0), ShapeError, "Concat"),
        (lambda x: nd.Activation(x, act_type="rely"), ParamError, "relu"),
    ],
)
def test_errors_name_what_is_wrong_and_change_nothing(call, error, message):
    x = nd.array([1, 4, 9])
    with pytest.raises(error, match=message):
        call(x)
    assert x.asnumpy().tolist() == [1, 4, 9]
    nd.waitall()


@pytest.mark.parametrize(
    ("name", "shapes", "fields", "message"),
    [
        ("CTCLoss", [(5, 2, 4), (2, 3), (2,)], {}, "'data_lengths'.*use_data_lengths=True"),
        ("CTCLoss", [(5, 2, 4), (2, 3), (2,), (2,)], {"use_label_lengths": True}, "data_lengths"),
        ("_contrib_DeformablePSROIPooling", [(2, 8, 5, 6), (1, 5), (1, 2, 2, 2)],
         {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 2, "group_size": 2,
          "no_trans": True}, "'trans'.*no_trans=False"),
        ("_histogram", [(4,), (3,)], {"bin_cnt": 4, "range": (0, 1)}, "'bins'.*inputs data"),
        ("Convolution", [(1, 1, 3, 3), (2, 1, 3, 3), (2,)],
         {"num_filter": 2, "kernel": (3, 3), "no_bias": True}, "'bias'.*no_bias=False"),
        ("LeakyReLU", [(2, 3), (3,)], {"act_type": "leaky"}, "'gamma'.*act_type='prelu'"),
        ("softmax", [(2, 3), (2,)], {}, "'length'.*use_length=True"),
        ("SequenceMask", [(3, 2, 1), (2,)], {}, "'sequence_length'.*use_sequence_length=True"),
    ],
)  # fmt: skip
def test_an_input_without_its_flag_is_refused_at_the_call(name, shapes, fields, message):
    inputs = [nd.ones(shape) for shape in shapes]
    operator = getattr(nd, name, None) or getattr(nd.contrib, name.removeprefix("_contrib_"))
    with pytest.raises(ParamError, match=message):
        operator(*inputs, **fields)


def test_states_are_updated():
    weight, grad, mom = nd.ones((3,)), nd.ones((3,)), nd.zeros((3,))
    for _ in range(2):
        nd.sgd_mom_update(weight, grad, mom, out=weight, lr=0.5, momentum=0.5)
    np.testing.assert_allclose(mom.asnumpy(), [-0.75] * 3)
    np.testing.assert_allclose(weight.asnumpy(), [-0.25] * 3)


def test_batch_norm_moves_its_averages_only_where_a_gradient_is_computed():
    rng = np.random.default_rng(0)
    data = rng.normal(3, 2, (16, 4, 5)).astype(np.float32)
    x, gamma, beta = nd.array(data), nd.ones((4,)), nd.zeros((4,))
    mean, var = nd.zeros((4,)), nd.ones((4,))
    nd.BatchNorm(x, gamma, beta, mean, var, momentum=0.5)
    assert not mean.asnumpy().any()
    gamma.attach_grad()
    with autograd.record():
        y = nd.BatchNorm(x, gamma, beta, mean, var, momentum=0.5, eps=1e-5)
    assert not mean.asnumpy().any()
    y.backward()
    np.testing.assert_allclose(mean.asnumpy(), data.mean((0, 2)) / 2, rtol=1e-4)
    np.testing.assert_allclose(var.asnumpy(), 0.5 + data.var((0, 2)) / 2, rtol=1e-3)
    np.testing.assert_allclose(y.asnumpy().mean((0, 2)), np.zeros(4), atol=1e-5)


def test_many_layouts_and_back():
    x = nd.arange(400).reshape((20, 20))
    for n in [*range(1, 20)] * 10:
        assert x[:n, ::n].sum().asscalar() == x.asnumpy()[:n, ::n].sum()


def test_results_are_right_when_kernels_are_quick_and_when_they_queue():
    x, total = nd.zeros((8,)), 0
    gate = threading.Event()
    for number in range(50):
        x += number
        total += number
    assert (x.asnumpy() == total).all()
    engine.get().push_sync(lambda ctx: gate.wait(10), None, (), [x._var])
    for number in range(50):
        x += number
    y = x * 2
    gate.set()
    assert (y.asnumpy() == 4 * total).all()


def test_a_failure_is_raised_at_the_read_of_what_depends_on_it():
    x = nd.ones((3,))
    engine.get().push_sync(lambda ctx: 1 // 0, None, (), [x._var], name="divide")
    y = nd.exp(x) + 1
    for array in (y, x, y):
        with pytest.raises(EngineError, match="function 'divide' failed: ZeroDivisionError"):
            array.asnumpy()
    x[:] = 2
    assert (x + 1).asnumpy().tolist() == [3, 3, 3]


def test_two_threads_at_once():
    shared, results = nd.zeros((64,)), []

    def program(seed):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=(32, 32)).astype(np.float32)
        x = nd.array(a)
        for _ in range(30):
            x = nd.dot(x, x) * 0.01 + x.T * 0.5
            a = a @ a * np.float32(0.01) + a.T * np.float32(0.5)
            shared.__iadd__(1)
        results.append(np.allclose(x.asnumpy(), a, rtol=1e-2, atol=1e-2))

    threads = [threading.Thread(target=program, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    assert (shared.asnumpy() == 120).all()


def test_under_the_naive_engine():
    before = engine.get()
    naive = engine.use(engine.NaiveEngine())
    try:
        x = nd.array([1, 2, 3])
        x[1:] += x[:-1]
        assert naive.report() == ""
        assert x.asnumpy().tolist() == [1, 3, 5]
        assert nd.dot(x, x).asscalar() == 35
    finally:
        engine.use(before)


# --- operators that work on data ----------------------------------------------------------------


class ScaledOperator(Operator):
    def forward(self, ctx, in_data, req, out_data, aux_states):
        scratch = ctx.requested[0].get_space(in_data[0].shape_, ctx.run_ctx.get_stream())
        scratch.numpy()[...] = in_data[0].tensor.numpy() * 3
        ctx.state["train"] = ctx.is_train
        store(req[0], out_data[0], scratch.numpy())

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux_states):
        assert ctx.state["train"]
        store(req[0], in_grad[0], out_grad[0].tensor.numpy() * 3)


def store(req, blob, values):
    target = blob.tensor.numpy()
    target[...] = target + values if SAVERS[req] == "plusto" else values


@register_op_property("test_invoke_scaled")
class ScaledProperty(OperatorProperty):
    """Three times the data."""

    def forward_resource(self, in_shape):
        return [ResourceRequest("kTempSpace")]

    def create_operator(self, ctx):
        return ScaledOperator()


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_an_operator_that_works_on_data(grad_req):
    x = nd.array([1, 2, 3])
    x.attach_grad(grad_req)
    for _ in range(2):
        with autograd.record():
            y = nd.test_invoke_scaled(x) * 2
        y.backward()
    assert y.asnumpy().tolist() == [6, 12, 18]
    assert x.grad.asnumpy().tolist() == ([6] * 3 if grad_req == "write" else [12] * 3)


@op("test_invoke_twice", inputs=("data",))
class Twice(Op):
    """Two times the data, by a user's declaration."""

    def forward(self, data):
        return data * 2.0


def test_an_operator_by_declaration():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.test_invoke_twice(x)
    y.backward()
    assert (y.asnumpy().tolist(), x.grad.asnumpy().tolist()) == ([2, 4], [2, 2])


def test_an_operator_without_gradient_of_its_gradient():
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = nd.test_invoke_scaled(x)
        with pytest.raises(GnomonError, match="has no gradient of its gradient"):
            autograd.grad(y, [x], create_graph=True)


@pytest.mark.parametrize(
    "use",
    [
        lambda a, out: nd.transpose(a).T,
        lambda a, out: nd.concat(a, a, dim=0)[:3],
        lambda a, out: nd.reverse(nd.reverse(a, axis=1), axis=1, out=out),
        lambda a, out: nd.reverse(out + 4, axis=0, out=a),
    ],
)
def test_a_value_stored_elsewhere_has_nothing_more_to_do_with_its_old_memory(use):
    """`a` is in place in its own memory, then its value is put into `q` alone."""
    for _ in range(3):
        a, q = nd.full((3, 4), 3.0), nd.zeros((3, 4))
        looker = q[0:1]
        nd.waitall()
        a += 1
        q[:] = a
        others = [nd.full((3, 4), 7.0) for _ in range(8)]  # the old memory is somebody else's now
        nd.waitall()
        np.testing.assert_array_equal(use(a, nd.zeros((3, 4))).asnumpy(), np.full((3, 4), 4.0))
        np.testing.assert_array_equal(looker.asnumpy(), np.full((1, 4), 4.0))
        assert all((x.asnumpy() == 7).all() for x in others)


def test_an_error_of_an_operator_of_ones_own_is_raised_where_it_is_called():
    @op("test_faulty", inputs=("data",))
    class Faulty(Op):
        """Fails."""

        by: int = param(1)

        def forward(self, data):
            raise ArithmeticError("mine")

    x = nd.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        for given in (x, nd.dot(x, x), nd.relu(x)):
            with pytest.raises(ArithmeticError, match="mine") as caught:
                nd.test_faulty(given, by=2)
            assert caught.value.__context__ is None
    with pytest.raises(ArithmeticError, match="mine") as caught:
        nd.test_faulty(x)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("wrong", [(True, 2), (1.0, 2), [True, 2], (np.bool_(True), 2)])
def test_numbers_in_tuples_are_told_apart_by_their_types(wrong):
    x = nd.ones((2, 2))
    for _ in range(2):
        assert nd.tile(x, reps=(1, 2)).shape == (2, 4)
        with pytest.raises(GnomonError, match="tile: argument 'reps': expected tuple of ints"):
            nd.tile(x, reps=wrong)
    assert nd.sum(x, axis=(1,)).shape == (2,)
    with pytest.raises(GnomonError, match="sum: argument 'axis'"):
        nd.sum(x, axis=(True,))

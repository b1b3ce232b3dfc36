"""Operators that users write in Python: CustomOp, NumpyOp, NDArrayOp (X48)."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import EngineError, GnomonError, ParamError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:.*this interface is old.*:DeprecationWarning")


class Softmax(mx.operator.CustomOp):
    """The classic example: softmax with the gradient of its cross entropy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().ravel().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(label.shape[0]), label] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("test_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Softmax()


class Statistics(mx.operator.CustomOp):
    """Sum and product of two inputs times a factor; a state counts the runs."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        a, b = in_data
        self.assign(out_data[0], req[0], (a + b) * self.factor)
        self.assign(out_data[1], req[1], a * b * self.factor)
        if is_train:
            aux[0][:] += 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        a, b = in_data
        plus, times = out_grad
        self.assign(in_grad[0], req[0], self.factor * (plus + b * times))
        self.assign(in_grad[1], req[1], self.factor * (plus + a * times))


@mx.operator.register("test_statistics")
class StatisticsProp(mx.operator.CustomOpProp):
    def __init__(self, factor="1"):
        super().__init__()
        self.factor = float(factor)

    def list_arguments(self):
        return ["left", "right"]

    def list_outputs(self):
        return ["sum", "product"]

    def list_auxiliary_states(self):
        return ["runs"]

    def infer_shape(self, in_shape):
        return [in_shape[0]] * 2, [in_shape[0]] * 2, [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        assert isinstance(ctx, mx.Context)
        assert in_shapes == [in_shapes[0], in_shapes[0], [1]]  # the states' too
        flag = mx.nd.array([0], dtype=self.kind)._dtype.flag
        assert in_dtypes == [flag, flag, mx.nd.zeros((1,))._dtype.flag]
        return Statistics(self.factor)

    kind = "float32"

    def infer_type(self, in_type):
        self.kind = np.dtype(in_type[0]).name
        return [in_type[0]] * 2, [in_type[0]] * 2, [np.float32]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_values_gradients_and_states(dtype, shape):
    a, b = (mx.nd.array(np.full(shape, v), dtype=dtype) for v in (2, 3))
    runs = mx.nd.zeros((1,))
    a.attach_grad(), b.attach_grad(grad_req="add")
    for _ in range(2):
        with mx.autograd.record():
            plus, times = mx.nd.Custom(a, b, runs, op_type="test_statistics", factor=2)
            whole = plus + times
        whole.backward()
    assert (plus.asnumpy() == 10).all() and (times.asnumpy() == 12).all()
    assert (a.grad.asnumpy() == 8).all() and (b.grad.asnumpy() == 2 * 6).all()
    assert plus.dtype == np.dtype(dtype) and plus.shape == shape
    assert runs.asscalar() == 2


def test_inputs_by_name_and_outside_of_training():
    a, b, runs = mx.nd.ones((2,)), mx.nd.ones((2,)) * 5, mx.nd.zeros((1,))
    got = mx.nd.Custom(runs=runs, right=b, left=a, op_type="test_statistics")
    assert (got[0].asnumpy() == 6).all() and runs.asscalar() == 0


@pytest.mark.parametrize("req", ["write", "add", "null"])
def test_symbol(req):
    both = mx.sym.Custom(mx.sym.var("left"), op_type="test_statistics", factor=3, name="s")
    assert both.list_arguments() == ["left", "s_right"]
    assert both.list_outputs() == ["s_sum", "s_product"]
    assert both.list_auxiliary_states() == ["s_runs"]
    both = mx.sym.load_json(both.tojson())
    bound = both.simple_bind(mx.cpu(), left=(2, 2), grad_req=req)
    bound.arg_dict["left"][:], bound.arg_dict["s_right"][:] = 2, 5
    for _ in range(2):
        bound.forward(is_train=True)
        bound.backward([mx.nd.ones((2, 2)), mx.nd.ones((2, 2))])
    assert [x.asnumpy()[0, 0] for x in bound.outputs] == [21, 30]
    assert bound.aux_dict["s_runs"].asscalar() == 2
    if req != "null":
        times = 2 if req == "add" else 1
        assert (bound.grad_dict["left"].asnumpy() == 18 * times).all()
        assert (bound.grad_dict["s_right"].asnumpy() == 9 * times).all()


def test_a_loss_trains_as_the_built_in_one():
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 4)).astype("f"), rng.integers(0, 3, 60).astype("f")
    start = {
        "fc_weight": mx.nd.array(rng.normal(size=(3, 4))),
        "fc_bias": mx.nd.zeros((3,)),
    }
    ends = []
    for loss in (
        lambda x: mx.sym.Custom(data=x, name="softmax", op_type="test_softmax"),
        lambda x: mx.sym.SoftmaxOutput(x, name="softmax"),
    ):
        net = loss(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"))
        module = mx.mod.Module(net, context=mx.cpu())
        batches = mx.io.NDArrayIter(points, labels, 20)
        first = {k: v.copy() for k, v in start.items()}
        module.fit(batches, num_epoch=3, arg_params=first, optimizer_params={"learning_rate": 0.1})
        ends.append(module.get_params()[0]["fc_weight"].asnumpy())
    np.testing.assert_allclose(*ends, rtol=1e-5, atol=1e-6)
    assert not np.allclose(ends[0], start["fc_weight"].asnumpy())


class Nested(mx.operator.CustomOp):
    """Calls itself through the engine, and waits."""

    def __init__(self, depth):
        self.depth = depth

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0]
        if self.depth:
            x = mx.nd.Custom(x + 1, op_type="test_nested", depth=self.depth - 1)
            x.wait_to_read()
        self.assign(out_data[0], req[0], x)


@mx.operator.register("test_nested")
class NestedProp(mx.operator.CustomOpProp):
    def __init__(self, depth):
        super().__init__()
        self.depth = int(depth)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Nested(self.depth)


def test_operators_that_wait_for_operators_do_not_hang():
    arrays = [mx.nd.Custom(mx.nd.zeros((3,)), op_type="test_nested", depth=7) for _ in range(8)]
    assert all((x.asnumpy() == 7).all() for x in arrays)


class Failing(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if in_data[0].asnumpy()[0] < 0:
            raise ValueError("no negative numbers here")
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("test_failing")
class FailingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Failing()


def test_an_exception_is_raised_where_its_result_is_read():
    bad = mx.nd.Custom(mx.nd.array([-1.0]), op_type="test_failing")
    with pytest.raises(EngineError, match="no negative numbers here"):
        (bad + 1).asnumpy()
    good = mx.nd.array([1.0])
    good.attach_grad()
    with mx.autograd.record():
        out = mx.nd.Custom(good, op_type="test_failing")
    assert out.asscalar() == 1
    out.backward()
    with pytest.raises(EngineError, match="no gradient"):
        good.grad.asnumpy()


class Scribbling(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        in_data[0][:] = 3
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("test_scribbling")
class ScribblingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Scribbling()


def test_an_operator_that_writes_its_input_is_told():
    bad = mx.nd.Custom(mx.nd.array([1.0, 2.0]), op_type="test_scribbling")
    with pytest.raises(EngineError, match=r"Scribbling.forward: argument 'in_data\[0\]'.*written"):
        bad.asnumpy()


class Unlucky(mx.operator.CustomOp):
    left = 0

    def forward(self, is_train, req, in_data, out_data, aux):
        Unlucky.left -= 1
        if Unlucky.left == 0:
            raise ValueError("no luck")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_unlucky")
class UnluckyProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Unlucky()


def test_a_module_whose_training_failed_goes_on_from_where_it_was():
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net = mx.sym.SoftmaxOutput(mx.sym.Custom(x, op_type="test_unlucky"), name="softmax")
    points = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    batches = mx.io.NDArrayIter(points, points[:, :3].argmax(axis=1).astype(np.float32), 5)
    module = mx.mod.Module(net)
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params()
    saved = [{k: v.copy() for k, v in part.items()} for part in module.get_params()]
    given = {"optimizer_params": {"learning_rate": 0.1, "momentum": 0.9}, "num_epoch": 2}
    Unlucky.left = 3
    with pytest.raises(EngineError, match="no luck"):
        module.fit(batches, **given)
    before = module.get_params()[0]["fc_weight"].asnumpy()
    assert np.isfinite(before).all() and (before != saved[0]["fc_weight"].asnumpy()).any()
    batches.reset()
    module.fit(batches, **given)
    assert (module.get_params()[0]["fc_weight"].asnumpy() != before).any()
    batches.reset()
    assert dict(module.score(batches, "acc"))["accuracy"] > 0.5
    module.set_params(*saved)
    np.testing.assert_array_equal(
        module.get_params()[0]["fc_weight"].asnumpy(), saved[0]["fc_weight"].asnumpy()
    )


def test_a_name_registered_anew_counts_from_then_on():
    def declare(value):
        class Constant(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], mx.nd.full((1,), value))

        @mx.operator.register("test_constant")
        class ConstantProp(mx.operator.CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes):
                return Constant()

    values = []
    for value in (1, 2):
        declare(value)
        values.append(mx.nd.Custom(mx.nd.zeros((1,)), op_type="test_constant").asscalar())
    assert values == [1, 2]


def _declared(name, **rules):
    mx.operator.register(name)(type("Odd", (mx.operator.CustomOpProp,), rules))
    return name


@pytest.mark.parametrize(
    ("rules", "error", "text"),
    [
        ({"infer_shape": lambda self, s: s}, ParamError, "Odd.infer_shape"),
        ({"infer_shape": lambda self, s: (s, s, s, s)}, ParamError, "return value"),
        ({"infer_shape": lambda self, s: (s, [s[0], s[0]])}, ShapeError, "inputs, outputs"),
        ({"infer_type": lambda self, t: (t,)}, ParamError, "Odd.infer_type"),
        ({"list_outputs": lambda self: ["a", "b"], "infer_shape": lambda self, s: (s, s)},
         ShapeError, "inputs, outputs"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit(rules, error, text):
    with pytest.raises(error, match=text):
        mx.nd.Custom(mx.nd.zeros((2,)), op_type=_declared("test_odd", **rules))


def test_errors_name_what_is_wrong():
    x = mx.nd.zeros((2,))
    with pytest.raises(GnomonError, match=r"test_statistic' is not registered.*test_statistics"):
        mx.nd.Custom(x, op_type="test_statistic")
    with pytest.raises(ParamError, match="op_type"):
        mx.nd.Custom(x)
    with pytest.raises(TypeError, match="CustomOpProp"):
        mx.operator.register("x")(int)
    with pytest.raises(TypeError, match="bogus"):
        mx.nd.Custom(x, op_type="test_failing", bogus=1)
    with pytest.raises(ParamError, match=r"CustomOp.assign: argument 'req'.*got also"):
        mx.operator.CustomOp().assign(x, "also", x)


def test_inputs_and_states_that_nobody_gave_are_named():
    x = mx.nd.zeros((2,))

    def refused(text, *inputs, **named):
        with pytest.raises(ParamError, match=r"test_statistics.*" + text):
            mx.nd.Custom(*inputs, op_type="test_statistics", **named)

    refused("'left': expected an array, got None")
    refused("'right': expected an array, got None", x)
    refused("'right': expected an array, got None", left=x)
    refused("'runs': expected an array, its state, got None", x, x)
    refused("'runs': expected an array, its state, got None", x, right=x)
    refused("3 of them: left, right, runs, got 4", x, x, x, x)
    refused("3 of them: left, right, runs, got 4", x, x, x, left=x)


def test_storages_are_dense():
    prop = StatisticsProp()
    one, two = ["default"], ["default"] * 2
    assert prop.infer_storage_type(["default", "undefined"]) == (two, two, one)
    undefined = ["undefined"] * 2
    found = prop.infer_storage_type_backward(two, two, two, undefined, one)
    assert found == (two, two, two, two, one)
    with pytest.raises(ParamError, match=r"infer_storage_type: argument 'in_stype\[1\]'.*'csr'"):
        prop.infer_storage_type(["default", "csr"])
    sparse = ["row_sparse", "default"]
    for parts in ([sparse, two, two, two, one], [two, two, two, sparse, one]):
        with pytest.raises(ParamError, match=r"grad_stype\[0\]'.*got 'row_sparse'"):
            prop.infer_storage_type_backward(*parts)


@pytest.mark.parametrize("base", [mx.operator.NumpyOp, mx.operator.NDArrayOp])
def test_older_interfaces(base):
    class Twice(base):
        def __init__(self):
            super().__init__(need_top_grad=True)

        def forward(self, in_data, out_data):
            assert isinstance(in_data[0], np.ndarray) is (base is mx.operator.NumpyOp)
            out_data[0][:] = in_data[0] * 2

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = out_grad[0] * 2

    net = Twice()(mx.sym.var("x") + 1, name="twice") * 10
    bound = net.simple_bind(mx.cpu(), x=(3,))
    bound.arg_dict["x"][:] = 4
    assert (bound.forward(is_train=True)[0].asnumpy() == 100).all()
    bound.backward(mx.nd.array([1, 2, 3]))
    assert bound.grad_dict["x"].asnumpy().tolist() == [20, 40, 60]


def test_the_defaults_of_the_older_interface_are_the_identity():
    bound = mx.operator.NumpyOp()(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    bound.arg_dict["x"][:] = 4
    assert (bound.forward(is_train=True)[0].asnumpy() == 4).all()
    bound.backward(mx.nd.zeros((2,)))
    assert (bound.grad_dict["x"].asnumpy() == 1).all()


def test_vocabulary():
    found = mx.operator.get_operator_arguments("FullyConnected")
    assert found.names == ["data", "weight", "bias", "num_hidden", "no_bias", "flatten"]
    assert found.narg == 6 and found.types[3] == "int, required"
    found = mx.operator.get_operator_arguments("Pooling")
    assert (found.types[2], found.types[4]) == (
        "{'avg', 'lp', 'max', 'sum'},optional, default='max'",
        "boolean, optional, default=0",
    )
    assert mx.operator.get_operator_arguments("Activation") == (
        2,
        ["data", "act_type"],
        [
            "NDArray-or-Symbol",
            "{'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'}, required",
        ],
    )
    assert {"Custom", "concat", "Concat"} <= set(mx.operator.get_all_registered_operators())


def test_exceptions_of_a_users_class_name_the_operator():
    _declared("test_making")
    with pytest.raises(TypeError) as told:
        mx.nd.Custom(mx.nd.ones((2,)), op_type="test_making", foo=3)
    (note,) = told.value.__notes__
    assert "op_type='test_making'" in note
    assert "{'foo': '3'}" in note


def test_an_argument_of_another_shape_than_the_rule_says_is_refused():
    with pytest.raises(ShapeError, match=r"'label': expected shape \(2,\), got \(5,\)"):
        mx.nd.Custom(mx.nd.ones((2, 3)), mx.nd.ones(5), op_type="test_softmax")


CALLS = []


class Counted(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        CALLS.append("forward")
        self.noise = float(len(CALLS))  # other in each call
        self.assign(out_data[0], req[0], in_data[0] * self.noise)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        CALLS.append("backward")
        self.assign(in_grad[0], req[0], out_grad[0] * self.noise)


@mx.operator.register("test_counted")
class CountedProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Counted()


@pytest.mark.parametrize("both", [False, True])
def test_a_second_backward_pass_calls_no_forward_again(both):
    del CALLS[:]
    net = mx.sym.tanh(mx.sym.Custom(mx.sym.exp(mx.sym.var("x")), op_type="test_counted"))
    net = mx.sym.sum(mx.sym.square(net) * mx.sym.var("w"))
    net = mx.sym.MakeLoss(net) if both else net
    executor = net.simple_bind(mx.cpu(), x=(5,), w=(5,))
    executor.arg_dict["x"][:], executor.arg_dict["w"][:] = -1.0, 0.5
    heads = None if both else mx.nd.ones((1,))
    if both:
        executor.forward_backward()
    else:
        executor.forward(is_train=True)
        executor.backward(heads)
    first = {k: g.asnumpy() for k, g in executor.grad_dict.items()}
    for _ in range(2):
        executor.backward(heads)
        for name, grad in executor.grad_dict.items():
            np.testing.assert_array_equal(grad.asnumpy(), first[name])
    assert CALLS == ["forward"] + ["backward"] * 3


def test_a_kept_graph_of_a_block_calls_no_forward_again():
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(F.Custom(F.exp(x), op_type="test_counted"))

    del CALLS[:]
    net, x = Block(), mx.nd.ones((3,)) * -1
    net.hybridize()
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    found = []
    for keep in (True, False):
        y.backward(retain_graph=keep)
        found.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*found)
    assert CALLS == ["forward", "backward", "backward"]

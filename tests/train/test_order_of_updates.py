"""What optimizers, stores and modules do in which order, and to what alone; numbers are MXNet's."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.gluon import Trainer, nn

POINTS = np.arange(12, dtype="float32").reshape(4, 3) / 7 - 0.5


def regression(**kwargs):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="last")
    module = mx.mod.Module(
        mx.sym.LinearRegressionOutput(net, mx.sym.Variable("wanted")), label_names=["wanted"]
    )
    rows = mx.io.NDArrayIter({"data": POINTS}, {"wanted": np.ones((4, 1), "f")}, batch_size=2)
    module.bind(rows.provide_data, rows.provide_label, **kwargs)
    module.init_params(mx.init.Constant(0.1))
    return module, rows


@pytest.mark.parametrize("kvstore", ["local", "own", None])
def test_a_store_updates_in_the_order_of_the_parameters(kvstore):
    module, rows = regression()
    store = mx.kv.create("local") if kvstore == "own" else kvstore
    module.init_optimizer(kvstore=store, optimizer="nadam")  # each update changes the next one's
    module.forward_backward(rows.next())
    module.update()
    params = module.get_params()[0]
    np.testing.assert_allclose(params["last_weight"].asnumpy(), [[0.08943549] * 3], rtol=1e-5)
    np.testing.assert_allclose(params["last_bias"].asnumpy(), [0.00739151], rtol=1e-5)


class Recorded(mx.optimizer.Optimizer):
    """Keeps the indices of what it updates."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        self.seen.append(index)


def test_a_trainers_store_updates_in_the_order_of_its_parameters():
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = nn.Sequential()
    net.add(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    net.initialize(ctx=contexts)
    optimizer = Recorded()
    trainer = Trainer(net.collect_params(), optimizer, kvstore="device", update_on_kvstore=True)
    with mx.autograd.record():
        losses = [net(mx.nd.ones((2, 3), ctx=ctx)).sum() for ctx in contexts]
    mx.autograd.backward(losses)
    trainer.step(2)
    assert trainer._kvstore._updater.optimizer.seen == [0, 1, 2, 3]


def test_a_store_with_nothing_to_update():
    module, rows = regression(grad_req="null", inputs_need_grad=True)
    module.init_optimizer(kvstore=mx.kv.create("local"))
    module.forward_backward(rows.next())
    module.update()
    assert (module.get_params()[0]["last_weight"].asnumpy() == np.float32(0.1)).all()


@pytest.mark.parametrize(
    ("momentum", "expected"),
    [(0, [[1, 1], [0.85, 0.75], [1, 1]]), (0.5, [[0.925] * 2, [0.775, 0.625], [0.925] * 2])],
)
def test_nag_is_lazy_where_it_has_no_momentum(momentum, expected):
    settings = {"learning_rate": 0.1, "wd": 0.5, "momentum": momentum}
    updater = mx.optimizer.get_updater(mx.optimizer.create("nag", **settings))
    weight = mx.nd.ones((3, 2))
    updater(0, mx.nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(3, 2)), weight)
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-6)


def test_setting_some_parameters_keeps_averages_that_forward_moved():
    net = mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", fix_gamma=False, momentum=0.5)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.bind([("data", (2, 2))], [("softmax_label", (2,))])
    module.init_params()
    batch = mx.io.DataBatch([mx.nd.array([[1, 2], [3, 6]])], [mx.nd.zeros((2,))])
    module.forward_backward(batch)
    module.set_params({"bn_beta": mx.nd.ones((2,))}, {}, allow_missing=True)
    args, states = module.get_params()
    assert args["bn_beta"].asnumpy().tolist() == [1, 1]
    assert states["bn_moving_mean"].asnumpy().tolist() == [1, 2]
    assert states["bn_moving_var"].asnumpy().tolist() == [1, 2.5]


def test_a_model_of_before_modules_scores_by_several_metrics():
    model = mx.model.FeedForward(mx.sym.SoftmaxOutput(mx.sym.Variable("data"), name="softmax"))
    model.arg_params, model.aux_params = {}, {}
    rows = mx.io.NDArrayIter(np.array([[1, 2], [3, 0]], "f"), np.array([1, 0.0]), 2)
    assert model.score(rows, ["acc", "ce"]) == pytest.approx([1, 0.18092456])
    assert model.score(rows, ["acc"]) == [1]
    assert model.score(rows, "acc") == 1

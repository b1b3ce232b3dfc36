"""`mx.contrib`: the first autograd, batches of loaders, curves of metrics, the functions."""

import sys
from types import ModuleType

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.contrib import autograd
from gnomon.contrib.io import DataLoaderIter
from gnomon.gluon.data import ArrayDataset, DataLoader


def test_modules_and_their_short_names():
    assert mx.contrib.nd is mx.contrib.ndarray
    assert mx.contrib.sym is mx.contrib.symbol
    assert {"foreach", "quadratic"} <= set(dir(mx.contrib.nd))
    assert mx.contrib.nd.quadratic(nd.ones(2), a=1, b=2, c=3).asnumpy().tolist() == [6, 6]
    x = mx.contrib.sym.quadratic(mx.sym.var("x"), a=1, name="q")
    assert x.list_outputs() == ["q_output"]
    with pytest.raises(AttributeError, match="did you mean 'autograd'"):
        _ = mx.contrib.autgrad


# --- autograd -------------------------------------------------------------------------------


def flags():
    return mx.autograd.is_recording(), mx.autograd.is_training()


def test_recording_and_training_are_one_state():
    assert autograd.set_is_training(True) is False
    assert flags() == (True, True)
    assert autograd.set_is_training(False) is True
    assert flags() == (False, False)
    with autograd.train_section():
        assert flags() == (True, True)
        with autograd.test_section():
            assert flags() == (False, False)
        assert flags() == (True, True)
    assert flags() == (False, False)


@pytest.mark.parametrize(("out_grads", "factor"), [(None, 2), ([nd.ones(3) * 2], 4)])
def test_backward(out_grads, factor):
    x, gradient = nd.array([1, 2, 3]), nd.zeros(3)
    autograd.mark_variables([x], [gradient])
    with autograd.train_section():
        y = x * x
    autograd.backward([y], out_grads, retain_graph=True)
    assert gradient.asnumpy().tolist() == [factor, 2 * factor, 3 * factor]
    autograd.compute_gradient([y])
    assert gradient.asnumpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("argnum", "expected"),
    [(None, [[5, 5, 5], [1, 2, 3]]), (1, [[1, 2, 3]]), ([1, 0], [[1, 2, 3], [5, 5, 5]])],
)
def test_grad_and_loss(argnum, expected):
    a, b = nd.array([1, 2, 3]), nd.ones(3) * 5
    grads, loss = autograd.grad_and_loss(lambda a, b: a * b, argnum)(a, b)
    assert [g.asnumpy().tolist() for g in grads] == expected
    assert loss.asnumpy().tolist() == [5, 10, 15]
    alone = autograd.grad(lambda a, b: a * b, argnum)(a, b)
    assert [g.asnumpy().tolist() for g in alone] == expected


def test_grad_of_several_outputs():
    a, b = nd.array([1, 2, 3]), nd.ones(3) * 5
    grads, loss = autograd.grad_and_loss(lambda a, b: [a * b, a])(a, b)
    assert [g.asnumpy().tolist() for g in grads] == [[6, 6, 6], [1, 2, 3]]
    assert [x.asnumpy().tolist() for x in loss] == [[5, 10, 15], [1, 2, 3]]


def test_grad_refuses():
    with pytest.raises(TypeError, match=r"argument 'args\[0\]': expected an NDArray, got 3"):
        autograd.grad(lambda a: a)(3)
    with pytest.raises(mx.MXNetError, match=r"'argnum': expected positions below 1.*got 2"):
        autograd.grad(lambda a: a, argnum=2)(nd.ones(1))


# --- batches of loaders ---------------------------------------------------------------------

ROWS = ArrayDataset(np.arange(20, dtype="float32").reshape(10, 2), np.arange(10))


def test_batches_of_a_loader():
    batches = DataLoaderIter(DataLoader(ROWS, batch_size=4))
    assert repr(batches.provide_data) == "[DataDesc[data,(4, 2),float32,NCHW]]"
    assert repr(batches.provide_label) == "[DataDesc[softmax_label,(4,),float32,NCHW]]"
    assert batches.batch_size == 4
    for _ in range(2):
        found = list(batches)
        assert [x.pad for x in found] == [0, 0, 2]
        assert [x.index for x in found] == [None] * 3
        assert found[1].data[0].asnumpy().tolist() == [[8, 9], [10, 11], [12, 13], [14, 15]]
        assert found[2].data[0].asnumpy().tolist() == [[16, 17], [18, 19], [16, 17], [18, 19]]
        assert found[2].label[0].asnumpy().tolist() == [8, 9, 8, 9]
        assert not batches.iter_next()
        batches.reset()


def test_batches_have_the_names_and_the_dtype_asked_for():
    batches = DataLoaderIter(DataLoader(ROWS, batch_size=4), "x", "y", "float64")
    assert repr(batches.provide_data) == "[DataDesc[x,(4, 2),float64,NCHW]]"
    assert repr(batches.provide_label) == "[DataDesc[y,(4,),float64,NCHW]]"
    batch = next(batches)
    assert batch.data[0].dtype == batch.label[0].dtype == np.float64


def test_a_module_scores_batches_of_a_loader():
    batches = DataLoaderIter(DataLoader(ROWS, batch_size=4))
    module = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.var("data"), name="softmax"))
    module.bind(batches.provide_data, batches.provide_label, for_training=False)
    module.init_params()
    assert module.predict(batches).shape == (10, 2)
    score = dict(module.score(batches, "acc"))  # counts the two rows of padding, as MXNet does
    assert score == {"accuracy": pytest.approx(1 / 12)}


@pytest.mark.parametrize(
    ("loader", "got"),
    [
        ([], "at least one batch, got none"),
        ([nd.zeros((2, 2))], "pairs of arrays"),
        ([(nd.zeros(2), nd.zeros(2), nd.zeros(2))], "pairs of arrays"),
        ([(nd.zeros(2), 3)], "pairs of arrays"),
        ([(nd.zeros(2), nd.zeros(2)), (nd.zeros(3), nd.zeros(3))], "at most 2 rows.*got one of 3"),
    ],
)
def test_other_batches_are_refused(loader, got):
    with pytest.raises(mx.MXNetError, match=f"DataLoaderIter: argument 'loader': .*{got}"):
        list(DataLoaderIter(loader))


# --- curves of metrics ----------------------------------------------------------------------


class Writer:
    """Notes what it is told to write."""

    def __init__(self, folder):
        self.folder, self.rows = folder, []

    def add_scalar(self, *row):
        self.rows.append(row)


@pytest.fixture
def without_writers(monkeypatch):
    for name in mx.contrib.tensorboard._WRITERS:
        monkeypatch.setitem(sys.modules, name, None)
    return monkeypatch


@pytest.mark.parametrize("module", ["mxboard", "tensorboardX"])
@pytest.mark.parametrize(("prefix", "name"), [(None, "accuracy"), ("train", "train-accuracy")])
def test_metrics_are_written(prefix, name, module, without_writers):
    there = ModuleType(module)
    there.SummaryWriter = Writer
    without_writers.setitem(sys.modules, module, there)
    callback = mx.contrib.tensorboard.LogMetricsCallback("logs", prefix)
    metric = mx.metric.Accuracy()
    metric.update([nd.array([1, 0])], [nd.array([[0.2, 0.8], [0.3, 0.7]])])
    callback(mx.model.BatchEndParam(3, 7, metric, None))
    callback(mx.model.BatchEndParam(3, 8, None, None))
    assert callback.summary_writer.folder == "logs"
    assert callback.summary_writer.rows == [(name, 0.5, 3)]


def test_metrics_need_a_writer(without_writers):
    with pytest.raises(mx.MXNetError, match="LogMetricsCallback: none of mxboard, tensorboard, "):
        mx.contrib.tensorboard.LogMetricsCallback("logs")

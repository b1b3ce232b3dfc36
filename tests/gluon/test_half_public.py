"""Names with an underscore that libraries for Gluon import, as MXNet 1.9.1 has them."""

from __future__ import annotations

import io
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.contrib.amp import amp
from gnomon.gluon import tensor_types
from gnomon.gluon.block import _flatten, _regroup
from gnomon.gluon.data.dataloader import ForkingPickler, _as_in_context, _MultiWorkerIter
from gnomon.gluon.loss import _apply_weighting, _reshape_like
from gnomon.gluon.model_zoo.model_store import _model_sha1
from gnomon.gluon.nn.conv_layers import _Conv
from gnomon.gluon.utils import _get_repo_file_url, _get_repo_url
from gnomon.image import _get_interp_method

SAMPLES = np.arange(20.0)


def made(numbers, batchify, dataset):
    """What a worker process does."""
    batch = batchify([SAMPLES[k] for k in numbers])
    stream = io.BytesIO()
    ForkingPickler(stream, pickle.HIGHEST_PROTOCOL).dump(batch)
    return stream.getvalue() if dataset is None else batch


def slow(numbers, batchify, dataset):
    """A worker that never comes back in time."""
    multiprocessing.Event().wait(20)


def test_nested_lists():
    x, y = mx.nd.ones((2,)), mx.sym.var("y")
    flat, form = _flatten([x, None, (x, [y])], "input")
    assert flat == [x, None, x, y]
    assert form == [0, -1, [0, [0]]]
    assert _regroup(flat, form) == [x, None, [x, [y]]]
    assert _flatten(mx.sym.Group([y, y + 1]), "input")[1] == 2
    with pytest.raises(ValueError, match=r"input.*list.*got 3"):
        _flatten(3, "input")
    assert isinstance(x, tensor_types) and isinstance(y, tensor_types)


def test_losses():
    loss = mx.nd.ones((2, 3))
    weighted = _apply_weighting(mx.nd, loss, 0.5, mx.nd.array([[1], [2]]))
    assert weighted.asnumpy().tolist() == [[0.5] * 3, [1.0] * 3]
    assert _apply_weighting(mx.nd, loss) is loss
    assert _reshape_like(mx.nd, mx.nd.ones((4, 1)), mx.nd.ones((4,))).shape == (4,)


def test_convolutions():
    class Standardized(mx.gluon.nn.Conv2D):
        """Written as MXNet's users write it, who copy its `hybrid_forward`."""

        def hybrid_forward(self, F, x, weight, bias=None):
            away = F.broadcast_sub(weight, weight.mean(axis=(1, 2, 3), keepdims=True))
            found = getattr(F, self._op_name)(x, away, bias, name="fwd", **self._kwargs)
            return found if self.act is None else self.act(found)

    layer = Standardized(3, 2, activation="relu", in_channels=2)
    layer.initialize(mx.init.One())
    layer.hybridize()
    assert layer(mx.nd.ones((1, 2, 4, 4))).asnumpy().tolist() == np.zeros((1, 3, 3, 3)).tolist()
    spread = _Conv(
        2, (3,), (2,), (1,), (1,), 1, "NCW", 0, None, False, None, "zeros", "Deconvolution", (1,)
    )
    spread.initialize(mx.init.One())
    assert spread(mx.nd.ones((1, 3, 4))).shape == (1, 2, 8)
    assert repr(spread) == "_Conv(2 -> 3, kernel_size=(3,), stride=(2,), padding=(1,), bias=False)"
    assert (
        isinstance(layer, _Conv) and mx.gluon.nn.Conv3DTranspose(1, 1)._op_name == "Deconvolution"
    )
    with pytest.raises(ValueError, match="layout"):
        _Conv(2, 3, layout="NC")


def test_addresses(monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://a.b/c")
    assert _get_repo_url() == "http://a.b/c/"
    assert _get_repo_file_url("x", "y.zip") == "http://a.b/c/x/y.zip"
    assert isinstance(_model_sha1, dict)


def test_interpolations():
    sizes = [(), (10, 10, 20, 20), (20, 20, 10, 10), (10, 20, 20, 10)]
    assert [_get_interp_method(9, s) for s in sizes] == [2, 2, 3, 1]
    assert [_get_interp_method(k, s) for k in (0, 4) for s in sizes] == [0] * 4 + [4] * 4
    with pytest.raises(ValueError, match="7"):
        _get_interp_method(7)


def test_amp_under_its_inner_path():
    assert amp.init is mx.contrib.amp.init
    assert amp._amp_initialized is False


@pytest.mark.parametrize("processes", [True, False])
def test_batches_of_a_pool(processes):
    batches = [[0, 1], [5, 3], [7]]
    kind = (
        multiprocessing.get_context("fork").Pool if processes else multiprocessing.pool.ThreadPool
    )
    batchify = mx.gluon.data.dataloader.default_mp_batchify_fn
    with kind(2) as pool:
        dataset = None if processes else SAMPLES
        found = _MultiWorkerIter(
            pool, batchify, batches, pin_memory=True, worker_fn=made, prefetch=2, dataset=dataset
        )
        assert len(found) == 3
        assert [x.asnumpy().tolist() for x in found] == [[0, 1], [5, 3], [7]]
        late = _MultiWorkerIter(pool, batchify, batches, worker_fn=slow, timeout=0.05)
        with pytest.raises(GnomonError, match=r"batch 0 was not made in 0.05 s"):
            next(late)


def refused(numbers, batchify, dataset):
    if 3 in numbers:
        raise ValueError("sample 3")
    return numbers


def test_a_pool_goes_on_behind_a_batch_that_cannot_be_made():
    with multiprocessing.pool.ThreadPool(1) as pool:
        found = _MultiWorkerIter(
            pool, None, [[0], [3], [5]], worker_fn=refused, prefetch=1, dataset=SAMPLES
        )
        assert next(found) == [0]
        with pytest.raises(ValueError, match="sample 3"):
            next(found)
        assert list(found) == [[5]]


def test_arrays_of_a_batch_elsewhere():
    x = mx.nd.ones((2,))
    first, (second, third) = _as_in_context([x, (x, 3)], mx.cpu(1))
    assert first.context == second.context == mx.cpu(1) and third == 3


class Dropped(mx.gluon.Parameter):
    """A parameter whose data differ from call to call, as libraries write them."""

    def __init__(self, other):
        self._deferred_init = other._deferred_init
        super().__init__(other.name, shape=other._shape, init=other.init, allow_deferred_init=True)
        for name in ("_var", "_data", "_grad", "_ctx_list", "_ctx_map", "_trainer"):
            setattr(self, name, getattr(other, name))
        self.calls = 0

    def data(self, ctx=None):
        self.calls += 1
        return self._check_and_get(self._data, ctx) * self.calls


@pytest.mark.parametrize("hybrid", [True, False])
def test_parameters_that_give_other_data_at_each_call(hybrid):
    net = mx.gluon.nn.Dense(2, use_bias=False, in_units=3, weight_initializer="ones")
    dropped = Dropped(net.weight)
    net.params._params[dropped.name] = net._reg_params["weight"] = dropped
    net.weight = dropped
    net.initialize(mx.init.One())
    if hybrid:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    x = mx.nd.ones((1, 3))
    net(x)
    dropped.calls = 0
    assert [net(x).asnumpy().tolist() for _ in range(2)] == [[[3.0, 3.0]], [[6.0, 6.0]]]
    with mx.autograd.record():
        y = net(x)
    y.backward()
    trainer.step(1)
    now = dropped._check_and_get(dropped._data, None)
    assert now.asnumpy().tolist() == [[-2.0] * 3] * 2


def test_what_libraries_call_of_blocks_parameters_and_trainers():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.weight._load_init(mx.nd.ones((2, 3)), mx.cpu())
    net.bias._load_init(mx.nd.ones((2,)), mx.cpu())
    net.hybridize()
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[4.0, 4.0]]
    net._clear_cached_op()
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[4.0, 4.0]]
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    assert len(trainer._params_to_init) == 2
    trainer._init_params()
    assert trainer._params_to_init == []


def test_graphs_of_blocks():
    net, x = mx.gluon.nn.Dense(2, prefix="d_"), mx.nd.ones((1, 3))
    net.initialize()
    net.hybridize()
    assert net._cached_graph == ()
    (data,), out = net._get_graph(x)
    assert (data.name, out.list_arguments()) == ("data", ["data", "d_weight", "d_bias"])
    net(x)
    assert [y.name for y in net._cached_graph[0]] == ["data"]
    assert net._cached_graph[1].list_outputs() == out.list_outputs() == ["d_fwd_output"]
    block = mx.gluon.SymbolBlock(out, data, net.collect_params())
    assert block._cached_graph[1] is block._get_graph(x)[1]


@pytest.mark.parametrize("contexts", [[mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]])
def test_trainers_with_steps_of_their_own(contexts):
    rates = []

    class Stepping(mx.gluon.Trainer):
        def step(self, batch_size, ignore_stale_grad=False):
            self._check_and_rescale_grad(self._scale / batch_size)
            if not self._kv_initialized:
                self._init_kvstore()
            if self._params_to_init:
                self._init_params()
            self._allreduce_grads()
            self._update(ignore_stale_grad)

    class Watching(mx.gluon.Trainer):
        def _check_and_rescale_grad(self, scale):
            rates.append(scale)
            super()._check_and_rescale_grad(scale / 2)

    found = []
    for kind in (mx.gluon.Trainer, Stepping, Watching):
        net = mx.gluon.nn.Dense(1, in_units=2, weight_initializer="ones")
        net.initialize(ctx=contexts)
        trainer = kind(net.collect_params(), "sgd", {"learning_rate": 0.5})
        for k in range(4):
            if k == 2:  # other arrays than before
                net.weight.grad_req = "null"
                net.weight.grad_req = "write"
            x = [mx.nd.ones((3, 2), ctx) for ctx in contexts]
            with mx.autograd.record():
                losses = [net(each) for each in x]
            mx.autograd.backward(losses)
            trainer.step(4 if kind is not Watching else 2)
        found.append(net.weight.data(contexts[0]).asnumpy().tolist())
    assert found[0] == found[1] == found[2] == [[1 - 0.5 * 0.75 * 4 * len(contexts)] * 2]
    assert rates == [0.5] * 4


def test_optimizers_that_count_several_indices_at_once():
    optimizer = mx.optimizer.create("sgd", learning_rate=0.5)
    optimizer._update_count([0, 2])
    optimizer._update_count(2)
    assert optimizer._index_update_count == {0: 1, 2: 2}
    assert optimizer._get_lrs([0, 2]) == [0.5, 0.5] and optimizer._get_wds([0]) == [0.0]


def test_dictionaries_of_parameters_take_over_others():
    mine, weight = mx.gluon.ParameterDict("a_"), mx.gluon.Parameter("w")
    mine.update({"w": weight})
    assert list(mine.values()) == [weight]
    with pytest.raises(GnomonError, match="the same parameter 'w'"):
        mine.update({"w": mx.gluon.Parameter("w")})


def test_the_context_in_force_is_the_default_one():
    assert mx.Context.default_ctx == mx.cpu(0)
    with mx.cpu(1):
        assert mx.Context.default_ctx == mx.cpu(1)


def test_the_default_context_is_set_for_a_thread():
    before = mx.Context.default_ctx
    mx.Context.default_ctx = mx.cpu(2)
    try:
        with mx.cpu(1):
            mx.Context.default_ctx = mx.cpu(3)
            assert (
                mx.cpu().default_ctx == mx.current_context() == mx.nd.ones(1).context == mx.cpu(3)
            )
        assert mx.current_context() == mx.cpu(2)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(mx.current_context).result() == mx.cpu(0)
        with pytest.raises(
            TypeError, match="argument 'default_ctx': expected a Context, got 'gpu'"
        ):
            mx.Context.default_ctx = "gpu"
        mx.Context._default_ctx.value = mx.cpu(1)  # as programs do that know MXNet's inside
        assert mx.current_context() == mx.cpu(1)
    finally:
        mx.Context.default_ctx = before


def test_a_program_has_contexts_of_its_own():
    class Named(mx.Context):
        def __init__(self, name):
            super().__init__("cpu", 1)
            self.name = name

    here = Named("left")
    assert (here.name, mx.nd.ones(1, ctx=here).context) == ("left", mx.cpu(1))
    with pytest.raises(AttributeError, match="'device_id': expected no assignment, got 2"):
        here.device_id = 2


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        (mx.gluon.rnn.GRU(4, 2, input_size=3), ["0.{}", "1.{}"]),
        (
            mx.gluon.rnn.RNN(4, 1, input_size=3, bidirectional=True),
            ["0.l_cell.{}", "0.r_cell.{}"],
        ),
    ],
)
def test_recurrent_layers_have_the_names_of_mxnets_files(layer, names, tmp_path):
    kinds = ["i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"]
    wanted = {f"0._unfused.{name.format(kind)}" for name in names for kind in kinds}
    net = mx.gluon.nn.HybridSequential()
    net.add(layer)
    net.initialize(mx.init.Normal())
    net.save_parameters(str(tmp_path / "x.params"))
    assert set(mx.nd.load(str(tmp_path / "x.params"))) == wanted
    before = {k: p.data().asnumpy() for k, p in net.collect_params().items()}
    net.initialize(mx.init.Zero(), force_reinit=True)
    net.load_parameters(str(tmp_path / "x.params"))
    for name, param in net.collect_params().items():
        np.testing.assert_array_equal(param.data().asnumpy(), before[name])


def test_projected_layers_have_the_names_of_mxnets_files():
    layer = mx.gluon.rnn.LSTM(4, 1, input_size=3, projection_size=2)
    assert "_unfused.0.h2r_weight" in layer._collect_params_with_prefix()


@pytest.mark.parametrize("weight", [np.float32(0.5), np.float64(0.5), np.int64(2)])
def test_weights_of_losses_may_be_numbers_of_numpy(weight):
    loss = mx.gluon.loss.L2Loss(weight=weight)
    assert repr(loss) == f"L2Loss(batch_axis=0, w={weight})"
    x = mx.nd.ones((1, 3))
    assert loss(x, 0 * x).asscalar() == weight / 2


def test_moving_what_is_not_initialized_is_an_error_of_value():
    with pytest.raises(ValueError, match="has not been initialized"):
        mx.gluon.Parameter("w", shape=(2,)).reset_ctx(mx.cpu())


def test_values_put_where_a_parameter_has_its_array_are_trained_through():
    """As MXFusion does, which finds the place in MXNet's tables by context."""
    net = mx.gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One(), ctx=[mx.cpu(1), mx.cpu(0)])
    weight = net.weight
    assert weight._ctx_list == [mx.cpu(1), mx.cpu(0)]
    assert weight._ctx_map == [[], [1, 0]]
    mean = mx.nd.array([[3.0, 4.0]])
    mean.attach_grad()
    with mx.autograd.record():
        weight._data[weight._ctx_map[mx.cpu().device_typeid & 1][0]] = mean * 2
        net(mx.nd.array([[5.0, 6.0]])).backward()
    assert mean.grad.asnumpy().tolist() == [[10.0, 12.0]]
    weight.reset_ctx(mx.cpu(1))
    assert weight._ctx_map == [[], [None, 0]]


@pytest.mark.parametrize("hybrid", [False, True])
def test_hooks_of_recurrent_layers_are_told_what_callers_get(hybrid):
    layer, x, told = mx.gluon.rnn.LSTM(4, input_size=3), mx.nd.ones((5, 2, 3)), []
    layer.initialize()
    layer.hybridize(hybrid)
    layer.register_forward_hook(lambda block, inputs, output: told.append((inputs, output)))
    assert layer(x).shape == (5, 2, 4)
    assert told[0][1].shape == (5, 2, 4)
    assert [state.shape for state in told[0][0][1]] == [(1, 2, 4)] * 2
    states = layer.begin_state(2)
    for given in (states, tuple(states)):
        _, after = layer(x, given)
        assert [state.shape for state in after] == [(1, 2, 4)] * 2
        assert told.pop()[1][0].shape == (5, 2, 4)
    lines = layer(x)
    np.testing.assert_array_equal(lines.asnumpy(), layer(x, states)[0].asnumpy())

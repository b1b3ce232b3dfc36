"""Mixed precision: casts, converted networks and scaled losses as MXNet 1.9.1 has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import amp as told

import gnomon as mx
from gnomon import autograd, gluon
from gnomon.base import GnomonError, ParamError
from gnomon.contrib import amp
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ops import precision

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "amp.json").read_text())

LABEL = "softmax_label"


@pytest.fixture
def started():
    """`amp.init`, taken back afterwards."""
    before = precision.current
    yield amp.init
    precision.current = before
    LEARNT.forget()


@pytest.mark.parametrize("name", told.OPTIONS)
def test_convert_symbol(name: str) -> None:
    found = told.told(amp.convert_symbol(told.network(mx), **told.OPTIONS[name]))
    assert sorted(map(str, _joined(found))) == sorted(map(str, _joined(GOLDEN["converted"][name])))


def _joined(rows: list[Any]) -> list[Any]:
    """Each node with its inputs' operators and names, in place of their numbers."""

    def whole(row: list[Any]) -> Any:
        op, name, attrs, inputs = row
        return [op, name, attrs, [[whole(rows[k]), out] for k, out in inputs]]

    return [whole(row) for row in rows]


@pytest.mark.parametrize("name", GOLDEN["lists"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lists(name: str, dtype: str) -> None:
    assert json.loads(json.dumps(getattr(amp, name)(dtype))) == GOLDEN["lists"][name][dtype]


def test_scaled_steps(started: Any) -> None:
    started("float16", target_precision_ops=["LRN"])
    for got, want in zip(told.scaled_steps(mx, amp), GOLDEN["steps"], strict=True):
        assert got[:3] == want[:3]
        np.testing.assert_allclose(got[3], want[3], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arrays_are_cast(started: Any, dtype: str) -> None:
    x, w, b = mx.nd.ones((2, 3)), mx.nd.ones((4, 3)), mx.nd.ones(4)
    before = [mx.nd.FullyConnected(x, w, b, num_hidden=4) for _ in range(3)][-1]
    assert before.dtype == np.float32
    started(dtype)
    for _ in range(3):  # what was learnt about these arrays counts no longer
        y = mx.nd.FullyConnected(x, w, b, num_hidden=4)
        assert str(np.dtype(y.dtype)) == dtype
        np.testing.assert_array_equal(y.asnumpy().astype("f"), before.asnumpy())
        assert mx.nd.exp(y).dtype == y.softmax().dtype == (y**2).dtype == np.float32
        assert (y + before).dtype == mx.nd.broadcast_add(y, before).dtype == np.float32
        assert (y + y).dtype == y.dtype
        assert mx.nd.Activation(y, act_type="softrelu").dtype == np.float32
    assert mx.nd.sum(mx.nd.ones((2, 3), dtype="int32")).dtype == np.int32
    assert mx.nd.exp(mx.nd.ones(2, dtype="float64")).dtype == np.float64
    out = mx.nd.zeros((2, 4))
    mx.nd.FullyConnected(x, w, b, num_hidden=4, out=out)
    np.testing.assert_array_equal(out.asnumpy(), before.asnumpy())


def test_a_network_trains_in_bfloat16(started: Any) -> None:
    started("bfloat16")
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    mx.random.seed(0)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    amp.init_trainer(trainer)
    rng = np.random.default_rng(0)
    x = mx.nd.array(rng.normal(size=(64, 4)))
    y = mx.nd.array((x.asnumpy().sum(1) > 0).astype("f"))
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(30):
        with autograd.record():
            loss = loss_of(net(x), y)
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(64)
        losses.append(float(loss.mean().asscalar()))
    assert losses[-1] < losses[0] / 3
    assert all(p.dtype in ("float32", np.float32) for p in net.collect_params().values())
    assert trainer._amp_loss_scaler.loss_scale == 2.0**16


def test_steps_with_weights_on_a_store_are_skipped(started: Any) -> None:
    started(target_precision_ops=["LRN"])
    net = gluon.nn.Dense(1, in_units=1)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 1}, "local", update_on_kvstore=True
    )
    amp.init_trainer(trainer)
    for scale, after in ((np.inf, 1.0), (1.0, 0.0)):
        with autograd.record():
            loss = net(mx.nd.ones((1, 1)) * scale)
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
        trainer.step(1)
        assert net.weight.data().asscalar() == after


def test_casts_belong_where_their_operator_does(started: Any) -> None:
    started("float16")

    def body(x: Any, total: Any) -> Any:
        made = mx.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="fc") + total
        return made, made

    stacked, last = mx.sym.contrib.foreach(body, mx.sym.var("x"), mx.sym.var("start"))
    step = mx.sym.Group([stacked, last]).simple_bind(mx.cpu(), x=(6, 1, 2), start=(1, 2))
    for name, value in {"x": 0.5, "start": 1, "fc_weight": 2}.items():
        step.arg_dict[name][:] = value
    outputs = step.forward(is_train=True)
    np.testing.assert_array_equal(outputs[0].asnumpy()[:, 0, 0], range(3, 15, 2))
    step.backward([mx.nd.ones(x.shape) for x in outputs])
    np.testing.assert_array_equal(step.grad_dict["fc_weight"].asnumpy(), np.full((2, 2), 13.5))
    with mx.AttrScope(ctx_group="far"):
        net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    groups = {k: v["ctx_group"] for k, v in net.attr_dict().items() if "ctx_group" in v}
    assert sum("amp_cast" in name for name in groups) == 3


def test_symbols_and_traces_are_cast(started: Any) -> None:
    started()
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=4, name="fc")
    net = mx.sym.elemwise_add(mx.sym.softmax(net, name="s"), mx.sym.var("q"), name="sum")
    ops = [n.op.name for n in net._graph.topo if n.op is not None]
    wanted = ["amp_cast"] * 3 + ["FullyConnected", "amp_cast", "softmax", "amp_multicast"]
    assert ops == [*wanted, "elemwise_add"]
    assert net.list_arguments() == ["x", "fc_weight", "fc_bias", "q"]
    assert "amp" not in net.tojson()
    conv = gluon.nn.Conv2D(2, 3)
    conv.initialize()
    conv.hybridize()
    assert conv(mx.nd.ones((1, 1, 5, 5))).dtype == np.float16


def test_losses_of_arrays_scale_their_own_gradient(started: Any) -> None:
    started()
    net = gluon.nn.Dense(2, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    amp.init_trainer(trainer)
    trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = 8.0
    data = mx.nd.zeros((1, 2))
    data.attach_grad()
    with autograd.record():
        loss = mx.nd.SoftmaxOutput(data, mx.nd.ones(1))
    loss.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), [[4, -4]])


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_models_and_blocks(dtype: str, optional: bool) -> None:
    mx.random.seed(3)
    net = gluon.nn.HybridSequential(prefix="net_")
    net.add(gluon.nn.Dense(8, in_units=4), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = mx.nd.array(np.linspace(0, 1, 8).reshape(2, 4))
    want = net(x).asnumpy()
    made = amp.convert_hybrid_block(net, dtype, cast_optional_params=optional)
    got = made(x)
    assert got.dtype == np.float32
    accuracy = {"float16": 2e-3, "bfloat16": 2e-2}[dtype]  # the last bit of two layers
    np.testing.assert_allclose(got.asnumpy(), want, rtol=accuracy, atol=accuracy)
    symbol = net._last.trace.symbol  # what export writes
    params = {n: p.data() for n, p in net.collect_params().items()}
    aux = {n: params.pop(n) for n in symbol.list_auxiliary_states()}
    symbol, args, aux = amp.convert_model(symbol, params, aux, dtype, cast_optional_params=optional)
    small = {n for n, a in args.items() if a.dtype != np.float32}
    dense = {n for n in args if "dense" in n}
    assert small == (dense if optional else set())
    assert all(a.dtype == np.float32 for a in aux.values())
    assert {n for n, p in made.collect_params().items() if np.dtype(p.dtype) != "f"} == small


def test_modules_with_buckets() -> None:
    def generate(key: int) -> tuple[Any, list[str], list[str]]:
        x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, flatten=False, name="fc")
        return mx.sym.SoftmaxOutput(mx.sym.sum(x, axis=1), name="softmax"), ["data"], [LABEL]

    def batch(key: int) -> Any:
        data, label = mx.nd.array(np.linspace(-1, 1, 8 * key).reshape(2, key, 4)), mx.nd.zeros(2)
        given = {"provide_data": [("data", data.shape)], "provide_label": [(LABEL, (2,))]}
        return mx.io.DataBatch([data], [label], bucket_key=key, **given)

    plain = mx.mod.BucketingModule(generate, default_bucket_key=5)
    with pytest.raises(TypeError, match="BucketingModule"):
        amp.amp.convert_bucketing_module(3)
    with pytest.raises(GnomonError, match="bind"):
        amp.amp.convert_bucketing_module(plain)
    plain.bind([("data", (2, 5, 4))], [(LABEL, (2,))])
    plain.init_params(mx.init.Xavier())
    made = amp.amp.convert_bucketing_module(plain, "bfloat16", cast_optional_params=True)
    made.bind([("data", (2, 5, 4))], [(LABEL, (2,))])
    assert {x.dtype.__name__ for x in made.get_params()[0].values()} == {"bfloat16"}
    for key in (5, 3):
        for module in (plain, made):
            module.forward(batch(key), is_train=False)
        assert "fc_output_amp_cast_float32_output" in made.symbol.get_internals().list_outputs()
        want, got = (m.get_outputs()[0].asnumpy() for m in (plain, made))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=3e-2)


def test_mistakes(started: Any) -> None:
    net, symbol = gluon.nn.Dense(2, in_units=2), told.network(mx)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(ParamError, match=r"target_dtype.*float16 or bfloat16.*'float32'"):
        started("float32")
    with pytest.raises(GnomonError, match=r"init_trainer.*amp\.init\(\) first"):
        amp.init_trainer(trainer)
    started()
    started()
    with pytest.raises(GnomonError, match=r"target_dtype.*float16.*bfloat16"):
        started("bfloat16")
    for wrong in (mx.optimizer.SGD(), 3):
        with pytest.raises(TypeError, match=r"optimizer_or_trainer.*Trainer"):
            amp.init_trainer(wrong)
    scope = amp.scale_loss(mx.nd.ones(1), trainer)
    with pytest.raises(GnomonError, match="init_trainer first"):
        scope.__enter__()
    for given, text in (
        ({"target_dtype_ops": ["nope"]}, "target_dtype_ops.*'nope'"),
        ({"target_dtype_ops": ["dot"], "fp32_ops": ["dot"]}, "fp32_ops.*no operator of target"),
        ({"conditional_fp32_ops": ["x"]}, "conditional_fp32_ops.*rows"),
        ({"conditional_fp32_ops": [("Activation", "kind", ["x"])]}, "kind"),
        ({"fp32_ops": "dot"}, "fp32_ops.*list"),
    ):
        with pytest.raises(ParamError, match=text):
            amp.convert_symbol(symbol, **given)
    with pytest.raises(TypeError, match="Symbol"):
        amp.convert_symbol(3)
    with pytest.raises(TypeError, match="aux_params"):
        amp.convert_model(symbol, {}, 3)
    with pytest.raises(TypeError, match="HybridBlock"):
        amp.convert_hybrid_block(3)
    with pytest.raises(GnomonError, match="hybridize"):
        amp.convert_hybrid_block(net)

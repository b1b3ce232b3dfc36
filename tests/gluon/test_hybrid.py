"""Hybridized blocks compute what plain ones do."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon.gluon import nn


def small_net(prefix="net_"):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(
            nn.Conv2D(4, 3, activation="relu"),
            nn.BatchNorm(),
            nn.MaxPool2D(),
            nn.Flatten(),
            nn.Dense(8, activation="tanh"),
            nn.Dense(3),
        )
    return net


def step(net, x):
    """One step: outputs, gradients and states."""
    with mx.autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    params = net.collect_params()
    grads = {k: p.grad().asnumpy() for k, p in params.items() if p.grad_req != "null"}
    return y.asnumpy(), grads, {k: p.data().asnumpy() for k, p in params.items()}


@pytest.fixture
def batch():
    return mx.nd.array(np.random.default_rng(0).standard_normal((2, 3, 8, 8)))


def test_steps_agree(batch):
    plain, hybrid = small_net("a_"), small_net("a_")
    plain.initialize(mx.init.Xavier())
    plain(batch)
    hybrid.initialize()
    hybrid(batch)
    for one, other in zip(
        plain.collect_params().values(), hybrid.collect_params().values(), strict=True
    ):
        other.set_data(one.data())
    hybrid.hybridize()
    for _ in range(2):
        found, expected = step(hybrid, batch), step(plain, batch)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(found[1:], expected[1:], strict=True):
            for key, value in theirs.items():
                np.testing.assert_allclose(mine[key], value, rtol=1e-4, atol=1e-4, err_msg=key)


def test_files_cross(batch, tmp_path):
    net = small_net()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    expected = net(batch).asnumpy()
    net.export(str(tmp_path / "net"))
    files = [str(tmp_path / f"net{end}") for end in ("-symbol.json", "-0000.params")]
    found = mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_array_equal(found(batch).asnumpy(), expected)
    net.save_parameters(str(tmp_path / "params"))
    other = small_net("other_")
    other.load_parameters(str(tmp_path / "params"))
    np.testing.assert_allclose(other(batch).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_states_of_an_imported_network_come_after_its_parameters(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.BatchNorm(in_channels=2), nn.Dense(3, in_units=2))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    net.export(str(tmp_path / "net"))
    files = [str(tmp_path / name) for name in ("net-symbol.json", "net-0000.params")]
    params = mx.gluon.SymbolBlock.imports(files[0], "data", files[1]).collect_params().values()
    assert [p.grad_req for p in params] == ["write"] * 4 + ["null"] * 2


@pytest.mark.parametrize("given", ["x", 3, {"a": 1}])
@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_what_does_not_flow_between_blocks(given, kind):
    class Gives(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return given

    net = Gives()
    net.hybridize()
    with pytest.raises(kind, match="'outputs': expected NDArrays, symbols or None"):
        net(mx.nd.ones(1))
    with pytest.raises(kind, match="'inputs': expected NDArrays, symbols or None"):
        net(mx.nd.ones(1), given)


class Unread(mx.gluon.HybridBlock):
    """A block that computes with its second input and its first layer alone."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.read, self.other = nn.Dense(2, in_units=3), nn.Dense(2, in_units=3)

    def hybrid_forward(self, F, x, y, z):
        return self.read(y)


def test_inputs_and_parameters_that_nothing_reads_are_told_when_a_block_is_compiled():
    net, x = Unread(prefix="net_"), mx.nd.ones((1, 3))
    net.initialize()
    net(x, x, x)
    net.hybridize()
    with pytest.warns(UserWarning, match="do not depend on") as told:
        net(x, x, [x])
    assert [str(w.message).partition(": ")[2] for w in told] == [
        "the outputs do not depend on the inputs 0, 2",
        "the outputs do not depend on the parameters net_dense1_weight, net_dense1_bias",
    ]
    net(x, x, [x])  # what is compiled already says nothing

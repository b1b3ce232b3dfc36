"""Training after a step that failed: what it did not change is what it was."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import EngineError


class Clumsy(mx.operator.CustomOp):
    fails = False

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if Clumsy.fails:
            raise ValueError("clumsy")
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("test_clumsy")
class ClumsyProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Clumsy()


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_goes_on_where_a_backward_pass_failed_and_was_mended(hybrid, optimizer):
    """As in MXNet: weights that a failed step did not move are what they were."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(3, in_units=2))
    net.add(mx.gluon.nn.HybridLambda(lambda F, x: F.Custom(x, op_type="test_clumsy")))
    net.initialize()
    if hybrid:
        net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})
    weight = next(iter(net.collect_params().values()))

    def step():
        with mx.autograd.record():
            loss = net(mx.nd.ones((4, 2))).sum()
        loss.backward()
        trainer.step(1)
        return weight.data().asnumpy()

    seen = [step()]
    Clumsy.fails = True
    with pytest.raises(EngineError, match="clumsy"):
        step()
    Clumsy.fails = False
    np.testing.assert_array_equal(weight.data().asnumpy(), seen[0])
    np.testing.assert_array_equal(weight.grad().asnumpy(), 8)  # of the step before
    seen += [step(), step()]
    assert all((b < a).all() for a, b in itertools.pairwise(seen))
    assert (weight.grad().asnumpy() == 8).all()

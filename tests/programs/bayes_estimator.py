"""Bayes by backprop, SGLD, an Estimator with handlers, a function with its own gradient."""

import logging
import math
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import (
    Estimator,
    BatchBegin,
    EpochEnd,
    EarlyStoppingHandler,
    CheckpointHandler,
)
from mxnet.gluon.data.vision import transforms
from mxnet.lr_scheduler import CosineScheduler, LRScheduler


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class BayesDense(gluon.Block):
    def __init__(self, units, in_units, **kwargs):
        super(BayesDense, self).__init__(**kwargs)
        with self.name_scope():
            self.mu = self.params.get('mu', shape=(units, in_units), init=mx.init.Normal(0.1))
            self.rho = self.params.get('rho', shape=(units, in_units), init=mx.init.Constant(-4))

    def forward(self, x):
        sigma = nd.log1p(nd.exp(self.rho.data()))
        w = self.mu.data() + sigma * nd.random_normal(shape=self.mu.shape, ctx=x.context)
        self.kl = (nd.log(1.0 / sigma) + (sigma**2 + self.mu.data() ** 2) / 2).sum()
        return nd.dot(x, w.T)


class WarmUp(LRScheduler):
    def __init__(self, base, steps):
        super(WarmUp, self).__init__(base)
        self.base, self.steps = base, steps
        self.rest = CosineScheduler(max_update=200, base_lr=base, final_lr=base / 10)

    def __call__(self, num_update):
        if num_update < self.steps:
            return self.base * (num_update + 1) / self.steps
        return self.rest(num_update - self.steps)


class CountBatches(BatchBegin, EpochEnd):
    def __init__(self):
        self.batches, self.epochs = 0, 0

    def batch_begin(self, estimator, *args, **kwargs):
        self.batches += 1

    def epoch_end(self, estimator, *args, **kwargs):
        self.epochs += 1


def bayes(x, y):
    net = gluon.nn.Sequential()
    with net.name_scope():
        net.add(BayesDense(16, 4), nn.Lambda(lambda v: Sigmoid()(v)), BayesDense(2, 16))
    net.collect_params().initialize()
    trainer = gluon.Trainer(
        net.collect_params(), 'adam', {'lr_scheduler': WarmUp(0.05, 10), 'learning_rate': 0.05}
    )
    sce = gluon.loss.SoftmaxCrossEntropyLoss()
    for i in range(150):
        with autograd.record():
            loss = sce(net(x), y).mean() + sum(b.kl for b in net if hasattr(b, 'kl')) / 1e5
        loss.backward()
        norm = gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 5.0)
        assert np.isfinite(norm)
        trainer.step(1)
    votes = nd.stack(*[net(x).argmax(axis=1) for _ in range(9)]).mean(axis=0).round()
    return (votes == y).mean().asscalar()


def sgld(x, y):
    data = mx.sym.Variable('data')
    out = mx.sym.LogisticRegressionOutput(
        mx.sym.FullyConnected(data, num_hidden=1, name='fc'), name='lr'
    )
    exe = out.simple_bind(ctx=mx.cpu(), data=x.shape, grad_req='write')
    for name, arr in exe.arg_dict.items():
        if name.startswith('fc'):
            arr[:] = mx.random.normal(0, 0.1, shape=arr.shape)
    updater = mx.optimizer.get_updater(
        mx.optimizer.create('sgld', learning_rate=0.01, wd=1.0, rescale_grad=1.0)
    )
    kept = []
    for i in range(120):
        exe.forward(is_train=True, data=x, lr_label=y)
        exe.backward()
        for k, (w, g) in enumerate(zip(exe.arg_arrays, exe.grad_arrays)):
            if exe._symbol.list_arguments()[k].startswith('fc'):
                updater(k, g, w)
        if i > 60:
            kept.append(exe.forward(is_train=False)[0].asnumpy())
    mean = np.mean(kept, axis=0)[:, 0]
    return np.mean((mean > 0.5).astype(np.int) == y.asnumpy().astype(np.int))


def estimate(x, y):
    data = gluon.data.ArrayDataset(x, y)
    train = gluon.data.DataLoader(data, batch_size=20, shuffle=True)
    valid = gluon.data.DataLoader(data, batch_size=40)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation='tanh'), nn.Dropout(0.1), nn.Dense(2))
    net.initialize(mx.init.MSRAPrelu())
    net.hybridize()
    acc = mx.metric.Accuracy()
    est = Estimator(
        net,
        gluon.loss.SoftmaxCELoss(),
        train_metrics=acc,
        trainer=gluon.Trainer(net.collect_params(), 'nag', {'learning_rate': 0.3, 'momentum': 0.5}),
    )
    count = CountBatches()
    est.logger.setLevel(logging.ERROR)
    est.fit(
        train,
        valid,
        epochs=6,
        event_handlers=[
            count,
            CheckpointHandler('.', model_prefix='est', monitor=acc, save_best=True),
            EarlyStoppingHandler(monitor=acc, patience=5),
        ],
    )
    assert count.epochs == 6 and count.batches == 6 * len(train), (count.epochs, count.batches)
    est.evaluate(valid)
    return est.val_metrics[0].get()[1]


if __name__ == '__main__':
    mx.random.seed(4)
    np.random.seed(4)
    x = nd.random.normal(shape=(200, 4))
    y = (x[:, 0] + x[:, 1] * 2 > 0).astype('float32')
    found = bayes(x, y), sgld(x, y), estimate(x, y)
    print('%.3f %.3f %.3f' % found)
    print('least %.3f' % min(found))

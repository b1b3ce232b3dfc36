"""An iterator, metric, initializer and optimizer of the program's own; training goes on."""

import logging
import os

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

logging.basicConfig(level=logging.INFO)


class Blobs(mx.io.DataIter):
    """Three blobs in a plane; the old way to write an iterator."""

    def __init__(self, num_batches, batch_size=16):
        super(Blobs, self).__init__()
        self.num_batches, self.batch_size, self.cur_batch = num_batches, batch_size, 0
        self._provide_data = zip(['data'], [(batch_size, 2)])
        self._provide_data = [(n, s) for n, s in self._provide_data]

    def __iter__(self):
        return self

    def reset(self):
        self.cur_batch = 0

    def __next__(self):
        return self.next()

    @property
    def provide_data(self):
        return self._provide_data

    @property
    def provide_label(self):
        return [('softmax_label', (self.batch_size,))]

    def next(self):
        if self.cur_batch >= self.num_batches:
            raise StopIteration
        rng = np.random.RandomState(self.cur_batch)
        self.cur_batch += 1
        y = rng.randint(0, 3, self.batch_size).astype(np.int)
        x = np.array([[0, 1], [1, -1], [-1, -1]], dtype=np.float)[y] + rng.normal(
            0, 0.3, (self.batch_size, 2)
        )
        return mx.io.DataBatch([nd.array(x)], [nd.array(y)], pad=0)


class Margin(mx.metric.EvalMetric):
    """By how much the right class leads, on average."""

    def __init__(self):
        super(Margin, self).__init__('margin')

    def update(self, labels, preds):
        mx.metric.check_label_shapes(labels, preds)
        for label, pred in zip(labels, preds):
            right = nd.pick(pred, label, axis=1)
            others = nd.where(nd.one_hot(label, 3), -nd.ones_like(pred), pred)
            self.sum_metric += float((right - others.max(axis=1)).sum().asscalar())
            self.num_inst += label.shape[0]


@mx.init.register
class Stripes(mx.init.Initializer):
    def __init__(self, scale=0.1):
        super(Stripes, self).__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, desc, arr):
        arr[:] = self.scale * np.cos(np.arange(arr.size)).reshape(arr.shape)


@mx.optimizer.register
class Heavy(mx.optimizer.Optimizer):
    def __init__(self, beta=0.8, **kwargs):
        super(Heavy, self).__init__(**kwargs)
        self.beta = beta

    def create_state(self, index, weight):
        return nd.zeros(weight.shape, weight.context, dtype=weight.dtype)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        lr, wd = self._get_lr(index), self._get_wd(index)
        state[:] = self.beta * state - lr * (grad * self.rescale_grad + wd * weight)
        weight[:] += state


def network():
    data = mx.symbol.Variable('data')
    net = mx.symbol.FullyConnected(data, num_hidden=8, name='fc1')
    net = mx.symbol.Activation(net, act_type='tanh', name='act1')
    bias = mx.symbol.Variable('fc2_bias', init=mx.init.Constant(0.2), wd_mult=0.0)
    net = mx.symbol.FullyConnected(net, bias=bias, num_hidden=3, name='fc2')
    return mx.symbol.SoftmaxOutput(net, name='softmax')


def settings():
    schedule = mx.lr_scheduler.MultiFactorScheduler(
        [12, 30], factor=0.5, base_lr=0.4, warmup_steps=4
    )
    return dict(
        optimizer='heavy',
        optimizer_params={'learning_rate': 0.4, 'wd': 1e-3, 'lr_scheduler': schedule},
    )


train, seen = Blobs(8), []
module = mx.mod.Module(network(), context=mx.cpu())
monitor = mx.mon.Monitor(
    10, stat_func=lambda x: nd.norm(x) / np.sqrt(x.size), pattern='act1.*', sort=True
)
module.fit(
    train,
    eval_metric=['acc', Margin()],
    initializer=Stripes(0.5),
    num_epoch=2,
    monitor=monitor,
    batch_end_callback=[
        mx.callback.Speedometer(16, 4),
        lambda p: seen.append(p.eval_metric.get()[1][1]),
    ],
    epoch_end_callback=mx.callback.module_checkpoint(module, 'own', save_optimizer_states=True),
    **settings(),
)
print(len(seen), 'margin %.4f' % seen[-1])

again = mx.mod.Module.load('own', 2, load_optimizer_states=True)
again.fit(
    train,
    eval_data=Blobs(3),
    eval_metric=['acc', Margin()],
    begin_epoch=2,
    num_epoch=4,
    **settings(),
)
model = mx.model.FeedForward.load('own', 2, num_epoch=3, learning_rate=0.1)
model.fit(train, batch_end_callback=lambda p: seen.append(p.nbatch))
print(seen[-8:], sorted(f for f in os.listdir('.') if f.startswith('own')))

# the features, by gluon, from the files of the module
features = mx.sym.load('own-symbol.json').get_internals()['act1_output']
block = gluon.SymbolBlock(features, mx.sym.var('data'))
block.collect_params().load('own-0002.params', ignore_extra=True)
print(block)
print(
    [round(v, 3) for v in block(nd.array([[0, 1]]))[0, :3].asnumpy().tolist()],
    [nd.ones(1).asscalar()],
)
print(Stripes(2) == Stripes(2), Stripes(2).dumps())
try:
    mx.optimizer.create('hevy')
except ValueError:
    print('no such optimizer')
for name, value in again.score(Blobs(5), ['acc', Margin()]):
    print(name, '%.4f' % value)

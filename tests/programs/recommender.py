"""A sparse factorization machine, files of images, sub-pixels, control flow, the profiler."""

import os
import random
from collections import namedtuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.data import DataLoader
from mxnet.gluon.data.vision import ImageFolderDataset, transforms

Batch = namedtuple('Batch', ['data'])


def factorization_machine(n):
    rng = np.random.RandomState(0)
    dense = (rng.rand(400, n) < 0.1).astype(np.float32)
    w = rng.randn(n)
    label = (dense.dot(w) > 0).astype(np.float32)
    with open('fm.libsvm', 'w') as f:
        for row, y in zip(dense, label):
            f.write('%d %s\n' % (y, ' '.join('%d:%g' % (i, row[i]) for i in row.nonzero()[0])))
    it = mx.io.LibSVMIter(data_libsvm='fm.libsvm', data_shape=(n,), batch_size=40)
    x = mx.sym.Variable('data', stype='csr')
    v = mx.sym.Variable('v', shape=(n, 4), stype='row_sparse', init=mx.init.Normal(0.05))
    weight = mx.sym.Variable('w', shape=(n, 1), stype='row_sparse', init=mx.init.Normal(0.05))
    bias = mx.sym.Variable('w0', shape=(1,), init=mx.init.Zero())
    linear = mx.sym.broadcast_add(mx.sym.sparse.dot(x, weight), bias)
    squares = mx.sym.square(mx.sym.sparse.dot(x, v)).sum(axis=1, keepdims=True)
    each = mx.sym.sum(
        mx.sym.sparse.dot(mx.sym.sparse.square(x), mx.sym.sparse.square(v)), axis=1, keepdims=True
    )
    model = mx.sym.LogisticRegressionOutput(data=linear + 0.5 * (squares - each), name='out')
    mod = mx.mod.Module(model, data_names=['data'], label_names=['out_label'])
    it = mx.io.LibSVMIter(
        data_libsvm='fm.libsvm', data_shape=(n,), batch_size=40, label_name='out_label'
    )
    mod.bind(data_shapes=it.provide_data, label_shapes=[('out_label', (40,))])
    mod.init_params()
    mod.init_optimizer(
        kvstore=mx.kv.create('local'), optimizer='adam', optimizer_params=(('learning_rate', 0.05),)
    )
    metric = mx.metric.CustomMetric(lambda l, p: np.mean((p[:, 0] > 0.5) == l), name='hits')
    for epoch in range(12):
        it.reset()
        metric.reset()
        for batch in it:
            mod.prepare(
                batch, sparse_row_id_fn=lambda b: {'w': b.data[0].indices, 'v': b.data[0].indices}
            )
            mod.forward_backward(batch)
            mod.update()
            mod.update_metric(metric, batch.label)
    return metric.get()[1]


def write_images(folder):
    rng = random.Random(0)
    for kind in ('dark', 'light'):
        os.makedirs(os.path.join(folder, kind))
        for k in range(12):
            base = 40 if kind == 'dark' else 190
            picture = mx.nd.array(
                [[[base + rng.randrange(30)] * 3 for _ in range(12)] for _ in range(10)],
                dtype='uint8',
            )
            import cv2

            cv2.imwrite(os.path.join(folder, kind, '%d.png' % k), picture.asnumpy())


class SuperResolutionNet(gluon.Block):
    def __init__(self, upscale_factor):
        super(SuperResolutionNet, self).__init__()
        with self.name_scope():
            self.conv1 = nn.Conv2D(8, (3, 3), strides=(1, 1), padding=(1, 1), activation='relu')
            self.conv2 = nn.Conv2D(upscale_factor**2, (3, 3), strides=(1, 1), padding=(1, 1))
        self.upscale_factor = upscale_factor

    def forward(self, x):
        x = self.conv2(self.conv1(x))
        batch, _, h, w = x.shape
        f = self.upscale_factor
        return (
            x.reshape((batch, f, f, h, w))
            .transpose((0, 3, 1, 4, 2))
            .reshape((batch, 1, h * f, w * f))
        )


def folders():
    write_images('pictures')
    change = transforms.Compose(
        [
            transforms.Resize(8),
            transforms.RandomFlipLeftRight(),
            transforms.RandomColorJitter(0.1, 0.1, 0.1),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    data = ImageFolderDataset('pictures')
    assert data.synsets == ['dark', 'light'] and len(data) == 24
    loader = DataLoader(
        data.transform_first(change), 6, shuffle=True, num_workers=2, last_batch='discard'
    )
    net = SuperResolutionNet(2)
    net.initialize(mx.init.Orthogonal())
    trainer = gluon.Trainer(net.collect_params(), mx.optimizer.Adam(learning_rate=0.01))
    l2, first, last = gluon.loss.L2Loss(), None, 0
    for epoch in range(8):
        total = 0
        for x, _ in loader:
            big = x.mean(axis=1, keepdims=True)
            small = nd.Pooling(big, kernel=(2, 2), stride=(2, 2), pool_type='avg')
            with autograd.record():
                loss = l2(net(small), big)
            loss.backward()
            trainer.step(x.shape[0])
            total += nd.mean(loss).asscalar()
        first, last = first or total, total
    return last < first * 0.5


def control():
    def step(x, states):
        total = states[0] + x
        return total * 2, [total]

    outs, states = nd.contrib.foreach(step, nd.arange(5), [nd.zeros(1)])
    _, (i, s) = nd.contrib.while_loop(
        lambda i, s: i <= 5,
        lambda i, s: ([], [i + 1, s + i]),
        [nd.array([1]), nd.array([0])],
        max_iterations=10,
    )
    top = nd.topk(nd.array([[3, 1, 2], [9, 7, 8]]), k=2, ret_typ='mask')
    return outs.asnumpy().tolist(), float(s.asnumpy()), top.sum().asscalar()


if __name__ == '__main__':
    mx.random.seed(3)
    np.random.seed(3)
    mx.profiler.set_config(profile_all=True, filename='profile.json', aggregate_stats=True)
    mx.profiler.set_state('run')
    hits = factorization_machine(30)
    mx.nd.waitall()
    mx.profiler.set_state('stop')
    assert 'Name' in mx.profiler.dumps()
    learned = folders()
    print(control())
    nd.save('many.nd', {'a': nd.arange(3), 'b': nd.ones((2, 2), dtype=np.float16)})
    kept = nd.load('many.nd')
    print(sorted(kept), kept['b'].dtype == np.float16, mx.nd.waitall())
    print('%s accuracy %.3f' % (learned, hits))

"""A GAN of two modules that hand gradients on, word vectors, fine tuning of a SymbolBlock."""

from __future__ import division, print_function

import argparse
import collections
import itertools

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, loss as gloss


def dcgan(steps, batch_size, z=8):
    def fc(data, name, n, act=None):
        net = mx.sym.FullyConnected(data, num_hidden=n, name=name)
        return mx.sym.Activation(net, act_type=act) if act else net

    rand = mx.sym.Variable('rand')
    gen = mx.sym.Reshape(fc(fc(rand, 'g1', 16, 'relu'), 'g2', 2), shape=(0, -1), name='gout')
    data, label = mx.sym.Variable('data'), mx.sym.Variable('label')
    dis = mx.sym.LogisticRegressionOutput(
        data=mx.sym.Flatten(fc(fc(data, 'd1', 16, 'tanh'), 'd2', 1)), label=label, name='dloss'
    )
    modG = mx.mod.Module(symbol=gen, data_names=('rand',), label_names=None, context=mx.cpu())
    modG.bind(data_shapes=[('rand', (batch_size, z))])
    modG.init_params(initializer=mx.init.Normal(0.3))
    modG.init_optimizer(
        optimizer='adam', optimizer_params={'learning_rate': 0.01, 'wd': 0.0, 'beta1': 0.5}
    )
    modD = mx.mod.Module(symbol=dis, data_names=('data',), label_names=('label',), context=mx.cpu())
    modD.bind(
        data_shapes=[('data', (batch_size, 2))],
        label_shapes=[('label', (batch_size, 1))],
        inputs_need_grad=True,
    )
    modD.init_params(initializer=mx.init.Normal(0.3))
    modD.init_optimizer(
        optimizer='adam', optimizer_params={'learning_rate': 0.02, 'wd': 0.0, 'beta1': 0.5}
    )

    def facc(label, pred):
        return ((pred.ravel() > 0.5) == label.ravel()).mean()

    mG, mD = mx.metric.CustomMetric(facc), mx.metric.np(lambda l, p: facc(l, p))
    rng = np.random.RandomState(0)
    label = mx.nd.zeros((batch_size, 1))
    for t in range(steps):
        noise = mx.io.DataBatch([mx.random.normal(0, 1.0, shape=(batch_size, z))], [])
        modG.forward(noise, is_train=True)
        outG = modG.get_outputs()
        label[:] = 0
        modD.forward(mx.io.DataBatch(outG, [label]), is_train=True)
        modD.backward()
        gradD = [
            [grad.copyto(grad.context) for grad in grads] for grads in modD._exec_group.grad_arrays
        ]
        modD.update_metric(mD, [label])
        label[:] = 1
        real = rng.multivariate_normal([2, -1], [[0.1, 0], [0, 0.1]], batch_size)
        modD.forward(mx.io.DataBatch([mx.nd.array(real)], [label]), is_train=True)
        modD.backward()
        for gradsr, gradsf in zip(modD._exec_group.grad_arrays, gradD):
            for gradr, gradf in zip(gradsr, gradsf):
                gradr += gradf
        modD.update()
        modD.forward(mx.io.DataBatch(outG, [label]), is_train=True)
        modD.backward()
        modG.backward(modD.get_input_grads())
        mG.update([label], modD.get_outputs())
        modG.update()
    modG.forward(noise, is_train=False)
    return np.abs(modG.get_outputs()[0].asnumpy().mean(axis=0) - [2, -1]).max(), mG.get(), mD.get()


def batchify(data):
    max_len = max(len(c) + len(n) for _, c, n in data)
    centers, contexts_negatives, masks, labels = [], [], [], []
    for center, context, negative in data:
        cur_len = len(context) + len(negative)
        centers += [center]
        contexts_negatives += [context + negative + [0] * (max_len - cur_len)]
        masks += [[1] * cur_len + [0] * (max_len - cur_len)]
        labels += [[1] * len(context) + [0] * (max_len - len(context))]
    return (
        nd.array(centers).reshape((-1, 1)),
        nd.array(contexts_negatives),
        nd.array(masks),
        nd.array(labels),
    )


def skip_gram(center, contexts_and_negatives, embed_v, embed_u):
    return nd.batch_dot(embed_v(center), embed_u(contexts_and_negatives).swapaxes(1, 2))


def word2vec():
    rng = np.random.RandomState(1)
    dataset = []
    for _ in range(300):
        group, word = rng.randint(0, 2), rng.randint(0, 5)
        context = [int(5 * group + w) for w in rng.randint(0, 5, rng.randint(1, 4)) if w != word]
        negative = [int(w) for w in rng.randint(0, 10, 3) if w not in context]
        dataset.append((int(5 * group + word), context, negative))
    net = nn.Sequential()
    net.add(
        nn.Embedding(input_dim=10, output_dim=6, sparse_grad=True),
        nn.Embedding(input_dim=10, output_dim=6),
    )
    net.initialize(mx.init.Normal(0.1))
    trainer = gluon.Trainer(
        net.collect_params(), 'adam', {'learning_rate': 0.05, 'lazy_update': True}
    )
    loss = gloss.SigmoidBinaryCrossEntropyLoss()
    for _ in range(6):
        for batch in gluon.data.DataLoader(dataset, 50, shuffle=True, batchify_fn=batchify):
            center, context_negative, mask, label = [data.as_in_context(mx.cpu()) for data in batch]
            with autograd.record():
                pred = skip_gram(center, context_negative, net[0], net[1])
                l = loss(pred.reshape(label.shape), label, mask) * mask.shape[1] / mask.sum(axis=1)
            l.backward()
            trainer.step(50)
    W = net[0].weight.data()
    cos = nd.dot(W, W[0]) / (nd.sum(W * W, axis=1) * nd.sum(W[0] * W[0]) + 1e-9).sqrt()
    top = nd.topk(cos, k=5, ret_typ='indices').asnumpy().astype('int32')
    return all(int(i) < 5 for i in top)


def fine_tune():
    data = mx.sym.var('data')
    body = mx.sym.Activation(
        mx.sym.FullyConnected(data, num_hidden=8, name='body'), act_type='relu', name='act'
    )
    net = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(body, num_hidden=2, name='out'), name='softmax'
    )
    mod = mx.mod.Module(net)
    x = nd.random.uniform(-1, 1, shape=(120, 3))
    y = x[:, 0] * x[:, 1] > 0
    it = mx.io.NDArrayIter(x, y, 20)
    mod.fit(it, num_epoch=4, optimizer='adam', epoch_end_callback=mx.callback.do_checkpoint('base'))
    sym, arg, aux = mx.model.load_checkpoint('base', 4)
    feat = gluon.SymbolBlock(sym.get_internals()['act_output'], mx.sym.var('data'))
    feat.load_parameters('base-0004.params', ctx=mx.cpu(), allow_missing=False, ignore_extra=True)
    feat.collect_params().setattr('grad_req', 'null')
    model = nn.HybridSequential()
    model.add(feat, nn.BatchNorm(), nn.Dense(16, activation='relu'), nn.Dense(2))
    model[1:].initialize(mx.init.Xavier())
    model.hybridize()
    trainer = gluon.Trainer(model.collect_params(), 'adam', {'learning_rate': 0.02})
    before = feat.collect_params()['body_weight'].data().copy()
    softmax = gloss.SoftmaxCrossEntropyLoss()
    for epoch in range(60):
        with autograd.record():
            l = softmax(model(x), y)
        l.backward()
        trainer.step(120)
    assert (before == feat.collect_params()['body_weight'].data()).min() == 1
    model.export('tuned')
    again = gluon.nn.SymbolBlock.imports('tuned-symbol.json', ['data'], 'tuned-0000.params')
    acc = mx.metric.Accuracy()
    acc.update(y, again(x))
    return acc.get()[1]


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=300)
    opt = parser.parse_args()
    mx.random.seed(11)
    np.random.seed(11)
    away, g, d = dcgan(opt.steps, 32)
    print('away %.2f %s %s' % (away, g, d))
    print(word2vec(), 'accuracy %.3f' % fine_tune())

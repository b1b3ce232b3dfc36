"""Executors, internals, group2ctx, a spatial transformer, older kinds of modules."""

import copy
import logging
import pickle

import mxnet as mx
import numpy as np
from mxnet.test_utils import (
    check_numeric_gradient,
    assert_almost_equal,
    rand_ndarray,
    default_context,
)


def loc_net(data):
    net = mx.sym.Pooling(data=data, kernel=(2, 2), stride=(2, 2), pool_type='avg')
    net = mx.sym.FullyConnected(data=mx.sym.Flatten(net), num_hidden=8, name='loc1')
    net = mx.sym.Activation(net, act_type='tanh')
    return mx.sym.FullyConnected(
        data=net,
        num_hidden=6,
        name='stn_loc',
        weight=mx.sym.Variable('stn_loc_weight', init=mx.init.Zero()),
        bias=mx.sym.Variable('stn_loc_bias'),
    )


def get_net():
    data = mx.sym.Variable('data')
    with mx.AttrScope(ctx_group='first', lr_mult='0.5'):
        data = mx.sym.SpatialTransformer(
            data=data,
            loc=loc_net(data),
            target_shape=(12, 12),
            transform_type='affine',
            sampler_type='bilinear',
        )
        net = mx.sym.Convolution(data=data, kernel=(3, 3), num_filter=6, name='conv1')
    with mx.AttrScope(ctx_group='second'):
        net = mx.sym.LeakyReLU(net, act_type='leaky', slope=0.1)
        net = mx.sym.Pooling(
            data=net, global_pool=True, kernel=(1, 1), pool_type='max', name='pool'
        )
        net = mx.sym.FullyConnected(data=net, num_hidden=3, name='fc')
        return mx.sym.SoftmaxOutput(net, name='softmax', normalization='batch')


def images(n):
    rng = np.random.RandomState(5)
    x, y = rng.rand(n, 1, 12, 12) * 0.2, rng.randint(0, 3, n)
    for k in range(n):
        a, b = rng.randint(1, 8, 2)
        if y[k] == 0:
            x[k, 0, a, b : b + 4] += 1
        elif y[k] == 1:
            x[k, 0, a : a + 4, b] += 1
        else:
            x[k, 0, range(a, a + 4), range(b, b + 4)] += 1
    return x.astype(np.float32), y.astype(np.float)


class Init(mx.init.Xavier):
    def _init_bias(self, name, arr):
        arr[:] = np.array([1, 0, 0, 0, 1, 0]) if name.startswith('stn_loc') else 0


if __name__ == '__main__':
    logging.getLogger().setLevel(logging.ERROR)
    mx.random.seed(1)
    np.random.seed(1)
    x, y = images(240)
    net = get_net()
    groups = net.get_internals().list_outputs()
    assert 'pool_output' in groups and net.attr_dict()['conv1']['ctx_group'] == 'first'
    mod = mx.mod.Module(
        net, context=mx.cpu(), group2ctxs={'first': [mx.cpu(0)], 'second': [mx.cpu(1)]}
    )
    train = mx.io.ResizeIter(mx.io.PrefetchingIter(mx.io.NDArrayIter(x, y, 24, shuffle=True)), 10)
    mod.fit(
        train,
        num_epoch=12,
        optimizer='rmsprop',
        optimizer_params={'learning_rate': 0.01, 'gamma1': 0.9},
        initializer=Init(),
        eval_metric=['acc', mx.metric.CrossEntropy()],
    )
    test = mx.io.NDArrayIter(x, y, 24)
    acc = mod.score(test, mx.metric.create('acc'))[0][1]

    feature = net.get_internals()['pool_output']
    arg, aux = mod.get_params()
    exe = feature.simple_bind(mx.cpu(), data=(5, 1, 12, 12), grad_req='null')
    exe.copy_params_from(arg, aux, allow_extra_params=True)
    codes = exe.forward(data=mx.nd.array(x[:5]))[0].copy()  # the reshaped one shares its memory
    assert codes.shape == (5, 6, 1, 1), codes.shape
    exe = exe.reshape(data=(3, 1, 12, 12), allow_up_sizing=False)
    assert_almost_equal(exe.forward(data=mx.nd.array(x[:3]))[0], codes[:3], rtol=1e-4)

    head = mx.sym.FullyConnected(mx.sym.Variable('data'), num_hidden=3, name='head')
    seq = mx.mod.SequentialModule()
    seq.add(mx.mod.Module(mx.sym.Flatten(feature), label_names=[]))
    seq.add(
        mx.mod.Module(mx.sym.SoftmaxOutput(head, name='softmax')),
        take_labels=True,
        auto_wiring=True,
    )
    test.reset()
    seq.fit(
        test,
        num_epoch=2,
        arg_params={k: v for k, v in arg.items() if not k.startswith('fc')},
        allow_missing=True,
        initializer=mx.init.Uniform(0.05),
        optimizer_params={'learning_rate': 0.1},
    )

    model = mx.model.FeedForward(
        symbol=mx.sym.SoftmaxOutput(head, name='softmax'),
        num_epoch=10,
        learning_rate=0.5,
        ctx=[mx.cpu(0), mx.cpu(1)],
        numpy_batch_size=24,
        initializer=mx.init.Normal(0.01),
    )
    flat = x.reshape(len(x), -1)
    model.fit(X=flat, y=y, eval_metric='accuracy', kvstore='local')
    model.save('ff')
    again = mx.model.FeedForward.load('ff', 10, ctx=mx.cpu())
    assert np.allclose(again.predict(flat[:48]), model.predict(flat[:48]), atol=1e-6)

    a = mx.sym.Variable('a')
    check_numeric_gradient(
        mx.sym.tanh(a) * 2 + a**2, [np.random.rand(3, 4)], numeric_eps=1e-3, rtol=0.05
    )
    twin = pickle.loads(pickle.dumps(net))
    assert (
        twin.tojson() == copy.deepcopy(net).tojson() and rand_ndarray((2, 2), 'csr').stype == 'csr'
    )
    total = sum(np.product(v.shape) for v in arg.values())
    mx.viz.print_summary(net, shape={'data': (1, 1, 12, 12)})
    print('parameters %d accuracy %.3f' % (total, acc))

"""A variational autoencoder in Gluon: own dataset, hybrid blocks, export, and the symbol again."""

import argparse
import os
import tempfile

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

parser = argparse.ArgumentParser()
parser.add_argument('--n-latent', type=int, default=2)
parser.add_argument('--epochs', type=int, default=8)
opt = parser.parse_args()
np.random.seed(5)
mx.random.seed(5)
ctx = [mx.cpu(0)]


class Rings(gluon.data.Dataset):
    def __init__(self, n, transform=None):
        angle = np.random.uniform(0, 2 * np.pi, n)
        self._data = np.stack([np.cos(angle + k * 0.4) for k in range(16)], axis=1).astype(
            np.float32
        )
        self._label = (angle // (np.pi / 2)).astype(np.int)
        self._transform = transform

    def __getitem__(self, idx):
        row = self._data[idx]
        return (self._transform(row) if self._transform else row), int(self._label[idx])

    def __len__(self):
        return len(self._label)


class VAE(gluon.HybridBlock):
    def __init__(self, n_hidden=24, n_latent=2, n_output=16, act_type='tanh', **kwargs):
        super(VAE, self).__init__(**kwargs)
        self.n_latent = n_latent
        with self.name_scope():
            self.encoder = nn.HybridSequential(prefix='encoder_')
            self.encoder.add(nn.Dense(n_hidden, activation=act_type))
            self.encoder.add(nn.Dense(n_latent * 2, activation=None))
            self.decoder = nn.HybridSequential(prefix='decoder_')
            self.decoder.add(nn.Dense(n_hidden, activation=act_type))
            self.decoder.add(nn.Dense(n_output))

    def hybrid_forward(self, F, x, eps):
        h = self.encoder(x)
        mu_lv = F.split(h, axis=1, num_outputs=2)
        mu, lv = mu_lv[0], mu_lv[1]
        z = mu + F.exp(0.5 * lv) * eps
        y = self.decoder(z)
        kl = 0.5 * F.sum(1 + lv - mu * mu - F.exp(lv), axis=1)
        rec = -F.sum(F.square(y - x), axis=1)
        return -(rec + 0.05 * kl), y


class NumpyInit(mx.init.Initializer):
    def _init_weight(self, _, arr):
        arr[:] = nd.array(np.random.uniform(-0.3, 0.3, arr.shape))


net = VAE(n_latent=opt.n_latent)
net.initialize(NumpyInit(), ctx=ctx)
loader = gluon.data.DataLoader(
    Rings(240, lambda r: r * 0.9), batch_size=40, shuffle=True, last_batch='discard'
)
for data, label in loader:
    net(data, nd.zeros((40, opt.n_latent)))
    break
net.hybridize(static_alloc=True)
trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.01, 'wd': 1e-4})
history = []
for epoch in range(opt.epochs):
    cumulative, n = 0.0, 0
    for data, label in loader:
        parts = gluon.utils.split_and_load(data, ctx)
        with autograd.record():
            losses = [
                net(X, nd.array(np.random.normal(0, 1, (X.shape[0], opt.n_latent))))[0]
                for X in parts
            ]
        for l in losses:
            l.backward()
        gluon.utils.clip_global_norm([p.grad(ctx[0]) for p in net.collect_params().values()], 100)
        trainer.step(data.shape[0])
        cumulative += sum(nd.sum(l).asscalar() for l in losses)
        n += data.shape[0]
    if epoch == opt.epochs // 2:
        trainer.set_learning_rate(trainer.learning_rate * 0.5)
    history.append(cumulative / n)
    print('epoch %d, loss %.3f' % (epoch, history[-1]))
place = os.path.join(tempfile.mkdtemp(), 'vae')
net.export(place, epoch=3)
back = gluon.SymbolBlock.imports(
    place + '-symbol.json', ['data0', 'data1'], place + '-0003.params'
)
x, e = nd.array(np.random.rand(4, 16)), nd.zeros((4, opt.n_latent))
same = np.allclose(net(x, e)[1].asnumpy(), back(x, e)[1].asnumpy(), atol=1e-6)
print(same, sorted(net.collect_params('.*weight').keys())[0].endswith('_weight'))
print('loss %.4f' % history[-1])

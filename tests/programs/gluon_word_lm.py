"""A small language model with Gluon, in the manner of MXNet's gluon examples."""
from __future__ import print_function

import math
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

bptt, batch_size, emsize, nhid, clip = 10, 8, 16, 32, 0.25
text = ('the quick brown fox jumps over the lazy dog ' * 60).split()
vocab = {w: i for i, w in enumerate(sorted(set(text)))}
ids = np.array([vocab[w] for w in text], dtype=np.int)


def batchify(data):
    nbatch = data.shape[0] // batch_size
    return mx.nd.array(data[:nbatch * batch_size].reshape((batch_size, nbatch)).T)


class RNNModel(gluon.Block):
    def __init__(self, vocab_size, **kwargs):
        super(RNNModel, self).__init__(**kwargs)
        with self.name_scope():
            self.drop = nn.Dropout(0.1)
            self.encoder = nn.Embedding(vocab_size, emsize,
                                        weight_initializer=mx.init.Uniform(0.1))
            self.rnn = rnn.LSTM(nhid, 1, input_size=emsize)
            self.decoder = nn.Dense(vocab_size, in_units=nhid)

    def forward(self, inputs, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(inputs)), hidden)
        return self.decoder(self.drop(output).reshape((-1, nhid))), hidden

    def begin_state(self, *args, **kwargs):
        return self.rnn.begin_state(*args, **kwargs)


def detach(hidden):
    return [i.detach() for i in hidden] if isinstance(hidden, (tuple, list)) else hidden.detach()


mx.random.seed(0)
context = mx.cpu(0)
model = RNNModel(len(vocab))
model.collect_params().initialize(mx.init.Xavier(), ctx=context)
trainer = gluon.Trainer(model.collect_params(), 'adam', {'learning_rate': 0.01})
loss = gluon.loss.SoftmaxCrossEntropyLoss()
train_data = batchify(ids).as_in_context(context)
for epoch in range(6):
    total_L, start = 0.0, time.time()
    hidden = model.begin_state(func=mx.nd.zeros, batch_size=batch_size, ctx=context)
    for ibatch, i in enumerate(range(0, train_data.shape[0] - 1, bptt)):
        seq_len = min(bptt, train_data.shape[0] - 1 - i)
        data, target = train_data[i:i + seq_len], train_data[i + 1:i + 1 + seq_len]
        hidden = detach(hidden)
        with autograd.record():
            output, hidden = model(data, hidden)
            L = loss(output, target.reshape((-1,)))
        L.backward()
        grads = [p.grad(context) for p in model.collect_params().values()]
        gluon.utils.clip_global_norm(grads, clip * seq_len * batch_size)
        trainer.step(seq_len * batch_size)
        total_L += float(mx.nd.mean(L).asnumpy())
    print('[Epoch %d] time cost %.2fs, loss %.2f, ppl %.2f' % (
        epoch, time.time() - start, total_L / (ibatch + 1), math.exp(total_L / (ibatch + 1))))
model.save_parameters('lm.params')
model.load_parameters('lm.params', context)
print('perplexity %.3f' % math.exp(total_L / (ibatch + 1)))

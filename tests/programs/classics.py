"""An adversary, text by convolutions, noise contrastive words, an autoencoder, an SVM, sorting."""

import argparse
import logging
import os
import sys

import mxnet as mx
import numpy as np

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
parser.add_argument('--gpus', type=str, default='', help='list of gpus to run, e.g. 0 or 0,2,5')
parser.add_argument('--kv-store', type=str, default='local')
parser.add_argument('--num-epochs', type=int, default=8)
args = parser.parse_args()
ctx = [mx.gpu(int(i)) for i in args.gpus.split(',')] if args.gpus else [mx.cpu()]


def blobs(n, classes, seed):
    rng = np.random.RandomState(0)
    centres = rng.uniform(-1, 1, (classes, 1, 8, 8))
    rng = np.random.RandomState(seed)
    y = rng.randint(0, classes, n).astype(np.int)
    x = centres[y] + rng.normal(0, 0.3, (n, 1, 8, 8))
    return x.astype(np.float32), y.astype(np.float)


def svm_and_adversary():
    data = mx.symbol.Variable('data')
    net = mx.symbol.Convolution(data, name='conv1', kernel=(3, 3), num_filter=8)
    net = mx.symbol.Activation(net, name='tanh1', act_type='tanh')
    net = mx.symbol.Pooling(net, pool_type='max', kernel=(2, 2), stride=(2, 2))
    net = mx.symbol.FullyConnected(mx.symbol.Flatten(net), name='fc1', num_hidden=4)
    svm = mx.symbol.SVMOutput(data=net, name='svm', regularization_coefficient=0.5)
    x, y = blobs(512, 4, 1)
    train = mx.io.NDArrayIter(x[:400], y[:400], 40, shuffle=True, label_name='svm_label')
    val = mx.io.NDArrayIter(x[400:], y[400:], 16, label_name='svm_label')
    mod = mx.mod.Module(svm, context=ctx, label_names=('svm_label',))
    mod.fit(train_data=train, eval_data=val, num_epoch=args.num_epochs,
            kvstore=args.kv_store, optimizer='sgd', initializer=mx.init.Xavier(magnitude=2.24),
            optimizer_params={'learning_rate': 0.02, 'momentum': 0.9, 'wd': 0.00001,
                              'lr_scheduler': mx.lr_scheduler.FactorScheduler(50, 0.9)},
            batch_end_callback=[mx.callback.Speedometer(40, 5),
                                mx.callback.log_train_metric(5)],
            epoch_end_callback=mx.callback.do_checkpoint('svm'))
    accuracy = dict(mod.score(val, mx.metric.create(['acc', 'ce']))).get('accuracy')

    soft, arg_params, aux_params = mx.model.load_checkpoint('svm', args.num_epochs)
    out = mx.symbol.SoftmaxOutput(soft.get_internals()['fc1_output'], name='softmax')
    batch = mx.nd.array(x[400:]), mx.nd.array(y[400:])
    arg_names = out.list_arguments()
    exe = out.simple_bind(ctx=ctx[0], data=batch[0].shape, grad_req={
        name: 'write' if name == 'data' else 'null' for name in arg_names})
    exe.copy_params_from(arg_params, aux_params, allow_extra_params=True)
    exe.arg_dict['data'][:] = batch[0]
    exe.arg_dict['softmax_label'][:] = batch[1]
    exe.forward(is_train=True)
    before = (exe.outputs[0].asnumpy().argmax(1) == y[400:]).mean()
    exe.backward()
    noise = mx.nd.sign(exe.grad_dict['data'])
    exe.arg_dict['data'][:] = batch[0] + noise * 0.4
    exe.forward(is_train=False)
    after = (exe.outputs[0].asnumpy().argmax(1) == y[400:]).mean()
    return accuracy, before, after


def text_cnn(vocab=60, length=20, embed=16):
    rng = np.random.RandomState(2)
    text = rng.randint(4, vocab, (480, length))
    label = rng.randint(0, 2, 480)
    at = rng.randint(0, length - 2, 480)
    for row, (k, y) in enumerate(zip(at, label)):
        text[row, k:k + 2] = (1, 2) if y else (2, 1)
    input_x, input_y = mx.sym.Variable('data'), mx.sym.Variable('softmax_label')
    layer = mx.sym.Embedding(data=input_x, input_dim=vocab, output_dim=embed, name='vocab_embed')
    conv_input = mx.sym.Reshape(data=layer, target_shape=(40, 1, length, embed))
    pooled = []
    for size in [2, 3]:
        conv = mx.sym.Convolution(data=conv_input, kernel=(size, embed), num_filter=16)
        relu = mx.sym.Activation(data=conv, act_type='relu')
        pooled.append(mx.sym.Pooling(data=relu, pool_type='max', kernel=(length - size + 1, 1),
                                     stride=(1, 1)))
    concat = mx.sym.Concat(*pooled, dim=1)
    h = mx.sym.Dropout(data=mx.sym.Reshape(data=concat, shape=(-1, 32)), p=0.3)
    fc = mx.sym.FullyConnected(data=h, num_hidden=2, name='cls')
    sm = mx.sym.SoftmaxOutput(data=fc, label=input_y, name='softmax')
    train = mx.io.NDArrayIter(text[:400].astype(np.float32), label[:400], 40, shuffle=True)
    val = mx.io.NDArrayIter({'data': text[400:].astype(np.float32)},
                            {'softmax_label': label[400:]}, 40)
    model = mx.mod.Module(sm, context=ctx)
    mon = mx.mon.Monitor(20, stat_func=lambda d: mx.nd.norm(d) / np.sqrt(d.size), pattern='cls.*')
    model.fit(train, eval_data=val, eval_metric='acc', optimizer='rmsprop', monitor=mon,
              optimizer_params={'learning_rate': 0.005}, initializer=mx.initializer.Uniform(0.1),
              num_epoch=3 * args.num_epochs)
    predicted = model.predict(val).asnumpy().argmax(axis=1)
    return np.float(sum(predicted == label[400:])) / len(predicted)


class PairIter(mx.io.DataIter):
    """Words, and candidates of which the first one is right."""

    def __init__(self, count, batch_size, vocab, num_label):
        super(PairIter, self).__init__()
        self.batch_size, self.count, self.cursor = batch_size, count, -1
        self.rng = np.random.RandomState(3)
        self.vocab, self.num_label = vocab, num_label
        self.provide_data = [('data', (batch_size,)), ('label', (batch_size, num_label))]
        self.provide_label = [('label_weight', (batch_size, num_label))]

    def __iter__(self):
        for _ in range(self.count):
            word = self.rng.randint(0, self.vocab, self.batch_size)
            label = self.rng.randint(0, self.vocab, (self.batch_size, self.num_label))
            label[:, 0] = (word + 1) % self.vocab
            weight = (label == ((word + 1) % self.vocab)[:, None]).astype(np.float)
            yield mx.io.DataBatch([mx.nd.array(word), mx.nd.array(label)], [mx.nd.array(weight)],
                                  provide_data=self.provide_data,
                                  provide_label=self.provide_label)

    def reset(self):
        pass


class NceAccuracy(mx.metric.EvalMetric):
    def __init__(self):
        super(NceAccuracy, self).__init__('nce-accuracy')

    def update(self, labels, preds):
        preds = preds[0].asnumpy()
        self.sum_metric += (np.argmax(preds, axis=1) == 0).sum()
        self.num_inst += preds.shape[0]


def nce(vocab=30, num_hidden=16, num_label=6):
    data, label = mx.sym.Variable('data'), mx.sym.Variable('label')
    label_weight = mx.sym.Variable('label_weight')
    embed_weight = mx.sym.Variable('embed_weight')
    pred = mx.sym.Embedding(data=data, input_dim=vocab, output_dim=num_hidden)
    label_embed = mx.sym.Embedding(data=label, input_dim=vocab, weight=embed_weight,
                                   output_dim=num_hidden, name='label_embed')
    pred = mx.sym.Reshape(data=pred, shape=(-1, 1, num_hidden))
    pred = mx.sym.sum(data=mx.sym.broadcast_mul(pred, label_embed), axis=2)
    net = mx.sym.LogisticRegressionOutput(data=pred, label=label_weight)
    it = PairIter(30, 64, vocab, num_label)
    model = mx.mod.Module(net, data_names=['data', 'label'], label_names=['label_weight'])
    metric = NceAccuracy()
    model.fit(it, num_epoch=args.num_epochs, optimizer='adam', eval_metric=metric,
              optimizer_params={'learning_rate': 0.05}, initializer=mx.init.Normal(0.1))
    return metric.get()[1]


def autoencoder(sizes=(64, 24, 8)):
    x, _ = blobs(256, 4, 5)
    x = x.reshape((256, 64))
    data = mx.sym.Variable('data')
    layer = data
    for k, n in enumerate(sizes[1:]):
        layer = mx.sym.FullyConnected(layer, name='encoder_%d' % k, num_hidden=n)
        layer = mx.sym.Activation(layer, act_type='relu') if k == 0 else layer
    for k, n in reversed(list(enumerate(sizes[:-1]))):
        layer = mx.sym.FullyConnected(layer, name='decoder_%d' % k, num_hidden=n)
        layer = mx.sym.Activation(layer, act_type='relu') if k else layer
    net = mx.sym.LinearRegressionOutput(data=layer, label=mx.sym.Variable('target'), name='loss')
    exe = net.simple_bind(ctx[0], data=(256, 64), target=(256, 64))
    init = mx.initializer.Mixed(['bias', '.*'], [mx.init.Zero(), mx.init.Xavier()])
    for name, array in exe.arg_dict.items():
        if name not in ('data', 'target'):
            init(mx.init.InitDesc(name), array)
    optimizer = mx.optimizer.create('adam', learning_rate=0.01, rescale_grad=1.0 / 256)
    updater = mx.optimizer.get_updater(optimizer)
    exe.arg_dict['data'][:] = x
    exe.arg_dict['target'][:] = x
    errors = []
    for _ in range(20 * args.num_epochs):
        out = exe.forward(is_train=True)[0]
        exe.backward()
        for k, name in enumerate(net.list_arguments()):
            if name not in ('data', 'target'):
                updater(k, exe.grad_dict[name], exe.arg_dict[name])
        errors.append(np.square(out.asnumpy() - x).mean())
    return errors[-1] / errors[0]


def bi_lstm_sort(vocab=8, length=4):
    rng = np.random.RandomState(6)
    sentences = rng.randint(1, vocab, (600, length))
    data = mx.sym.Variable('data')
    label = mx.sym.Variable('softmax_label')
    embed = mx.sym.Embedding(data=data, input_dim=vocab, output_dim=12, name='embed')
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.BidirectionalCell(mx.rnn.LSTMCell(num_hidden=20, prefix='l_'),
                                       mx.rnn.LSTMCell(num_hidden=20, prefix='r_')))
    outputs, _ = stack.unroll(length, inputs=embed, merge_outputs=True, layout='NTC')
    pred = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 40)), num_hidden=vocab)
    net = mx.sym.SoftmaxOutput(pred, mx.sym.Reshape(label, shape=(-1,)), name='softmax')
    it = mx.io.NDArrayIter(sentences.astype(np.float32),
                           np.sort(sentences, axis=1).astype(np.float32), 50, shuffle=True)
    mod = mx.mod.Module(net)
    mod.fit(it, eval_metric=mx.metric.Perplexity(None), num_epoch=2 * args.num_epochs,
            optimizer='adam', optimizer_params={'learning_rate': 0.02},
            initializer=mx.init.Xavier(factor_type='in', magnitude=2.34))
    it.reset()
    metric = mx.metric.Accuracy()
    mod.score(it, mx.metric.Perplexity(None))
    it.reset()
    for batch in it:
        mod.forward(batch, is_train=False)
        metric.update([batch.label[0].reshape((-1,))], mod.get_outputs())
    return metric.get()[1]


if __name__ == '__main__':
    mx.random.seed(1)
    np.random.seed(1)
    mx.profiler.set_config(profile_symbolic=True, filename='profile.json')
    mx.profiler.set_state('run')
    accuracy, before, after = svm_and_adversary()
    mx.profiler.set_state('stop')
    mx.profiler.dump()
    traced = os.path.getsize('profile.json') > 100
    print('svm %.2f attacked %.2f -> %.2f' % (accuracy, before, after))
    text, words = text_cnn(), nce()
    print('text %.2f words %.2f' % (text, words))
    rest, ordered = autoencoder(), bi_lstm_sort()
    print('rest %.2f sorted %.2f' % (rest, ordered))
    good = np.bool(traced and after < before - 0.2 and rest < 0.6 and words > 0.8)
    print('%s least %.2f' % (good, min(accuracy, before, text, ordered)))

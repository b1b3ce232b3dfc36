"""Sentences classified by convolutions over words: a bound executor and an updater, by hand."""

import logging
import time
from collections import Counter, namedtuple

import mxnet as mx
import numpy as np

logger = logging.getLogger(__name__)
logging.basicConfig(level=logging.INFO)
np.random.seed(11)
mx.random.seed(11)

CNNModel = namedtuple('CNNModel', ['cnn_exec', 'symbol', 'data', 'label', 'param_blocks'])
WORDS = dict(
    good='fine great lovely warm bright'.split(),
    bad='dull grey poor cold slow'.split(),
    other='the a film day road song was is very it'.split(),
)


def sentences(n):
    rows = []
    for i in range(n):
        mood = 'good' if i % 2 else 'bad'
        words = [WORDS['other'][k] for k in np.random.randint(0, 10, np.random.randint(4, 9))]
        words.insert(np.random.randint(0, len(words)), WORDS[mood][np.random.randint(0, 5)])
        rows.append((words, int(mood == 'good')))
    return rows


def build_input_data(rows, length=10):
    counts = Counter(w for words, _ in rows for w in words)
    vocab = {
        w: i + 1 for i, (w, _) in enumerate(sorted(counts.items(), key=lambda x: (-x[1], x[0])))
    }
    x = np.array([[vocab[w] for w in words] + [0] * (length - len(words)) for words, _ in rows])
    return x.astype(np.int), np.array([y for _, y in rows], dtype=np.float), vocab


def make_text_cnn(
    sentence_size,
    num_embed,
    batch_size,
    vocab_size,
    num_label=2,
    filter_list=(3, 4, 5),
    num_filter=8,
    dropout=0.0,
):
    input_x, input_y = mx.sym.Variable('data'), mx.sym.Variable('softmax_label')
    embed = mx.sym.Embedding(
        data=input_x, input_dim=vocab_size, output_dim=num_embed, name='vocab_embed'
    )
    conv_input = mx.sym.Reshape(data=embed, target_shape=(batch_size, 1, sentence_size, num_embed))
    pooled = []
    for i, size in enumerate(filter_list):
        convi = mx.sym.Convolution(
            data=conv_input, kernel=(size, num_embed), num_filter=num_filter
        )
        relui = mx.sym.Activation(data=convi, act_type='relu')
        pooled.append(
            mx.sym.Pooling(
                data=relui, pool_type='max', kernel=(sentence_size - size + 1, 1), stride=(1, 1)
            )
        )
    total = num_filter * len(filter_list)
    h_pool = mx.sym.Reshape(data=mx.sym.Concat(*pooled, dim=1), target_shape=(batch_size, total))
    if dropout > 0:
        h_pool = mx.sym.Dropout(data=h_pool, p=dropout)
    fc = mx.sym.FullyConnected(
        data=h_pool,
        weight=mx.sym.Variable('cls_weight'),
        bias=mx.sym.Variable('cls_bias'),
        num_hidden=num_label,
    )
    return mx.sym.SoftmaxOutput(data=fc, label=input_y, name='softmax')


def setup(ctx, batch_size, sentence_size, vocab_size, num_embed=12):
    cnn = make_text_cnn(sentence_size, num_embed, batch_size, vocab_size)
    arg_names = cnn.list_arguments()
    shapes = {'data': (batch_size, sentence_size)}
    arg_shape, out_shape, aux_shape = cnn.infer_shape(**shapes)
    arg_arrays = [mx.nd.zeros(s, ctx) for s in arg_shape]
    args_grad = {
        n: mx.nd.zeros(s, ctx)
        for s, n in zip(arg_shape, arg_names)
        if n not in ('softmax_label', 'data')
    }
    cnn_exec = cnn.bind(ctx=ctx, args=arg_arrays, args_grad=args_grad, grad_req='write')
    blocks = []
    for i, name in enumerate(arg_names):
        if name in ('softmax_label', 'data'):
            continue
        arr = cnn_exec.arg_dict[name]
        arr[:] = np.random.uniform(-0.1, 0.1, arr.shape)
        blocks.append((i, arr, args_grad[name], name))
    return CNNModel(
        cnn_exec=cnn_exec,
        symbol=cnn,
        data=cnn_exec.arg_dict['data'],
        label=cnn_exec.arg_dict['softmax_label'],
        param_blocks=blocks,
    )


def train(model, x, y, batch_size, epochs, max_grad_norm=5.0, learning_rate=0.002):
    opt = mx.optimizer.create('adam', learning_rate=learning_rate, rescale_grad=1.0 / batch_size)
    updater = mx.optimizer.get_updater(opt)
    for epoch in xrange(epochs):
        tic, correct, total = time.time(), 0, 0
        for begin in xrange(0, x.shape[0] - batch_size + 1, batch_size):
            model.data[:] = x[begin : begin + batch_size]
            model.label[:] = y[begin : begin + batch_size]
            model.cnn_exec.forward(is_train=True)
            model.cnn_exec.backward()
            correct += sum(
                y[begin : begin + batch_size]
                == np.argmax(model.cnn_exec.outputs[0].asnumpy(), axis=1)
            )
            total += batch_size
            norm = 0
            for idx, weight, grad, name in model.param_blocks:
                l2 = mx.nd.norm(grad / batch_size).asscalar()
                norm += l2 * l2
            norm = np.sqrt(norm)
            scale = min(1.0, max_grad_norm / norm)
            for idx, weight, grad, name in model.param_blocks:
                grad *= scale
                updater(idx, grad, weight)
                grad[:] = 0.0
        logger.info(
            'Iter [%d] Train: Time: %.3fs, Training Accuracy: %.3f',
            epoch,
            time.time() - tic,
            correct * 100 / float(total),
        )
    return correct / float(total), norm


try:
    xrange
except NameError:
    xrange = range

if __name__ == '__main__':
    x, y, vocab = build_input_data(sentences(200))
    order = np.random.permutation(np.arange(len(y)))
    x, y = x[order], y[order]
    model = setup(mx.cpu(0), 20, x.shape[1], len(vocab) + 1)
    accuracy, norm = train(model, x, y, 20, 8)
    print(model.symbol.debug_str().count('Convolution') > 0, len(vocab), x.dtype.kind)
    print('norm %.4f accuracy %.4f' % (norm, accuracy))

"""Tags of words by a recurrent network in buckets: `mx.rnn` cells, an own operator."""

import argparse
import logging

import mxnet as mx
import numpy as np

parser = argparse.ArgumentParser(description='tag sequences in buckets')
parser.add_argument('--num-hidden', type=int, default=12)
parser.add_argument('--num-embed', type=int, default=6)
parser.add_argument('--disp-batches', type=int, default=50)
logging.basicConfig(level=logging.DEBUG, format='%(asctime)-15s %(message)s')
BUCKETS = [6, 10]
TAGS, VOCAB = 3, 9


class WeightedSoftmax(mx.operator.CustomOp):
    """Softmax whose gradient leaves the padding (-1) out."""

    def __init__(self, ctx, scale):
        super(WeightedSoftmax, self).__init__()
        self.scale = float(scale)

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], mx.nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        l = in_data[1].asnumpy().ravel().astype(np.int)
        y = out_data[0].asnumpy().copy()
        y[np.arange(l.shape[0]), np.maximum(l, 0)] -= 1.0
        y[l < 0] = 0
        self.assign(in_grad[0], req[0], mx.nd.array(y * self.scale))
        self.assign(in_grad[1], req[1], 0)


@mx.operator.register('weighted_softmax')
class WeightedSoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self, scale='1'):
        super(WeightedSoftmaxProp, self).__init__(need_top_grad=False)
        self.scale = scale

    def list_arguments(self):
        return ['data', 'label']

    def list_outputs(self):
        return ['output']

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return WeightedSoftmax(ctx, self.scale)


class TagIter(mx.io.DataIter):
    def __init__(self, rows, batch_size):
        super(TagIter, self).__init__(batch_size)
        self.default_bucket_key = max(BUCKETS)
        self.rows = {b: [] for b in BUCKETS}
        for x, y in rows:
            b = BUCKETS[np.searchsorted(BUCKETS, len(x))]
            self.rows[b].append((x + [0] * (b - len(x)), y + [-1] * (b - len(y))))
        self.plan = [
            (b, i)
            for b in BUCKETS
            for i in range(0, len(self.rows[b]) - batch_size + 1, batch_size)
        ]
        self.provide_data = [
            mx.io.DataDesc('data', (batch_size, self.default_bucket_key), layout='NT')
        ]
        self.provide_label = [
            mx.io.DataDesc('label', (batch_size, self.default_bucket_key), layout='NT')
        ]
        self.reset()

    def reset(self):
        self.at = 0
        np.random.shuffle(self.plan)

    def next(self):
        if self.at == len(self.plan):
            raise StopIteration
        b, i = self.plan[self.at]
        self.at += 1
        part = self.rows[b][i : i + self.batch_size]
        x, y = (np.array(v, dtype=np.float32) for v in zip(*part))
        return mx.io.DataBatch(
            [mx.nd.array(x)],
            [mx.nd.array(y)],
            pad=0,
            bucket_key=b,
            provide_data=[mx.io.DataDesc('data', x.shape, layout='NT')],
            provide_label=[mx.io.DataDesc('label', y.shape, layout='NT')],
        )


def tagged(n):
    found = []
    for _ in range(n):
        x = np.random.randint(1, VOCAB, np.random.randint(4, 11)).tolist()
        y = [0] + [1 if b > a else 2 for a, b in zip(x, x[1:])]
        found.append((x, y))
    return found


class Tagged(mx.metric.EvalMetric):
    def __init__(self):
        super(Tagged, self).__init__('tagged')

    def update(self, labels, preds):
        for label, pred in zip(labels, preds):
            l = label.asnumpy().ravel().astype(np.int)
            hit = pred.asnumpy().argmax(axis=1) == l
            self.sum_metric += hit[l >= 0].sum()
            self.num_inst += (l >= 0).sum()


class Drawn(mx.init.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.random.uniform(-0.4, 0.4, arr.shape)


if __name__ == '__main__':
    args = parser.parse_args()
    np.random.seed(4)
    train = TagIter(tagged(240), 16)
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(num_hidden=args.num_hidden, prefix='lstm_l0_', forget_bias=0.0))
    stack.add(mx.rnn.GRUCell(num_hidden=args.num_hidden, prefix='gru_l1_'))

    def sym_gen(seq_len):
        data, label = mx.sym.Variable('data'), mx.sym.Variable('label')
        embed = mx.sym.Embedding(
            data=data, input_dim=VOCAB, output_dim=args.num_embed, name='embed'
        )
        stack.reset()
        outputs, states = stack.unroll(seq_len, inputs=embed, merge_outputs=True)
        pred = mx.sym.Reshape(outputs, shape=(-1, args.num_hidden))
        pred = mx.sym.FullyConnected(data=pred, num_hidden=TAGS, name='pred')
        label = mx.sym.Reshape(label, shape=(-1,))
        pred = mx.sym.Custom(
            data=pred, label=label, op_type='weighted_softmax', scale=1.0, name='softmax'
        )
        return pred, ('data',), ('label',)

    model = mx.mod.BucketingModule(
        sym_gen=sym_gen, default_bucket_key=train.default_bucket_key, context=mx.cpu()
    )
    model.fit(
        train_data=train,
        eval_metric=Tagged(),
        kvstore='device',
        optimizer='adam',
        optimizer_params={'learning_rate': 0.02, 'wd': 1e-5, 'rescale_grad': 1.0 / 60},
        initializer=Drawn(),
        num_epoch=8,
        batch_end_callback=mx.callback.Speedometer(16, args.disp_batches, auto_reset=False),
    )
    arg, aux = model.get_params()
    print(len(arg), '%.3f' % np.sqrt(sum((v.asnumpy() ** 2).sum() for v in arg.values())))
    print('tagged %.4f' % model.score(train, Tagged())[0][1])

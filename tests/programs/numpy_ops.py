"""A softmax written in NumPy as an operator, in the manner of MXNet's numpy-ops examples."""
import mxnet as mx
import numpy as np


class Softmax(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1).reshape((x.shape[0], 1)))
        y /= y.sum(axis=1).reshape((x.shape[0], 1))
        self.assign(out_data[0], req[0], mx.nd.array(y))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        l = in_data[1].asnumpy().ravel().astype(np.int)
        y = out_data[0].asnumpy()
        y[np.arange(l.shape[0]), l] -= 1.0
        self.assign(in_grad[0], req[0], mx.nd.array(y))


@mx.operator.register("np_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    def __init__(self):
        super(SoftmaxProp, self).__init__(need_top_grad=False)

    def list_arguments(self):
        return ['data', 'label']

    def list_outputs(self):
        return ['output']

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


np.random.seed(1)
centers = np.array([[0, 2], [2, 0], [-2, -1]], dtype=np.float)
y = np.random.randint(0, 3, 300)
x = centers[y] + np.random.normal(0, .5, (300, 2))
data = mx.symbol.Variable('data')
fc = mx.symbol.FullyConnected(data=data, name='fc', num_hidden=3)
mlp = mx.symbol.Custom(data=fc, name='softmax', op_type='np_softmax')
train = mx.io.NDArrayIter(x, y, batch_size=30, shuffle=True, label_name='softmax_label')
mod = mx.mod.Module(mlp, label_names=('softmax_label',))
mod.fit(train_data=train, optimizer='sgd', optimizer_params={'learning_rate': 0.1}, num_epoch=6)
name, value = mod.score(train, mx.metric.Accuracy())[0]
ok = np.bool(value > np.float(.9))
print('%s %.3f %s' % (name, value, ok))

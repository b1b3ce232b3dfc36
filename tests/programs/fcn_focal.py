"""A fully convolutional net with a custom loss operator and a custom metric."""

import logging

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, image, init, nd
from mxnet.gluon import nn


def bilinear_kernel(in_channels, out_channels, kernel_size):
    factor = (kernel_size + 1) // 2
    center = factor - 1 if kernel_size % 2 == 1 else factor - 0.5
    og = np.ogrid[:kernel_size, :kernel_size]
    filt = (1 - abs(og[0] - center) / factor) * (1 - abs(og[1] - center) / factor)
    weight = np.zeros((in_channels, out_channels, kernel_size, kernel_size), dtype='float32')
    weight[range(in_channels), range(out_channels), :, :] = filt
    return nd.array(weight)


class FocalLossOp(mx.operator.CustomOp):
    def __init__(self, gamma):
        self.gamma = gamma

    def forward(self, is_train, req, in_data, out_data, aux):
        prob = nd.softmax(in_data[0], axis=1)
        self.assign(out_data[0], req[0], prob)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        prob, label = out_data[0], in_data[1]
        hot = nd.one_hot(label, prob.shape[1]).transpose((0, 3, 1, 2))
        weight = (1 - (prob * hot).sum(axis=1, keepdims=True)) ** self.gamma
        self.assign(in_grad[0], req[0], weight * (prob - hot) / label.size)
        self.assign(in_grad[1], req[1], nd.zeros_like(label))


@mx.operator.register('focal_loss')
class FocalLossProp(mx.operator.CustomOpProp):
    def __init__(self, gamma='1.0'):
        super(FocalLossProp, self).__init__(need_top_grad=False)
        self.gamma = float(gamma)

    def list_arguments(self):
        return ['data', 'label']

    def infer_shape(self, in_shape):
        data = in_shape[0]
        return [data, [data[0], data[2], data[3]]], [data], []

    def create_operator(self, ctx, shapes, dtypes):
        return FocalLossOp(self.gamma)


class PixelAccuracy(mx.metric.EvalMetric):
    def __init__(self):
        super(PixelAccuracy, self).__init__('pixel-accuracy')

    def update(self, labels, preds):
        for label, pred in zip(labels, preds):
            found = pred.asnumpy().argmax(axis=1)
            self.sum_metric += (found == label.asnumpy().astype(np.int)).sum()
            self.num_inst += found.size


def make_images(n, size=16):
    rng = np.random.RandomState(3)
    images = rng.uniform(0, 0.3, size=(n, 3, size, size)).astype(np.float32)
    labels = np.zeros((n, size, size), dtype=np.float32)
    for k in range(n):
        y, x = rng.randint(0, size - 6, size=2)
        labels[k, y : y + 6, x : x + 6] = 1
        images[k, :, y : y + 6, x : x + 6] += 0.5
    return images, labels


if __name__ == '__main__':
    logging.basicConfig(level=logging.INFO)
    mx.random.seed(0)
    images, labels = make_images(48)
    net = nn.HybridSequential(prefix='fcn_')
    with net.name_scope():
        net.add(
            nn.Conv2D(8, 3, strides=2, padding=1, activation='relu'),
            nn.Conv2D(8, 3, strides=2, padding=1, activation='relu'),
            nn.Conv2D(2, kernel_size=1),
            nn.Conv2DTranspose(2, kernel_size=8, padding=2, strides=4),
        )
    net[-1].initialize(init.Constant(bilinear_kernel(2, 2, 8)))
    net[:3].initialize(init=init.Xavier())
    net.hybridize(static_alloc=True)
    trainer = gluon.Trainer(
        net.collect_params(), 'sgd', {'learning_rate': 1.0, 'momentum': 0.9, 'wd': 1e-3}
    )
    batches = mx.io.NDArrayIter(images, labels, 16, shuffle=True, label_name='label')
    metric = PixelAccuracy()
    for epoch in range(12):
        batches.reset()
        metric.reset()
        for batch in batches:
            x, y = batch.data[0], batch.label[0]
            with autograd.record():
                out = nd.Custom(net(x), y, op_type='focal_loss', gamma=1.0)
            out.backward()
            trainer.step(1)
            metric.update([y], [out])
    print('Epoch[%d] %s=%f' % ((epoch,) + metric.get()))
    colormap = nd.array([[0, 0, 0], [128, 0, 0]], dtype='uint8')
    picture = colormap[net(nd.array(images[:1])).argmax(axis=1)[0].astype('int32')]
    print(picture.shape, picture.dtype == np.uint8, 'accuracy %.3f' % metric.get()[1])

"""A classifier with a module, in the manner of MXNet's image-classification examples."""
import argparse
import logging
import os

import mxnet as mx
import numpy as np
from common import data, fit

logging.basicConfig(level=logging.INFO)


def get_mlp():
    net = mx.symbol.Variable('data')
    net = mx.symbol.Flatten(data=net)
    net = mx.symbol.FullyConnected(data=net, name='fc1', num_hidden=64)
    net = mx.symbol.Activation(data=net, name='relu1', act_type="relu")
    net = mx.symbol.FullyConnected(data=net, name='fc2', num_hidden=10)
    return mx.symbol.SoftmaxOutput(data=net, name='softmax')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    data.add_data_args(parser)
    fit.add_fit_args(parser)
    parser.set_defaults(num_epochs=8, lr=.1)
    args = parser.parse_args()
    model = fit.fit(args, get_mlp(), data.get_iter)
    val = data.get_iter(args, None)[1]
    prob = model.predict(val)
    acc = np.mean(prob.asnumpy().argmax(axis=1).astype(np.int) == data.labels(val))
    score = mx.nd.array([acc], dtype=np.float)
    print('accuracy %f' % score.asnumpy())
    assert os.path.exists('mnist-symbol.json'), os.listdir('.')

"""Steps of stochastic variance reduced gradients, told to MXNet and to gnomon."""

import numpy as np

ROWS = {"whole": 20, "padded": 18}
OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "wd": 0.01},
    "adam": {"learning_rate": 0.1},
    "nag": {"learning_rate": 0.05, "momentum": 0.9},
}


def network(mx):
    """A linear regression, and its data of so many rows."""
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    return mx.sym.LinearRegressionOutput(net, mx.sym.var("lr_label"), name="lr")


def data(mx, rows):
    """Batches of 5 rows."""
    x = np.random.RandomState(0).uniform(-1, 1, (rows, 3)).astype("f")
    y = (x @ np.array([[1.0], [2.0], [-1.0]], "f") + 0.1).astype("f")
    return mx.io.NDArrayIter(x, y, 5, label_name="lr_label")


def made(mx, kind, rows):
    """A module, bound and with parameters of 1, and its data."""
    given = data(mx, rows)
    module = kind(network(mx), data_names=["data"], label_names=["lr_label"], update_freq=2)
    module.bind(data_shapes=given.provide_data, label_shapes=given.provide_label)
    module.init_params(mx.init.One())
    return module, given


def weights(module):
    """All weights."""
    found = module.get_params()[0]
    return [*found["fc_weight"].asnumpy().ravel().tolist(), float(found["fc_bias"].asscalar())]


def steps(mx, kind, rows, optimizer):
    """The weights after each step of two epochs, so of one mean: it is MXNet's from then on."""
    module, given = made(mx, kind, ROWS[rows])
    module.init_optimizer(
        optimizer=optimizer, optimizer_params=tuple(OPTIMIZERS[optimizer].items())
    )
    found = []
    for epoch in range(2):
        if epoch % 2 == 0:
            module.update_full_grads(given)
        given.reset()
        for batch in given:
            module.forward_backward(batch)
            module.update()
            found.append(weights(module))
    return found


def fitted(mx, kind, rows, epochs=2):
    """The weights after `fit`."""
    module, given = made(mx, kind, ROWS[rows])
    rates = {"learning_rate": 0.1}
    module.fit(given, eval_metric="mse", optimizer="sgd", optimizer_params=rates, num_epoch=epochs)
    return weights(module)

"""Trainings by the older modules, run alike by the real library and by gnomon.

Every function takes the package, `mx`, and gives numbers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np


def started(mx: Any, symbol: Any, **shapes: Any) -> dict[str, Any]:
    """Parameters for a symbol, the same in both libraries."""
    rng = np.random.RandomState(7)
    names = symbol.list_arguments()
    sizes = symbol.infer_shape(**shapes)[0]
    inputs = {*shapes, "softmax_label"}
    return {
        name: mx.nd.array(rng.uniform(-0.3, 0.3, size).astype("f"))
        for name, size in zip(names, sizes)  # noqa: B905
        if name not in inputs
    }


def numbers(params: Any) -> dict[str, list[float]]:
    """Sum and sum of squares of each parameter."""
    arrays = {name: array.asnumpy().astype("d") for name, array in sorted(params.items())}
    return {name: [a.sum(), (a * a).sum()] for name, a in arrays.items()}


def language(mx: Any) -> Any:
    """A bucketed language model of two layers of LSTM; perplexities and parameters."""
    rng = np.random.RandomState(3)
    sentences = [(np.arange(n) * k % 7 + 1).tolist() for n, k in rng.randint(1, 8, (60, 2)) + 1]
    random.seed(5)
    np.random.seed(6)
    source = mx.rnn.BucketSentenceIter(sentences, 4, [3, 5, 9], invalid_label=0)
    cell = mx.rnn.SequentialRNNCell()
    for k in range(2):
        cell.add(mx.rnn.LSTMCell(6, prefix=f"l{k}_"))

    def generate(length: int) -> Any:
        x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=8, output_dim=5, name="embed")
        x, _ = cell.unroll(length, x, merge_outputs=True)
        x = mx.sym.FullyConnected(mx.sym.Reshape(x, shape=(-1, 6)), num_hidden=8, name="fc")
        label = mx.sym.Reshape(mx.sym.Variable("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(x, label, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=source.default_bucket_key)
    metric = mx.metric.Perplexity(ignore_label=0)
    seen = []
    module.fit(
        source,
        eval_metric=metric,
        batch_end_callback=lambda param: seen.append(param.eval_metric.get()[1]),
        kvstore=None,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.05},
        arg_params=started(mx, generate(9)[0], data=(4, 9), softmax_label=(4, 9)),
        num_epoch=3,
    )
    return seen[::5], numbers(module.get_params()[0])


def rows(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Data that can be learned."""
    rng = np.random.RandomState(1)
    y = rng.randint(0, classes, 40)
    centres = rng.normal(size=(classes, 5))
    return (centres[y] + rng.normal(scale=0.3, size=(40, 5))).astype("f"), y.astype("f")


def hinge(scores: Any, labels: Any) -> Any:
    """The gradient of a hinge loss of several classes, by NumPy."""
    s, y = scores.asnumpy(), labels.asnumpy().astype(int)
    at = np.arange(len(y))
    over = (s - s[at, y][:, None] + 1 > 0).astype("f")
    over[at, y] = 0
    over[at, y] = -over.sum(1)
    return over


def chained(mx: Any) -> Any:
    """A chain of two modules and a Python loss."""
    x, y = rows(3)
    data = mx.sym.Variable("data")
    first = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=6, name="a"), act_type="tanh")
    second = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="b")
    chain = mx.mod.SequentialModule()
    chain.add(mx.mod.Module(first, label_names=None))
    chain.add(mx.mod.Module(second, label_names=None), auto_wiring=True)
    loss = mx.mod.PythonLossModule(grad_func=hinge)
    chain.add(loss, take_labels=True, auto_wiring=True)
    source = mx.io.NDArrayIter(x, y, 8)
    args = {**started(mx, first, data=(8, 5)), **started(mx, second, data=(8, 6))}
    chain.bind(source.provide_data, source.provide_label)
    chain.init_params(arg_params=args, allow_missing=False)
    chain.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.5})
    metric = mx.metric.create("acc")
    chain.fit(source, eval_metric=metric, num_epoch=4)
    return metric.get()[1], numbers(chain.get_params()[0])


def fitted(mx: Any) -> Any:
    """`FeedForward` on arrays without shuffling, and what it predicts."""
    x, y = rows(4)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    model = mx.model.FeedForward(
        net,
        num_epoch=3,
        epoch_size=4,
        arg_params=started(mx, net, data=(8, 5)),
        learning_rate=0.3,
        wd=0.01,
        numpy_batch_size=8,
    )
    model.fit(mx.io.NDArrayIter(x, y, 8), eval_data=(x, y))
    out, data, label = model.predict(mx.io.NDArrayIter(x, y, 8), return_data=True)
    scored = model.score(mx.io.NDArrayIter(x, y, 8))
    return [list(out.shape), list(data.shape), list(label.shape), scored, out[::7].tolist()]


def several(mx: Any) -> Any:
    """A module on two devices, with the store updating and not."""
    x, y = rows(4)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="fc1")
    net = mx.sym.BatchNorm(net, name="bn", fix_gamma=False)
    net = mx.sym.FullyConnected(net, num_hidden=4, name="fc2")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    found = []
    for store in ("local", None):
        module = mx.mod.Module(net, context=[mx.cpu(0), mx.cpu(1)], work_load_list=[1, 3])
        source = mx.io.NDArrayIter(x, y, 8)
        module.fit(
            source,
            kvstore=store,
            optimizer_params={"learning_rate": 0.2, "momentum": 0.9},
            arg_params=started(mx, net, data=(8, 5)),
            aux_params={"bn_moving_mean": mx.nd.zeros(6), "bn_moving_var": mx.nd.ones(6)},
            num_epoch=3,
        )
        args, auxs = module.get_params()
        found.append([numbers(args), numbers(auxs)])
    return found


RUNS = {"language": language, "chained": chained, "fitted": fitted, "several": several}

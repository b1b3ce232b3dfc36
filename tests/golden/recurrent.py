"""What the RNN operator gives, run with MXNet or gnomon as `mx`: `results(mx)`."""

from __future__ import annotations

import itertools

import numpy as np

STEPS, BATCH, CHANNELS, SIZE = 5, 3, 4, 6
CASES = list(
    itertools.product(("rnn_relu", "rnn_tanh", "lstm", "gru"), (False, True), (1, 2), (False, True))
)


def result(mx, mode, bidirectional, layers, lengths):
    """Outputs, final states and gradients, for values that the case decides."""
    rng = np.random.default_rng([len(mode), bidirectional, layers])
    net = mx.sym.RNN(
        data=mx.sym.var("data"), state_size=SIZE, num_layers=layers, name="r", mode=mode,
        bidirectional=bidirectional, state_outputs=True, use_sequence_length=lengths,
    )  # fmt: skip
    bound = net.simple_bind(mx.cpu(), data=(STEPS, BATCH, CHANNELS))
    for array in bound.arg_dict.values():
        array[:] = rng.normal(size=array.shape) * 0.4
    if lengths:
        bound.arg_dict["r_sequence_length"][:] = mx.nd.array([2, STEPS, 3])
    outputs = bound.forward(is_train=True)
    bound.backward([mx.nd.array(rng.normal(size=x.shape)) for x in outputs])
    grads = {k: v for k, v in bound.grad_dict.items() if k != "r_sequence_length"}
    found = dict(zip(net.list_outputs(), outputs, strict=True)) | grads
    return {name: array.asnumpy() for name, array in found.items()}


def results(mx, cases):
    """Arrays by case and name."""
    return {
        f"{'-'.join(map(str, case))}/{name}": array
        for case in cases
        for name, array in result(mx, *case).items()
    }

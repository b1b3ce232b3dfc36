"""Whole networks give the outputs, gradients and states that the real library gave.

Records: `tests/golden/make.py`. Each network is composed anew and read from the real library's
JSON; run with oneDNN and without it, with every graph pass off, with native programs off, with
values computed again in the backward pass; its gradients are stored by `write` and by `add`.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from golden import nets
from golden.inputs import draw, initial
from golden.samples import sample

import gnomon as mx
from gnomon import config

GOLDEN = Path(__file__).parent / "golden"
FACTS = json.loads((GOLDEN / "networks.json").read_text())
RECORDED = dict(np.load(GOLDEN / "networks.npz"))
PIXELS = 64


def close(ours, theirs, what):
    np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5, err_msg=what)


def bind(name, symbol, request):
    """The network bound to the drawn parameters, its gradients at their initial values."""
    values = {k: draw(f"{name}:{k}", s) for k, s in FACTS[name]["specs"].items()}
    aux = symbol.list_auxiliary_states()
    names = [k for k in symbol.list_arguments() if nets.differentiable(name, k)]
    return symbol.bind(
        mx.cpu(),
        {k: mx.nd.array(v) for k, v in values.items() if k not in aux},
        args_grad={k: mx.nd.array(initial(values[k].shape, "float32")) for k in names},
        grad_req={k: request if k in names else "null" for k in symbol.list_arguments()},
        aux_states={k: mx.nd.array(values[k]) for k in aux},
    )


def check_gradient(name, argument, gradient, request):
    """All of a small gradient; of a large one a sample, its sum and its norm."""
    if request == "add":
        gradient = gradient - initial(gradient.shape, "float32")
    for part, values in sample(gradient).items():
        expected = RECORDED[f"{name}/grad:{argument}:{part}"]
        what = f"{name}: gradient of {argument}, {request}, {part}"
        if part == "sums":
            np.testing.assert_allclose(values, expected, 2e-3, 2e-2, err_msg=what)
        else:
            close(values, expected, what)


WAYS = {
    "all": ("write", {}),
    "add": ("add", {}),
    "own": ("add", {"onednn": False}),
    "apart": ("write", {"passes": False}),
    "stepwise": ("write", {"programs": False}),
    "again": ("write", {"backward_do_mirror": True}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", nets.NETS)
def test_network(name, way):
    request_, settings = WAYS[way]
    with config.using(**settings):
        bound = bind(name, nets.NETS[name](mx.sym), request_)
        bound.forward(is_train=True)
        bound.backward()
        for k, output in enumerate(bound.outputs):
            close(output.asnumpy(), RECORDED[f"{name}/out{k}"], f"{name}: output {k}")
        for argument, gradient in bound.grad_dict.items():
            if gradient is not None:
                check_gradient(name, argument, gradient.asnumpy(), request_)
        for state, values in bound.aux_dict.items():
            close(values.asnumpy(), RECORDED[f"{name}/aux:{state}"], f"{name}: {state}")


@pytest.mark.parametrize("name", nets.NETS)
def test_predictions_are_those_without_passes(name):
    """Passes do more in prediction: normalizations become part of layers, dropout goes."""
    found = []
    for passes in (False, True):
        with config.using(passes=passes):
            bound = bind(name, nets.NETS[name](mx.sym), "null")
            bound.forward(is_train=False)
            found.append([output.asnumpy() for output in bound.outputs])
    for k, (ours, theirs) in enumerate(zip(*found, strict=True)):
        close(ours, theirs, f"{name}: output {k}")


@pytest.mark.parametrize("name", nets.NETS)
def test_the_real_librarys_json_gives_the_same_network(name):
    bound = bind(name, mx.sym.load_json(json.dumps(FACTS[name]["symbol"])), "null")
    bound.forward(is_train=True)
    for k, output in enumerate(bound.outputs):
        close(output.asnumpy(), RECORDED[f"{name}/out{k}"], f"{name}: output {k}")


def held_out():
    """Every fifth of the package's digits: pictures (n, 1, 8, 8) from 0 to 1, labels (n,)."""
    path = Path(mx.__file__).parent / "data" / "digits.rec"
    pairs = [mx.recordio.unpack(r) for r in mx.recordio.MXRecordIO(path, "r")][::5]
    pictures = [np.frombuffer(content, np.uint8, PIXELS) for _, content in pairs]
    labels = np.array([header.label for header, _ in pairs])
    return np.float32(pictures).reshape(-1, 1, 8, 8) / 16, labels


def test_a_checkpoint_of_the_real_library_predicts_the_same():
    symbol, args, aux = mx.model.load_checkpoint(str(GOLDEN / "lenet"), 1)
    pictures, labels = held_out()
    recorded = np.load(GOLDEN / "lenet.npz")
    module = mx.mod.Module(symbol)
    batches = mx.io.NDArrayIter(pictures, batch_size=36)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels are not needed to predict
        module.bind(batches.provide_data, for_training=False)
    module.set_params(args, aux)
    predictions = module.predict(batches).asnumpy()
    close(predictions, recorded["predictions"], "predictions")
    assert (predictions.argmax(1) == labels).mean() == pytest.approx(float(recorded["accuracy"]))

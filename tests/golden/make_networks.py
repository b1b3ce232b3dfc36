"""networks.json, networks.npz: forward and all gradients of networks; lenet-*: a checkpoint."""

import json
import os
import random

import mxnet as mx
import nets
import numpy as np
from inputs import draw, initial
from samples import sample

PIXELS = 64
WITHOUT_ONEDNN = ("alexnet",)


def run(name, symbol, values, aux, request):
    """Outputs, gradients and states of one training step, the gradients from `initial`."""
    states = {k: mx.nd.array(values[k]) for k in aux}
    args = {k: mx.nd.array(v) for k, v in values.items() if k not in aux}
    gradients = {
        k: mx.nd.array(initial(v.shape, v.dtype))
        for k, v in args.items()
        if nets.differentiable(name, k)
    }
    bound = symbol.bind(mx.cpu(), args, gradients, request, states)
    bound.forward(is_train=True)
    bound.backward()
    return (
        [o.asnumpy() for o in bound.outputs],
        {k: g.asnumpy() for k, g in gradients.items()},
        {k: s.asnumpy() for k, s in states.items()},
    )


def record(name):
    """The JSON facts and the arrays of one network."""
    symbol = nets.NETS[name](mx.sym)
    shapes, _, aux_shapes = symbol.infer_shape(data=nets.SHAPES[name])
    aux = symbol.list_auxiliary_states()
    known = dict(zip(symbol.list_arguments() + aux, shapes + aux_shapes, strict=True))
    specs = nets.specs(name, known)
    values = {k: draw(f"{name}:{k}", s) for k, s in specs.items()}
    requests = {
        k: "write" if nets.differentiable(name, k) else "null" for k in known if k not in aux
    }
    outputs, gradients, states = run(name, symbol, values, aux, requests)
    added = {k: "add" if r == "write" else r for k, r in requests.items()}
    for k, g in run(name, symbol, values, aux, added)[1].items():
        right = gradients[k] + initial(g.shape, g.dtype)
        if not np.allclose(g, right, rtol=1e-3, atol=1e-4):
            print(f"{name}: MXNet's add differs for {k}")
    arrays = {f"out{i}": o for i, o in enumerate(outputs)}
    arrays.update({f"aux:{k}": s for k, s in states.items()})
    for k, g in gradients.items():
        arrays.update({f"grad:{k}:{part}": a for part, a in sample(g).items()})
    return {"symbol": json.loads(symbol.tojson()), "specs": specs}, arrays


def digits():
    """The pictures (n, 1, 8, 8) from 0 to 1 and the labels of the data in the package."""
    path = nets.__file__.replace("tests/golden/nets.py", "gnomon/data/digits.rec")
    file, pictures, labels = mx.recordio.MXRecordIO(path, "r"), [], []
    while record := file.read():
        header, content = mx.recordio.unpack(record)
        pictures.append(np.frombuffer(content, np.uint8, PIXELS).reshape(1, 8, 8))
        labels.append(header.label)
    return np.float32(pictures) / 16, np.float32(labels)


def checkpoint(folder):
    """lenet-symbol.json, lenet-0001.params, lenet.npz: trained on four fifths of the digits."""
    pictures, labels = digits()
    random.seed(1)
    np.random.seed(1)
    mx.random.seed(1)
    apart = np.arange(len(labels)) % 5 == 0
    batches = mx.io.NDArrayIter(pictures[~apart], labels[~apart], 32, shuffle=True)
    module = mx.mod.Module(nets.digits(mx.sym))
    module.fit(
        batches,
        num_epoch=30,
        initializer=mx.init.Xavier(),
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-4},
    )
    module.save_checkpoint(str(folder / "lenet"), 1)
    held = mx.io.NDArrayIter(pictures[apart], labels[apart], 36)
    predictions = module.predict(held).asnumpy()
    accuracy = float((predictions.argmax(1) == labels[apart]).mean())
    print(f"digits: accuracy {accuracy:.4f} on {len(predictions)} held out")
    np.savez_compressed(folder / "lenet.npz", predictions=predictions, accuracy=accuracy)


def make(folder) -> None:
    """Write them all; without oneDNN only those that need it so, into what there is."""
    without = os.environ.get("MXNET_MKLDNN_ENABLED") == "0"
    facts, arrays = {}, {}
    if without:
        facts = json.loads((folder / "networks.json").read_text())
        arrays = dict(np.load(folder / "networks.npz"))
    for name in nets.NETS:
        if (name in WITHOUT_ONEDNN) == without:
            facts[name], found = record(name)
            arrays.update({f"{name}/{k}": a for k, a in found.items()})
    (folder / "networks.json").write_text(json.dumps(facts) + "\n")
    np.savez_compressed(folder / "networks.npz", **arrays)
    if not without:
        checkpoint(folder)

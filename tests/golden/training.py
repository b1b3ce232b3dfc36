"""Training put to the same test in the real library and in gnomon; `mx` is either of them.

Every function gives plain lists and numbers that JSON can hold.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from .inputs import draw

# --- optimizers -----------------------------------------------------------------------------

# name -> optimizer and arguments; two weights, one of which is free of decay by its name
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("sgd", {"learning_rate": 0.1, "wd": 0.1}),
    "sgd momentum": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}),
    "sgd clipped": ("sgd", {"momentum": 0.9, "clip_gradient": 0.3, "rescale_grad": 0.5}),
    "sgd clipped decay": ("sgd", {"wd": 0.1, "clip_gradient": 0.3, "rescale_grad": 2.0}),
    "nag": ("nag", {"learning_rate": 0.1, "momentum": 0.9, "clip_gradient": 0.3}),
    "nag decay": ("nag", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1}),
    "nag plain": ("nag", {"learning_rate": 0.1, "wd": 0.1}),
    "signum": ("signum", {"momentum": 0.9, "wd": 0.1, "wd_lh": 0.01, "clip_gradient": 0.3}),
    "signum plain": ("signum", {"momentum": 0.0, "wd": 0.1}),
    "adam": ("adam", {"learning_rate": 0.01, "wd": 0.1, "clip_gradient": 0.3}),
    "adam betas": ("adam", {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3, "rescale_grad": 0.5}),
    "adagrad": ("adagrad", {"learning_rate": 0.1, "wd": 0.1, "clip_gradient": 0.3}),
    "adagrad eps": ("adagrad", {"eps": 1e-2, "rescale_grad": 0.5}),
    "rmsprop": ("rmsprop", {"learning_rate": 0.01, "wd": 0.1, "clip_gradient": 0.3}),
    "rmsprop centred": ("rmsprop", {"centered": True, "gamma1": 0.5, "wd": 0.1}),
    "rmsprop bounded": ("rmsprop", {"learning_rate": 0.1, "clip_weights": 0.5}),
    "test": ("test", {"rescale_grad": 0.5}),
    "adadelta": ("adadelta", {"wd": 0.1, "clip_gradient": 0.3}),
    "adadelta rho": ("adadelta", {"rho": 0.5, "epsilon": 1e-3, "rescale_grad": 0.5}),
    "adamax": ("adamax", {"wd": 0.1, "clip_gradient": 0.3}),
    "adamax betas": ("adamax", {"beta1": 0.5, "beta2": 0.9, "learning_rate": 0.1}),
    "nadam": ("nadam", {"learning_rate": 0.01, "wd": 0.1, "clip_gradient": 0.3}),
    "nadam betas": ("nadam", {"beta1": 0.5, "schedule_decay": 0.1, "rescale_grad": 0.5}),
    "ftrl": ("ftrl", {"wd": 0.1, "clip_gradient": 0.3}),
    "ftrl lamda": ("ftrl", {"lamda1": 0.5, "beta": 0.5, "rescale_grad": 0.5}),
    "ftml": ("ftml", {"learning_rate": 0.01, "wd": 0.1, "clip_gradient": 0.3}),
    "ftml betas": ("ftml", {"beta1": 0.5, "beta2": 0.9, "rescale_grad": 0.5}),
    "dcasgd": ("dcasgd", {"wd": 0.1, "clip_gradient": 0.3, "learning_rate": 0.1}),
    "dcasgd lamda": ("dcasgd", {"lamda": 0.5, "learning_rate": 0.1, "rescale_grad": 0.5}),
    "lars": ("lars", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1, "clip_gradient": 0.3}),
    "lars plain": ("lars", {"learning_rate": 0.1, "eta": 0.1, "eps": 0.5, "rescale_grad": 0.5}),
    "lamb": ("lamb", {"learning_rate": 0.1, "wd": 0.1, "clip_gradient": 0.3}),
    "lamb bounds": ("lamb", {"lower_bound": 2.0, "upper_bound": 2.5, "rescale_grad": 0.5}),
    "lamb uncorrected": ("lamb", {"bias_correction": False, "beta1": 0.5, "epsilon": 1e-3}),
    "group adagrad": ("groupadagrad", {"clip_gradient": 0.3, "learning_rate": 0.1}),
    "group adagrad eps": ("groupadagrad", {"eps": 1e-2, "rescale_grad": 0.5}),
    "lbsgd": ("lbsgd", {"momentum": 0.9, "wd": 0.1}),
    "lbsgd linear": ("lbsgd", {"batch_scale": 2, "updates_per_epoch": 1, "momentum": 0.9}),
    "lbsgd begun": ("lbsgd", {"batch_scale": 3, "updates_per_epoch": 2, "begin_epoch": 1}),
    "lbsgd power2": ("lbsgd", {"batch_scale": 2, "warmup_strategy": "power2", "wd": 0.1}),
    "lbsgd sqrt": ("lbsgd", {"batch_scale": 2, "warmup_strategy": "sqrt", "clip_gradient": 0.3}),
    "lbsgd lars": (
        "lbsgd",
        {"batch_scale": 2, "warmup_strategy": "lars", "wd": 0.1, "rescale_grad": 0.5},
    ),
}
NAMES = {0: "fc_weight", 1: "fc_bias"}
SHAPES = {0: (2, 3), 1: (5,)}
STEPS = 5
#: those whose updates of several weights at once are operators of their own in MXNet
TOGETHER = tuple(name for name in OPTIMIZERS if name.split()[0] in ("sgd", "lars", "lamb"))
#: those whose updates of float16 weights are at fault, or coarse, in MXNet
FAULTY_HALVES = tuple(name for name in OPTIMIZERS if name.split()[0] in ("lars", "lamb"))


def optimize(mx: Any, name: str, together: bool = False) -> list[Any]:
    """The elements of two weights after each of some updates, one by one or both at once."""
    kind, settings = OPTIMIZERS[name]
    updater = mx.optimizer.get_updater(mx.optimizer.create(kind, param_idx2name=NAMES, **settings))
    shapes = {i: (*s, 1)[:2] if kind.startswith("group") else s for i, s in SHAPES.items()}
    weights = {i: mx.nd.array(draw(f"w{i}", ["n", s])) for i, s in shapes.items()}
    found = []
    for step in range(STEPS):
        grads = {i: mx.nd.array(draw(f"g{i}{step}", ["n", s])) for i, s in shapes.items()}
        if together:
            updater(*map(list, (grads.keys(), grads.values(), weights.values())))
        else:
            for i, grad in grads.items():
                updater(i, grad, weights[i])
        found.append([x for w in weights.values() for x in w.asnumpy().ravel().tolist()])
    return found


def optimize_rounded(mx: Any, name: str) -> list[Any]:
    """The elements of a float32 weight after each update, all it is given rounded to float16."""
    kind, settings = OPTIMIZERS[name]
    updater = mx.optimizer.get_updater(mx.optimizer.create(kind, param_idx2name=NAMES, **settings))
    rounded = lambda what: draw(what, ["n", SHAPES[0]]).astype("float16")  # noqa: E731
    weight, found = mx.nd.array(rounded("w0"), dtype="float32"), []
    for step in range(STEPS):
        updater(0, mx.nd.array(rounded(f"g0{step}"), dtype="float32"), weight)
        found.append(weight.asnumpy().ravel().tolist())
    return found


def optimize_half(mx: Any, name: str) -> list[Any]:
    """After each update: a float16 weight, its float32 copy and the states, wherever they stand."""
    kind, settings = OPTIMIZERS[name]
    optimizer = mx.optimizer.create(kind, param_idx2name=NAMES, multi_precision=True, **settings)
    weight = mx.nd.array(draw("w0", ["n", SHAPES[0]]), dtype="float16")
    state, found = optimizer.create_state_multi_precision(0, weight), []
    for step in range(STEPS):
        grad = mx.nd.array(draw(f"g0{step}", ["n", SHAPES[0]]), dtype="float16")
        optimizer.update_multi_precision(0, weight, grad, state)
        wide = [x for x in _flat(state) if hasattr(x, "asnumpy")]
        found.append([x.asnumpy().astype("f").ravel().tolist() for x in (weight, *wide)])
    return found


def _flat(state: Any) -> list[Any]:
    """The arrays of a state; the float32 copy may stand first or last."""
    if not isinstance(state, (list, tuple)):
        return [] if state is None else [state]
    return [x for part in state for x in _flat(part)]


# --- metrics --------------------------------------------------------------------------------

CLASSES, NUMBERS, BINARY = "classes", "numbers", "binary"
METRICS: dict[str, tuple[str, dict[str, Any], str]] = {
    "accuracy": ("acc", {}, CLASSES),
    "top k": ("top_k_accuracy", {"top_k": 2}, CLASSES),
    "f1": ("f1", {}, BINARY),
    "f1 micro": ("f1", {"average": "micro"}, BINARY),
    "mcc": ("mcc", {}, BINARY),
    "mcc micro": ("mcc", {"average": "micro"}, BINARY),
    "perplexity": ("Perplexity", {"ignore_label": 1}, CLASSES),
    "perplexity of all": ("Perplexity", {"ignore_label": None}, CLASSES),
    "mae": ("mae", {}, NUMBERS),
    "mse": ("mse", {}, NUMBERS),
    "rmse": ("rmse", {}, NUMBERS),
    "cross entropy": ("ce", {}, CLASSES),
    "likelihood": ("nll_loss", {}, CLASSES),
    "correlation": ("pearsonr", {}, NUMBERS),
    "pcc": ("pcc", {}, CLASSES),
    "loss": ("loss", {}, NUMBERS),
    "torch": ("torch", {}, NUMBERS),
    "caffe": ("caffe", {}, NUMBERS),
    "several": ("several", {}, CLASSES),
}


def measure(mx: Any, name: str) -> list[Any]:
    """Names and values after each of three batches, of all and since the last local reset."""
    kind, settings, data = METRICS[name]
    several = [mx.metric.create("acc"), mx.metric.create("ce")]
    metric = mx.metric.create(several if kind == "several" else kind, **settings)
    found: list[Any] = []
    for batch in range(3):
        count = 2 if data == BINARY else 4
        if data == NUMBERS:
            label, guess = (draw(f"{what}{batch}", ["n", [6, 1]]) for what in ("label", "guess"))
        else:
            label = draw(f"label{batch}", ["i", [6], 0, count])
            guess = draw(f"guess{batch}", ["u", [6, count], 0.05, 1])
            guess = guess / guess.sum(1, keepdims=True)
        metric.update([mx.nd.array(label)], [mx.nd.array(guess)])
        found.append([_named(metric.get_name_value()), _named(metric.get_global_name_value())])
        if batch == 1:
            metric.reset_local()
    return found


def _named(pairs: Any) -> list[Any]:
    return [[name, float(value)] for name, value in pairs]


# --- initial values -------------------------------------------------------------------------

INITIALIZERS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "zero": ("Zero", {}, (2, 3)),
    "one": ("One", {}, (2, 3)),
    "constant": ("Constant", {"value": 2.5}, (2, 3)),
    "bilinear": ("Bilinear", {}, (1, 1, 4, 4)),
    "forget": ("LSTMBias", {"forget_bias": 1.5}, (8,)),
}
#: drawn ones: their bounds, mean and deviation
DRAWN: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "uniform": ("Uniform", {"scale": 0.3}, (200, 300)),
    "normal": ("Normal", {"sigma": 0.2}, (200, 300)),
    "xavier": ("Xavier", {}, (200, 300)),
    "xavier in": ("Xavier", {"factor_type": "in", "magnitude": 2}, (200, 300)),
    "xavier out": ("Xavier", {"factor_type": "out", "rnd_type": "gaussian"}, (200, 300)),
    "xavier filters": ("Xavier", {}, (64, 32, 5, 5)),
    "prelu": ("MSRAPrelu", {"slope": 0.5}, (200, 300)),
    "orthogonal": ("Orthogonal", {"scale": 2}, (120, 120)),
    "orthogonal normal": ("Orthogonal", {"rand_type": "normal"}, (120, 120)),
}


def initial(mx: Any, name: str) -> Any:
    """What an initializer writes into a weight; of drawn ones, mean and deviation."""
    kind, settings, shape = {**INITIALIZERS, **DRAWN}[name]
    mx.random.seed(1)
    np.random.seed(1)
    array = mx.nd.full(shape, 7)
    what = "x_bias" if kind == "LSTMBias" else "x_weight"
    rule = getattr(mx.init, kind)(**settings)
    rule(mx.init.InitDesc(what, {"__init__": rule.dumps()}), array)
    values = array.asnumpy()
    return values.tolist() if name in INITIALIZERS else [float(values.mean()), float(values.std())]


# --- schedules ------------------------------------------------------------------------------

WARM = {"warmup_steps": 3, "warmup_begin_lr": 0.01}
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "factor": ("FactorScheduler", {"step": 4, "factor": 0.5, "base_lr": 1.0}),
    "factor stops": ("FactorScheduler", {"step": 1, "factor": 0.1, "stop_factor_lr": 1e-3}),
    "factor warm": ("FactorScheduler", {"step": 4, "factor": 0.5, "base_lr": 1.0, **WARM}),
    "steps": ("MultiFactorScheduler", {"step": [2, 9, 12], "factor": 0.3, "base_lr": 1.0}),
    "poly": ("PolyScheduler", {"max_update": 15, "base_lr": 1.0, "final_lr": 0.1}),
    "poly warm": ("PolyScheduler", {"max_update": 15, "base_lr": 1.0, "pwr": 1, **WARM}),
    "cosine": ("CosineScheduler", {"max_update": 15, "base_lr": 1.0, "final_lr": 0.1}),
    "cosine constant": (
        "CosineScheduler",
        {"max_update": 15, "base_lr": 1.0, "warmup_mode": "constant", **WARM},
    ),
}
ASKED = (0, 1, 2, 3, 4, 5, 8, 9, 10, 13, 14, 15, 16, 20)


def schedule(mx: Any, name: str) -> list[float]:
    """The rates at some numbers of updates."""
    kind, settings = SCHEDULES[name]
    scheduler = getattr(mx.lr_scheduler, kind)(**settings)
    return [float(scheduler(number)) for number in ASKED]


# --- iterators ------------------------------------------------------------------------------

ITERATORS = {
    f"{rows} rows by {size}, {handle}{', shuffled' * shuffle}": (rows, size, handle, shuffle)
    for rows, size in ((7, 3), (6, 3), (5, 4), (3, 2))
    for handle in ("pad", "discard", "roll_over")
    for shuffle in (False, True)
}


def iterate(mx: Any, name: str) -> list[Any]:
    """Labels and padding of every batch of three epochs."""
    rows, size, handle, shuffle = ITERATORS[name]
    np.random.seed(5)
    batches = mx.io.NDArrayIter(
        np.arange(2 * rows).reshape(rows, 2), np.arange(rows), size, shuffle, handle
    )
    epochs = []
    for _ in range(3):
        epochs.append([[b.label[0].asnumpy().tolist(), b.pad] for b in batches])
        batches.reset()
    return epochs


# --- modules --------------------------------------------------------------------------------

# name -> number of devices, store, optimizer, its arguments
FITS: dict[str, tuple[int, str | None, str, dict[str, Any]]] = {
    "one device": (1, "local", "sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-2}),
    "one device, no store": (1, None, "sgd", {"learning_rate": 0.2}),
    "two devices": (2, "local", "sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    "two devices, no updates on the store": (2, "device", "nag", {"learning_rate": 0.1}),
}


def perceptron(sym: Any) -> Any:
    """A network small enough to write down what becomes of it."""
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=6, name="fc1")
    net = sym.Activation(net, act_type="tanh", name="tanh1")
    net = sym.FullyConnected(net, num_hidden=3, name="fc2")
    return sym.SoftmaxOutput(net, name="softmax")


def fit(mx: Any, name: str) -> dict[str, Any]:
    """Metrics after each batch of two epochs, and the parameters and predictions at the end."""
    devices, store, optimizer, settings = FITS[name]
    points = draw("points", ["n", (22, 4)])
    labels = points[:, :3].argmax(axis=1).astype("float32")
    batches = mx.io.NDArrayIter(points, labels, 8)
    module = mx.mod.Module(perceptron(mx.sym), context=[mx.cpu(i) for i in range(devices)])
    start = {
        "fc1_weight": ["u", (6, 4), -0.8, 0.8],
        "fc1_bias": ["u", (6,), -0.1, 0.1],
        "fc2_weight": ["u", (3, 6), -0.8, 0.8],
        "fc2_bias": ["z", (3,)],
    }
    seen: list[Any] = []
    module.fit(
        batches,
        eval_metric=["acc", "ce"],
        kvstore=store,
        optimizer=optimizer,
        optimizer_params=settings,
        arg_params={key: mx.nd.array(draw(key, spec)) for key, spec in start.items()},
        aux_params={},
        num_epoch=2,
        batch_end_callback=lambda param: seen.append(
            [param.epoch, param.nbatch, list(map(float, param.eval_metric.get()[1]))]
        ),
    )
    params, _ = module.get_params()
    return {
        "seen": seen,
        "params": {key: value.asnumpy().tolist() for key, value in sorted(params.items())},
        "predicted": module.predict(batches).asnumpy().tolist(),
        "score": [float(value) for _, value in module.score(batches, ["acc", "ce"])],
    }


# --- summaries ------------------------------------------------------------------------------


def branching(sym: Any) -> Any:
    """A network with branches, auxiliary states, no bias, and a name too long for its column."""
    net = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=8, name="conv1")
    net = sym.BatchNorm(net, name="bn")
    net = sym.Activation(net, act_type="relu", name="relu1")
    net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    net = sym.Flatten(net, name="flat")
    left = sym.FullyConnected(net, num_hidden=10, name="left", no_bias=True)
    right = sym.FullyConnected(net, num_hidden=10, name="right")
    long = "a_rather_long_name_for_a_layer_that_does_not_fit_into_its_column"
    net = sym.Dropout(sym.Concat(left, right, name=long), name="drop")
    return sym.SoftmaxOutput(sym.elemwise_add(net, net, name="twice"), name="softmax")


SUMMARIES: dict[str, dict[str, Any]] = {
    "wide": {},
    "narrow": {"line_length": 80, "positions": [0.4, 0.6, 0.8, 1.0]},
}


def summarize(mx: Any, name: str) -> str:
    """What `print_summary` prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        mx.viz.print_summary(branching(mx.sym), {"data": (2, 1, 8, 8)}, **SUMMARIES[name])
    return text.getvalue()

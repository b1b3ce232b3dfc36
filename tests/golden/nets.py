"""The networks of the golden files, composed alike by the real library and by gnomon.

Every function takes the symbol namespace, `mx.sym`, and gives a symbol with fixed names.
"""

from __future__ import annotations

from typing import Any

try:
    from golden import zoo
except ImportError:  # the scripts here are run beside it
    import zoo


def mlp(sym: Any) -> Any:
    """784-128-64-10, the multi-layer perceptron."""
    x = sym.Variable("data")
    for i, width in enumerate((128, 64), 1):
        x = sym.FullyConnected(x, name=f"fc{i}", num_hidden=width)
        x = sym.Activation(x, name=f"relu{i}", act_type="relu")
    x = sym.FullyConnected(x, name="fc3", num_hidden=10)
    return sym.SoftmaxOutput(x, name="softmax")


def lenet(sym: Any, filters: tuple[int, int] = (20, 50), hidden: int = 500, kernel: int = 5) -> Any:
    """Twice convolution, tanh and max pooling; twice fully connected."""
    x = sym.Variable("data")
    for i, width in enumerate(filters, 1):
        x = sym.Convolution(
            x,
            name=f"conv{i}",
            kernel=(kernel, kernel),
            num_filter=width,
            pad=(0, 0) if kernel == 5 else (1, 1),
        )
        x = sym.Activation(x, name=f"tanh{i}", act_type="tanh")
        x = sym.Pooling(x, name=f"pool{i}", pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = sym.Flatten(x, name="flatten")
    x = sym.FullyConnected(x, name="fc1", num_hidden=hidden)
    x = sym.Activation(x, name="tanh3", act_type="tanh")
    x = sym.FullyConnected(x, name="fc2", num_hidden=10)
    return sym.SoftmaxOutput(x, name="softmax")


def digits(sym: Any) -> Any:
    """A LeNet for pictures of 8 by 8."""
    return lenet(sym, filters=(8, 16), hidden=32, kernel=3)


def branches(sym: Any) -> Any:
    """Two normalised branches joined; Dropout that drops nothing; two outputs."""
    x = sym.Variable("data")
    wide = sym.Convolution(x, name="wide", kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True)
    wide = sym.BatchNorm(wide, name="bn1", fix_gamma=False, eps=1e-4)
    wide = sym.Activation(wide, name="relu", act_type="relu")
    thin = sym.Convolution(x, name="thin", kernel=(1, 1), num_filter=3)
    thin = sym.BatchNorm(thin, name="bn2", momentum=0.8)
    both = sym.Concat(wide, thin, name="both", dim=1)
    both = sym.Dropout(both, name="drop", p=0.0)
    mean = sym.Pooling(both, name="mean", global_pool=True, pool_type="avg", kernel=(1, 1))
    out = sym.FullyConnected(sym.Flatten(mean, name="flat"), name="fc", num_hidden=3)
    side = sym.LinearRegressionOutput(sym.mean(thin, axis=(1, 2, 3), name="side"), name="value")
    return sym.Group([sym.SoftmaxOutput(out, name="softmax"), side])


NETS = {"mlp": mlp, "lenet": lenet, "branches": branches}
NETS.update({name: net for name, (net, _) in zoo.ZOO.items()})
SHAPES = {"mlp": (8, 784), "lenet": (4, 1, 28, 28), "branches": (5, 2, 6, 5)}
SHAPES.update({name: shape for name, (_, shape) in zoo.ZOO.items()})
CLASSES = {"mlp": 10, "lenet": 10, "branches": 3, **zoo.CLASSES}


def differentiable(name: str, argument: str) -> bool:
    """Whether an argument has a gradient: labels and words have none."""
    return "label" not in argument and not (argument == "data" and name in zoo.WORDS)


def specs(name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, list[Any]]:
    """How to draw each argument and state of a network, for `inputs.draw`."""
    found: dict[str, list[Any]] = {}
    for argument, shape in shapes.items():
        fan = 1
        for extent in shape[1:]:
            fan *= extent
        if argument == "data" and name in zoo.WORDS:
            found[argument] = ["i", list(shape), 0, zoo.WORDS[name]]
        elif argument.endswith("softmax_label"):
            found[argument] = ["i", list(shape), 0, CLASSES[name]]
        elif argument.endswith(("gamma", "var")):
            found[argument] = ["u", list(shape), 0.5, 1.5]
        elif argument.endswith(("data", "label", "beta", "mean")):
            found[argument] = ["n", list(shape)]
        else:
            bound = (3.0 / fan) ** 0.5 if len(shape) > 1 else 0.1
            found[argument] = ["u", list(shape), -bound, bound]
    return found

"""The networks of the zoo by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.base import ParamError, complaint, nearest
from gnomon.compatibility.absent import public
from gnomon.gluon.model_zoo.vision import densenet, mobilenet, resnet, squeezenet, vgg
from gnomon.gluon.model_zoo.vision.alexnet import alexnet
from gnomon.gluon.model_zoo.vision.inception import inception_v3

VISION = "gnomon.gluon.model_zoo.vision"
FAMILIES = densenet, mobilenet, resnet, squeezenet, vgg
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: made
    for family in FAMILIES
    for name, made in vars(family).items()
    if getattr(made, "__module__", None) == family.__name__
    and not (name.startswith(("_", "get_")) or isinstance(made, type))
}
WIDTHS = {"0_25": 0.25, "0_5": 0.5, "0_75": 0.75, "1_0": 1.0}
# the names that `get_model` knows: those of files, where widths have dots
MODELS: dict[str, Callable[..., Any]] = {
    "alexnet": alexnet,
    "inceptionv3": inception_v3,
    **{
        name: made
        for name, made in FUNCTIONS.items()
        if not name.startswith(("mobilenet", "squeezenet"))
    },
    **{f"mobilenet{w}": FUNCTIONS[f"mobilenet{n}"] for n, w in WIDTHS.items()},
    **{f"mobilenetv2_{w}": FUNCTIONS[f"mobilenet_v2_{n}"] for n, w in WIDTHS.items()},
    **{f"squeezenet1.{n}": FUNCTIONS[f"squeezenet1_{n}"] for n in (0, 1)},
}


def get_model(name: str, **kwargs: Any) -> Any:
    """The network called `name`, in capitals or not; `kwargs` go to its class.

    With `pretrained=True` its parameters are read from the folder `root`.

    >>> get_model("squeezenet1.1", classes=10).output[0]
    Conv2D(None -> 10, kernel_size=(1, 1), stride=(1, 1))

    Raises:
        ParamError: there is none of this name.
        MissingFileError: there is no file with its parameters.
    """
    found = MODELS.get(name.lower())
    if found is None:
        expected = f"one of {', '.join(sorted(MODELS))}"
        got = repr(name) + nearest(name.lower(), MODELS)
        raise ParamError(complaint("get_model", "name", expected, got))
    return found(**kwargs)


def attributes(name: str) -> Any:
    """The function that makes the network `name`: `vision.resnet18_v1` and its like."""
    if name not in FUNCTIONS:
        raise AttributeError(f"module {VISION!r} has no attribute {name!r}")
    return FUNCTIONS[name]


def listed() -> list[str]:
    """The public names of `vision`: what it imports, and every network."""
    return sorted({*public(VISION), *FUNCTIONS})

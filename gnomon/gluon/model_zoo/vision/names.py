"""The networks of the zoo by their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gnomon.base import ParamError, complaint, nearest
from gnomon.gluon.model_zoo.vision.alexnet import alexnet
from gnomon.gluon.model_zoo.vision.densenet import get_densenet
from gnomon.gluon.model_zoo.vision.inception import inception_v3
from gnomon.gluon.model_zoo.vision.mobilenet import get_mobilenet, get_mobilenet_v2
from gnomon.gluon.model_zoo.vision.resnet import get_resnet
from gnomon.gluon.model_zoo.vision.squeezenet import get_squeezenet
from gnomon.gluon.model_zoo.vision.vgg import get_vgg


def _given(make: Callable[..., Any], name: str, *args: Any, **given: Any) -> Callable[..., Any]:
    """The function called `name` that makes one network of a family."""

    @functools.wraps(make)
    def made(**kwargs: Any) -> Any:
        return make(*args, **{**given, **kwargs})

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"The network {name}; keyword arguments as for `{make.__name__}`."
    return made


WIDTHS = {"0_25": 0.25, "0_5": 0.5, "0_75": 0.75, "1_0": 1.0}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    made.__name__: made
    for made in (
        *(_given(get_densenet, f"densenet{n}", n) for n in (121, 161, 169, 201)),
        *(_given(get_mobilenet, f"mobilenet{name}", w) for name, w in WIDTHS.items()),
        *(_given(get_mobilenet_v2, f"mobilenet_v2_{name}", w) for name, w in WIDTHS.items()),
        *(
            _given(get_resnet, f"resnet{n}_v{v}", v, n)
            for v in (1, 2)
            for n in (18, 34, 50, 101, 152)
        ),
        *(_given(get_squeezenet, f"squeezenet1_{n}", f"1.{n}") for n in (0, 1)),
        *(_given(get_vgg, f"vgg{n}", n) for n in (11, 13, 16, 19)),
        *(_given(get_vgg, f"vgg{n}_bn", n, batch_norm=True) for n in (11, 13, 16, 19)),
    )
}
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
        FileNotFoundError: there is no file with its parameters.
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
        raise AttributeError(f"module 'gnomon.gluon.model_zoo.vision' has no attribute {name!r}")
    return FUNCTIONS[name]

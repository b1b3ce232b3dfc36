"""What a program gets that asks a module for a name which is not there.

MXNet 1.9.1's public names stand in `gnomon/data/mxnet-names.txt`, a module in each line. One that
gnomon lacks is told to be on its way; anything else gets a hint at the names that are there.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from gnomon.base import UnknownNameError, nearest
from gnomon.ground.lock import load_module
from gnomon.ground.tables import table

Find = Callable[[str], Any]
Names = Callable[[], list[str]]

VERSION = "1.9.1"  # MXNet's, whose names and meaning gnomon has
PAGE = "docs/differences.md, 'Not there yet'"

_ARRAYS = "interface in the manner of NumPy (np, npx)"
# MXNet's modules that are no names in the table below, or not there as a whole -> what they are
MODULES = {
    "contrib.quantization": "quantization",
    "library": "loader of operator libraries",
    "notebook": "set of callbacks for notebooks",
    "np": _ARRAYS,
    "npx": _ARRAYS,
    "numpy": _ARRAYS,
    "numpy_extension": _ARRAYS,
    "th": "bridge to Lua Torch",
    "torch": "bridge to Lua Torch",
    "tvmop": "set of operators made by TVM",
}

# MXNet's path -> where gnomon has the same names
ELSEWHERE = {
    "contrib.onnx.onnx2mx": "contrib.onnx",
    "contrib.svrg_optimization.svrg_optimizer": "contrib.svrg_optimization",
    "executor_group": "module.executor_group",
    "image.detection": "image",
    "image.image": "image",
    "initializer.registry": "registry",
    "io.utils": "io",
    "kvstore.kvstore": "kvstore",
    "kvstore.kvstore_server": "kvstore",
    "metric.registry": "registry",
    "ndarray.ndarray": "ndarray",
    "ndarray.utils": "ndarray",
    "ndarray.register": "ndarray",
    "onnx.mx2onnx": "onnx",
    "optimizer.NDabs": "ndarray.abs",
    "optimizer.NDnorm": "ndarray.norm",
    "optimizer.optimizer": "optimizer",
    "symbol.register": "symbol",
    "symbol.symbol": "symbol",
}


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """MXNet's public names by module: '' is `mx` itself, 'ndarray.linalg' is `mx.nd.linalg`.

    Under 'operators' stand the names that model files use, aliases among them.
    """
    return {module: frozenset(listed) for module, listed in table("mxnet-names.txt").items()}


def lacking(path: str) -> str | None:
    """What is said of MXNet's module `path`, or one below it, that gnomon has not; else None.

    >>> lacking("contrib.quantization.calib")
    "MXNet's quantization is not there yet (docs/differences.md, 'Not there yet')"
    """
    parts = path.split(".")
    for end in range(1, len(parts) + 1):
        what = MODULES.get(".".join(parts[:end]))
        if what is not None:
            return f"MXNet's {what} is not there yet ({PAGE})"
    return None


def _quantised(name: str) -> str | None:
    """What is said of an operator of MXNet's quantisation, which the table lacks; else None."""
    found = re.match(r"(_contrib_)?((de|re)?quantize|calibrate_entropy)", name)
    return lacking("contrib.quantization") if found else None


def elsewhere(module: str, name: str, known: Iterable[str]) -> Any:
    """What MXNet has as `name` in `module`, which has `known`: something that stands elsewhere.

    >>> import gnomon as mx
    >>> elsewhere("gnomon.io", "utils", []) is mx.io
    True
    >>> elsewhere("gnomon.optimizer", "Adan", ["Adam", "SGD"])
    Traceback (most recent call last):
        ...
    AttributeError: module 'gnomon.optimizer' has no attribute 'Adan'; did you mean 'Adam'?

    Raises:
        AttributeError: there is no such thing; it says whether MXNet has it.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("__"):
        raise AttributeError(text, name=name)
    inner = f"{module}.{name}".removeprefix("gnomon.")
    if inner in ELSEWHERE:
        home, _, last = f"gnomon.{ELSEWHERE[inner]}".rpartition(".")
        return getattr(load_module(home), last)
    if (missing := lacking(inner)) is not None:
        raise AttributeError(f"{text}: {missing}", name=name)
    if (missing := _quantised(name)) is not None:
        raise AttributeError(f"{text}: {missing}", name=name)
    if name in names().get(module.removeprefix("gnomon").lstrip("."), ()):
        raise AttributeError(f"{text}: MXNet's {name} is not there yet ({PAGE})", name=name)
    raise AttributeError(text + (_home(module, name) or nearest(name, known)), name=name)


def _home(module: str, name: str) -> str:
    """A hint at the module of MXNet's that has such a name, below `module` if one has; or ""."""
    places = [inner for inner in names() if inner.rpartition(".")[2] == name and "." in inner]
    holders = (inner for inner, listed in names().items() if name in listed)
    places += [f"{inner}.{name}" for inner in holders if inner not in ("", "operators")]
    below = f"{module}.".removeprefix("gnomon.")
    near = min(places, key=lambda p: (not p.startswith(below), p.count(".")), default="")
    return near and f"; there is mx.{near}"


def unknown_operator(name: str, known: Iterable[str]) -> UnknownNameError:
    """The error of an operator that is not registered; `known` are."""
    if (missing := _quantised(name)) is not None:
        return UnknownNameError(f"operator {name!r}: {missing}")
    if name in names()["operators"]:
        return UnknownNameError(f"operator {name!r}: MXNet's is not there yet ({PAGE})")
    return UnknownNameError(f"operator {name!r} is not registered{nearest(name, known)}")


def offering(module: str, find: Find, names: Names) -> tuple[Find, Names]:
    """`__getattr__` and `__dir__` of a module that finds some of its public `names` when asked.

    `from module import *` takes them all. It asks for `__all__`: what the source calls so, which
    linters and type checkers read, has only the names known beforehand, and makes way for them.
    """
    vars(sys.modules[module]).pop("__all__", None)

    def attribute(name: str) -> Any:
        if name == "__all__":
            return [each for each in names() if not each.startswith("_")]
        return find(name)

    return attribute, names


def resolving(
    package: str, files: Mapping[str, str], own: Iterable[str] = ()
) -> tuple[Find, Names]:
    """`__getattr__` and `__dir__` of a package with public names of its `own` and of `files`.

    A file is imported when one of its names, or the file itself, is first asked for.
    """
    homes = {name: f"{package}.{file}" for file, names in files.items() for name in names.split()}

    def find(name: str) -> Any:
        if name in homes:
            found = getattr(load_module(homes[name]), name)
            setattr(sys.modules[package], name, found)
            return found
        if PathFinder.find_spec(f"{package}.{name}", vars(sys.modules[package])["__path__"]):
            return load_module(f"{package}.{name}")
        return elsewhere(package, name, (*own, *homes))

    return offering(package, find, lambda: sorted({*own, *homes}))


def public(module: str, modules: Iterable[str] = ()) -> list[str]:
    """The names that an `__init__` has imported without an underscore, and these `modules`.

    Other modules of its folder are attributes too, once they are imported.
    """
    own = vars(sys.modules[module]).items()
    plain = [n for n, value in own if not (n.startswith("_") or isinstance(value, ModuleType))]
    return sorted({*plain, *modules})


def showing(module: str, modules: Iterable[str] = ()) -> tuple[Find, Names]:
    """`__getattr__` and `__dir__` of an `__init__` whose `public` names are those it imports."""

    def names() -> list[str]:
        return public(module, modules)

    return offering(module, lambda name: elsewhere(module, name, names()), names)


def finding(module: str, known: Iterable[str]) -> tuple[Find, Names]:
    """`__getattr__` and `__dir__` of a module whose public names are `known`, and there."""
    return lambda name: elsewhere(module, name, known), lambda: sorted(known)

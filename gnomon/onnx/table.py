"""The table of translations: what each operator of MXNet is in ONNX, and what each of ONNX is here.

A file of `families/` declares both directions of an operator beside each other:

    pair("tanh", "Tanh")                    one operator each

    @writes("dot", "MatMul")                from here to ONNX: which operators it may write
    def write_dot(w, x): ...

    @reads("MatMul")                        from ONNX to here
    def read_matmul(r, n): ...

`write_dot` gets the `Writer` and the `Call` that is translated and gives the name of the output, or
a list of names; `read_matmul` gets the `Reader` and the `OnnxCall` and gives the symbol.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any

from gnomon.base import GnomonError
from gnomon.ground.lock import first_use, load_module
from gnomon.ground.record import record


class Unsupported(GnomonError):
    """Something that has no translation; the message says why."""


@record()
class Export:
    """How an operator of MXNet is written: by which operators of ONNX, and the function."""

    to: tuple[str, ...]
    write: Callable[..., Any]


@record()
class Import:
    """How an operator of ONNX is read; `elementwise` where scalars give a scalar."""

    read: Callable[..., Any]
    elementwise: bool = False


_exports: dict[str, Export] = {}
_imports: dict[str, Import] = {}
_progress: list[str] = []


def writes(names: str, to: str) -> Callable[[Any], Any]:
    """Declare a function the translation of the operators `names`, by the ONNX operators `to`."""

    def enter(function: Any) -> Any:
        for name in names.split():
            _exports[name] = Export(tuple(to.split()), function)
        return function

    return enter


def reads(names: str, elementwise: bool = False) -> Callable[[Any], Any]:
    """Declare a function the translation of the ONNX operators `names`."""

    def enter(function: Any) -> Any:
        for name in names.split():
            _imports[name] = Import(function, elementwise)
        return function

    return enter


def writes_as(names: str, onnx: str, **attributes: str) -> None:
    """Declare operators one of ONNX with the same inputs; its attributes are parameters by name."""

    def write(w: Any, x: Any) -> Any:
        return w.op(onnx, *x.inputs, **{a: getattr(x.op, mine) for a, mine in attributes.items()})

    writes(names, onnx)(write)


def reads_as(onnx: str, name: str, elementwise: bool = True, **params: Any) -> None:
    """Declare an operator of ONNX one of MXNet with the same inputs.

    A parameter is the same for all, or a pair: an attribute, and what it is by default.
    """

    def read(r: Any, n: Any) -> Any:
        given = {k: n.attr(*v) if isinstance(v, tuple) else v for k, v in params.items()}
        return r.op(name, n.symbol(), *n.symbols()[1:], **given)

    reads(onnx, elementwise)(read)


def pair(name: str, onnx: str, **attributes: tuple[str, Any]) -> None:
    """Declare an elementwise operator that is one on both sides.

    `attributes` are its parameters: the attribute that each is in ONNX, and what it is by default.
    """
    writes_as(name, onnx, **{theirs: mine for mine, (theirs, _) in attributes.items()})
    reads_as(onnx, name, **attributes)


def exports() -> dict[str, Export]:
    """How MXNet's operators are written, by name.

    >>> exports()["tanh"].to
    ('Tanh',)
    """
    _read_families()
    return _exports


def imports() -> dict[str, Import]:
    """How ONNX's operators are read, by name.

    >>> imports()["Tanh"].elementwise
    True
    """
    _read_families()
    return _imports


def _read_families() -> None:
    if _progress:
        return
    with first_use:
        package = load_module("gnomon.onnx.families")
        for module in pkgutil.iter_modules(package.__path__, "gnomon.onnx.families."):
            load_module(module.name)
        _progress.append("done")

"""`import mxnet` gets gnomon, from the moment that this module is imported.

>>> import gnomon.compat
>>> import mxnet as mx
>>> from mxnet.ndarray import NDArray
>>> isinstance(mx.nd.ones((2,)), NDArray), mx.__version__
(True, '1.9.1')

`mxnet` and its submodules are gnomon's own modules under another name. Paths that MXNet has and
gnomon arranges otherwise stand in `ELSEWHERE` of `compatibility/absent.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

import gnomon
from gnomon.compatibility.absent import ELSEWHERE, VERSION
from gnomon.ground.lock import load_module

NAME = "mxnet"

#: parts of Python's packages that MXNet itself imports, so that its users found them there
BROUGHT = {
    "multiprocessing": ("connection", "pool", "queues", "util"),
    "urllib": ("error", "parse", "request"),
}

#: classes of which libraries ask by the name of their module whether they are MXNet's; pickles of
#: their objects do not name them
TOLD = {"gnomon.ndarray": ("NDArray",)}


class _Top(ModuleType):
    """The module `mxnet`: gnomon's names, MXNet's version."""

    def __getattr__(self, name: str) -> Any:
        self.__dict__[name] = value = getattr(gnomon, name)
        return value

    def __dir__(self) -> list[str]:
        return dir(gnomon)


def _bring(package: str, parts: Sequence[str]) -> None:
    """Let parts of a package be imported by the first use of their names."""

    def part(name: str) -> Any:
        if name not in parts:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load_module(f"{package}.{name}")

    load_module(package).__dict__.setdefault("__getattr__", part)


class _Same:
    """Gives a module of gnomon, which stays what it is under the other name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        path = spec.name.removeprefix(NAME).lstrip(".")
        if not path:
            load_module("gnomon.compatibility.conversion").restore()
            top = _Top(NAME, gnomon.__doc__)
            top.__version__ = VERSION  # type: ignore[attr-defined]
            top.__path__ = list(gnomon.__path__)
            for package, parts in BROUGHT.items():
                _bring(package, parts)
            for name in gnomon._MODULES:
                if (loaded := sys.modules.get(f"gnomon.{name}")) is not None:
                    _show(loaded)
            return top
        module = load_module(f"gnomon.{ELSEWHERE.get(path, path)}")
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if not isinstance(module, _Top):
            module.__spec__ = self._spec


def _show(module: ModuleType) -> None:
    """Enter a module of gnomon in `sys.modules` under MXNet's name for it.

    `import mxnet` loads all of MXNet, so libraries look there before they ask whether something is
    MXNet's. Some ask the classes in it.
    """
    sys.modules.setdefault(_named(module.__name__), module)
    for name in TOLD.get(module.__name__, ()):
        kind = getattr(module, name)
        kind.__module__ = _named(kind.__module__)


def _named(path: str) -> str:
    """MXNet's name for a module of gnomon."""
    return NAME + path.removeprefix("gnomon")


class _ShownLoader(SourceFileLoader):
    """Loads a module of gnomon that MXNet has too."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if NAME in sys.modules:
            _show(module)


_SHOWN = {f"gnomon.{name}" for name in gnomon._MODULES}


def _shown(spec: ModuleSpec | None) -> ModuleSpec | None:
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _ShownLoader(spec.loader.name, spec.loader.path)
    return spec


class _Finder:
    """Answers for `mxnet` and what is below it, and has gnomon's own modules shown there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == NAME:
            return ModuleSpec(fullname, _Same(), is_package=True)
        if fullname in _SHOWN:
            return _shown(PathFinder.find_spec(fullname, path, target))
        if not fullname.startswith(f"{NAME}."):
            return None
        inner = fullname.removeprefix(f"{NAME}.")
        try:
            found = importlib.util.find_spec(f"gnomon.{ELSEWHERE.get(inner, inner)}")
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        return ModuleSpec(
            fullname, _Same(), is_package=found.submodule_search_locations is not None
        )


class _Lacking:
    """Asked last: tells of MXNet's modules that gnomon has not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, inner = fullname.partition(".")
        if top not in (NAME, gnomon.__name__) or not inner:
            return None
        missing = load_module("gnomon.compatibility.absent").lacking(inner)
        if missing is not None:
            # without its name: `from mxnet import np` passes over an error that has it
            raise ModuleNotFoundError(f"{NAME}.{inner}: {missing}")
        return None


def install() -> None:
    """Have `import mxnet` get gnomon; a MXNet that was imported before stays for who has it."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name in [n for n in sys.modules if n == NAME or n.startswith(f"{NAME}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Lacking())


install()

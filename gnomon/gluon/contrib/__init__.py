"""Layers, cells and loops beside the usual ones."""

from importlib import import_module as _import_module
from typing import Any

_MODULES = "cnn data estimator nn rnn".split()

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """The module `name`, imported on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'gnomon.gluon.contrib' has no attribute {name!r}")
    globals()[name] = module = _import_module(f"gnomon.gluon.contrib.{name}")
    return module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

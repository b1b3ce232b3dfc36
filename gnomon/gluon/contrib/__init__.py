"""Layers, cells and loops beside the usual ones."""

from typing import Any

from gnomon.compatibility.absent import elsewhere as _elsewhere
from gnomon.ground.lock import load_module as _load_module

_MODULES = "cnn data estimator nn rnn".split()

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """The module `name`, imported on first use."""
    if name not in _MODULES:
        return _elsewhere("gnomon.gluon.contrib", name, __all__)
    globals()[name] = module = _load_module(f"gnomon.gluon.contrib.{name}")
    return module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

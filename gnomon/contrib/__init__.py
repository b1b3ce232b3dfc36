"""Modules beside the core: mixed precision, texts, the first autograd, loggers, iterators.

>>> import gnomon as mx
>>> mx.contrib.text.vocab.Vocabulary().idx_to_token
['<unk>']
"""

from typing import Any

from gnomon.compatibility.absent import elsewhere as _elsewhere
from gnomon.ground.lock import load_module as _load_module

_MODULES = "amp autograd io ndarray onnx svrg_optimization symbol tensorboard text".split()

_SHORT = {"nd": "ndarray", "sym": "symbol"}

__all__ = sorted([*_MODULES, *_SHORT])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """The module `name`, imported on first use."""
    if name not in __all__:
        return _elsewhere("gnomon.contrib", name, __all__)
    module = _load_module(f"gnomon.contrib.{_SHORT.get(name, name)}")
    globals()[name] = module
    return module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

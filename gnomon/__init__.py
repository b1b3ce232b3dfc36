"""Lazy tensor expressions compiled to machine code, and a deep-learning system on top.

Every public name resolves when it is first used, so that `import gnomon.shadow` loads the
expression compiler alone and `import gnomon as mx` costs nothing for what is not touched.

>>> import gnomon as mx
>>> mx.cpu(0)
cpu(0)
"""

from gnomon.ground import importing as _importing  # noqa: F401  first of all: forks wait from here
from gnomon.ground.lock import load_module as _load_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_MODULES = """
attribute autograd base callback cli compat config context contrib dtype engine error executor
executor_manager gluon
image initializer io kvstore libinfo log lr_scheduler metric model module monitor name ndarray onnx
operator optimizer profiler random recordio registry resource rnn rtc runtime shadow shape symbol
test_utils util visualization
""".split()

_SHORT = {
    "img": "image",
    "init": "initializer",
    "kv": "kvstore",
    "mod": "module",
    "mon": "monitor",
    "nd": "ndarray",
    "rnd": "random",
    "sym": "symbol",
    "viz": "visualization",
}

_FROM = {
    "AttrScope": "attribute",
    "Context": "context",
    "GnomonError": "base",
    "MXNetError": "base",
    "cpu": "context",
    "cpu_pinned": "context",
    "cpu_shared": "context",
    "current_context": "context",
    "gpu": "context",
    "is_np_array": "util",
    "is_np_shape": "util",
    "np_array": "util",
    "np_shape": "util",
    "num_gpus": "context",
    "set_np_shape": "util",
    "use_np": "util",
    "use_np_array": "util",
    "use_np_shape": "util",
}

__all__ = sorted([*_MODULES, *_SHORT, *_FROM])  # noqa: PLE0605


def __getattr__(name: str) -> "Any":
    """The public name `name`, its module imported on first use."""
    if name in _FROM:
        thing = getattr(_load_module(f"gnomon.{_FROM[name]}"), name)
    elif name in _SHORT or name in _MODULES:
        thing = _load_module(f"gnomon.{_SHORT.get(name, name)}")
    else:
        thing = _load_module("gnomon.compatibility.absent").elsewhere("gnomon", name, __all__)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return list(__all__)

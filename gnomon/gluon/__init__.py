"""`mx.gluon`: networks as Python objects, computed at once or compiled as a whole.

>>> import gnomon as mx
>>> net = mx.gluon.nn.Dense(2)
>>> net.initialize()
>>> net(mx.nd.ones((3, 4))).shape, net.weight.shape
((3, 2), (2, 4))
"""

from typing import Any

from gnomon.compatibility.absent import elsewhere as _elsewhere
from gnomon.ground.lock import load_module as _load_module

_MODULES = "block contrib data loss model_zoo nn parameter rnn trainer utils".split()

_FROM = {
    "Block": "block",
    "Constant": "parameter",
    "DeferredInitializationError": "parameter",
    "HybridBlock": "block",
    "Parameter": "parameter",
    "ParameterDict": "parameter",
    "SymbolBlock": "block",
    "Trainer": "trainer",
    "tensor_types": "block",
}

__all__ = sorted([*_MODULES, *_FROM])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """The public name `name`, its module imported on first use."""
    if name not in _FROM and name not in _MODULES:
        return _elsewhere("gnomon.gluon", name, __all__)
    module = _load_module(f"gnomon.gluon.{_FROM.get(name, name)}")
    thing = getattr(module, name) if name in _FROM else module
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return list(__all__)

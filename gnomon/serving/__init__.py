"""Models over HTTP, in the manner of the v2 inference protocol; see docs/serving.md.

>>> import gnomon as mx
>>> from gnomon import serving
>>> net = mx.sym.relu(mx.sym.Variable("data"), name="relu")
>>> with serving.Server({"relu": serving.Model(net, {}, shapes={"data": (3,)})}) as server:
...     server.url.startswith("http://127.0.0.1:")
True
"""

from typing import TYPE_CHECKING, Any

from gnomon.compatibility.absent import elsewhere as _elsewhere
from gnomon.ground.lock import load_module as _load_module

if TYPE_CHECKING:
    from gnomon.serving.limits import Limits
    from gnomon.serving.model import Model, Options
    from gnomon.serving.server import Server

_FROM = {"Limits": "limits", "Model": "model", "Options": "model", "Server": "server"}

__all__ = ["Limits", "Model", "Options", "Server"]


def __getattr__(name: str) -> Any:
    """The public name `name`, its module imported on first use: a server's needs aiohttp."""
    if name not in _FROM:
        return _elsewhere("gnomon.serving", name, __all__)
    globals()[name] = thing = getattr(_load_module(f"gnomon.serving.{_FROM[name]}"), name)
    return thing

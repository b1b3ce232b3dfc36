"""Models over HTTP, in the manner of the v2 inference protocol; see docs/serving.md.

>>> import gnomon as mx
>>> from gnomon import serving
>>> net = mx.sym.relu(mx.sym.Variable("data"), name="relu")
>>> with serving.Server({"relu": serving.Model(net, {}, shapes={"data": (3,)})}) as server:
...     server.url.startswith("http://127.0.0.1:")
True
"""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving

if TYPE_CHECKING:
    from gnomon.serving.limits import Limits
    from gnomon.serving.model import Model, Options
    from gnomon.serving.server import Server

_FILES = {"limits": "Limits", "model": "Model Options", "server": "Server"}  # which needs aiohttp

__all__ = ["Limits", "Model", "Options", "Server"]

__getattr__, __dir__ = resolving(__name__, _FILES)

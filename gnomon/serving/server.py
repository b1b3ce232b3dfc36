"""`Server`: models over HTTP, on a thread of its own.

States: *made*, *starting* (it listens, and says that it is not ready), *ready*, *stopping* (it
listens no more; what is under way may end), *stopped* for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from gnomon.base import GnomonError, ParamError, complaint
from gnomon.serving.http import Door, Site, settle
from gnomon.serving.limits import Limits
from gnomon.serving.metrics import Metrics
from gnomon.serving.model import Model
from gnomon.serving.service import Done, Service


class Server:
    """Models by name, served at `url` while the server is entered.

    Args:
        models: what is served under each name.
        host, port: where; port 0 is any that is free.
        limits: fields of `Limits`.

    >>> import json, urllib.request
    >>> import gnomon as mx
    >>> net = mx.sym.square(mx.sym.Variable("x"), name="y")
    >>> with Server({"square": Model(net, {}, {"x": (2,)})}) as server:
    ...     tensor = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [3, 4]}
    ...     body = json.dumps({"inputs": [tensor]}).encode()
    ...     url = f"{server.url}/v2/models/square/infer"
    ...     json.load(urllib.request.urlopen(url, body))["outputs"][0]["data"]
    [9.0, 16.0]

    Raises:
        ParamError: no models, a name that no path can have, a limit out of range.
    """

    def __init__(
        self, models: Mapping[str, Model], host: str = "127.0.0.1", port: int = 0, **limits: Any
    ) -> None:
        if not models or not all(name and "/" not in name for name in models):
            expected = "models by names without '/'"
            raise ParamError(complaint("Server", "models", expected, list(models)))
        try:
            self.limits = Limits(**limits)
        except TypeError as error:
            raise ParamError(f"Server: {error}") from None
        self.host, self.port = host, port
        self.metrics = Metrics()
        self._services = {
            name: Service(name, model, self.metrics, self._deliver)
            for name, model in models.items()
        }
        self._thread = threading.Thread(target=self._run, name="serve", daemon=True)
        self._listens = threading.Event()
        self._failed: OSError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        """Where it is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen, and wait until every model is ready.

        Raises:
            GnomonError: a model fails to start, the address cannot be had, or it ran already.
        """
        if self._thread.ident is not None:
            raise GnomonError("Server.start: it was started before: make another one")
        self._thread.start()
        self._listens.wait()
        if self._failed is not None:
            raise GnomonError(f"Server: {self.url}: {self._failed}") from self._failed
        for service in self._services.values():
            service.start()
        try:
            for service in self._services.values():
                service.wait()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Listen no more, let what is under way end within `shutdown_s`, and end."""
        loop = self._loop
        if loop is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended already
            loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        for service in self._services.values():
            service.stop(1.0)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _deliver(self, done: list[Done]) -> None:
        """Give results to the loop; called by workers."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the server has stopped
            self._loop.call_soon_threadsafe(settle, done)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failed = error
        finally:
            self._listens.set()

    async def _serve(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        site = Site(self._services, self.metrics, self.limits)
        door = Door(site, self.metrics, self.limits)
        listener = await loop.create_server(door, self.host, self.port, backlog=1024)
        self.port = listener.sockets[0].getsockname()[1]
        self._loop, self._stop = loop, stop.set
        self._listens.set()
        await stop.wait()
        site.stopping = True
        await _close(listener)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(site.idle.wait(), self.limits.shutdown_s)
        await door.close(1.0)


async def _close(listener: asyncio.Server) -> None:
    """Accept no more connections.

    Those that were accepted in this turn of the loop are made in the next ones; asyncio fails to
    make them, and leaves their sockets open, once the listener is closed.
    """
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows
        for socket in listener.sockets:
            loop.remove_reader(socket.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
    listener.close()

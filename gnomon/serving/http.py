"""HTTP: which request is for what, its limits and times, and the replies.

aiohttp reads and writes the protocol; a connection is its object. Everything here runs on the
server's loop. Policy: what a request may not have is refused by its head, before its body is read;
each wait (for a head, a body, a result, a client that takes its reply) has a limit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from urllib.parse import unquote

from gnomon.base import GnomonError, ShapeError, nearest
from gnomon.ground.record import record
from gnomon.serving import protocol
from gnomon.serving.batching import FullError
from gnomon.serving.limits import Limits
from gnomon.serving.metrics import Metrics
from gnomon.serving.protocol import Refused
from gnomon.serving.service import Done, Service

try:
    from aiohttp import web
except ImportError as error:
    raise GnomonError("serving needs aiohttp: pip install 'gnomon[serve]'") from error

LOG = logging.getLogger(__name__)
JSON, BYTES = "application/json", "application/octet-stream"
_JOINED = 1 << 15  # bytes of a reply that is sent in one piece
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@record(frozen=False, slots=False)
class Answer:
    """A response: its status, the parts of its body, and headers."""

    status: int
    parts: list[Any]
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": JSON})
    close: bool = False


def of_json(value: object, status: int = 200) -> Answer:
    """An answer in JSON."""
    return Answer(status, [protocol.encoded(value)])


def of_error(status: int, text: str, close: bool = False) -> Answer:
    """An answer that says what is wrong."""
    found = of_json({"error": text}, status)
    found.close = close
    if status in (429, 503):
        found.headers["Retry-After"] = "1"
    return found


class Site:
    """What answers requests for `services`, models by name."""

    def __init__(self, services: Mapping[str, Service], metrics: Metrics, limits: Limits) -> None:
        self._services, self._metrics, self._limits = services, metrics, limits
        self.stopping = False
        self.idle = asyncio.Event()
        self.idle.set()
        self._active = self._held = 0

    @property
    def ready(self) -> bool:
        """Whether every model is."""
        return not self.stopping and all(s.ready for s in self._services.values())

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request whose head is there."""
        begin, path = time.perf_counter(), request.rel_url.raw_path
        target = [unquote(part) for part in path.strip("/").split("/")]
        self._active += 1
        self.idle.clear()
        try:
            answer = await self._answer(request, target)
            return await self._send(request, answer)
        finally:
            self._active -= 1
            if not self._active:
                self.idle.set()
            if self._model_of(target):
                spent = time.perf_counter() - begin
                self._metrics.latency.observe(spent, model=self._model_of(target))

    def _model_of(self, target: list[str]) -> str:
        """The model that a path names; none where it is unknown: clients make no labels."""
        name = target[2] if target[:2] == ["v2", "models"] and len(target) > 2 else ""
        return name if name in self._services else ""

    async def _answer(self, request: web.BaseRequest, target: list[str]) -> Answer:
        model, status = self._model_of(target), 499  # as where the client goes away meanwhile
        try:
            answer = await self._routed(request, target)
            status = answer.status
        except Refused as error:
            status = error.status
            answer = of_error(status, str(error), error.close)
        except Exception as error:
            LOG.exception("%s %s failed", request.method, request.path)
            status = 500
            answer = of_error(status, f"{type(error).__name__}: {error}")
        finally:
            self._metrics.requests.add(model=model, status=str(status))
        return answer

    async def _routed(self, request: web.BaseRequest, target: list[str]) -> Answer:
        """The answer to a request for a path."""
        if self.stopping:
            raise Refused(503, "the server is stopping", close=True)
        if target[:2] == ["v2", "models"] and len(target) > 2:
            return await self._of_model(request, target)
        found = {
            "v2": protocol.server_metadata,
            "v2/health/live": lambda: {"live": True},
            "v2/health/ready": lambda: {"ready": self.ready},
            "v2/models": lambda: {"models": list(self._services)},
            "metrics": self._metrics.text,
        }.get("/".join(target))
        if found is None:
            raise Refused(404, f"there is nothing at {request.path!r:.200}")
        _need(request, "GET")
        told: Any = found()
        if isinstance(told, str):
            return Answer(200, [told.encode()], {"Content-Type": TEXT})
        return of_json(told, 503 if told.get("ready") is False else 200)

    async def _of_model(self, request: web.BaseRequest, target: list[str]) -> Answer:
        """What a request for `/v2/models/NAME[/versions/VERSION][/ready|/infer]` gets."""
        name, rest = target[2], target[3:]
        service = self._services.get(name)
        if service is None:
            raise Refused(
                404, f"there is no model {name!r:.80}{nearest(name[:80], self._services)}"
            )
        if rest[:1] == ["versions"]:
            if rest[1:2] != [service.model.version]:
                only = f"model {name!r} has version {service.model.version!r} alone"
                raise Refused(404, f"{only}, got {''.join(rest[1:2])!r:.80}")
            rest = rest[2:]
        if rest == ["infer"]:
            _need(request, "POST")
            return await self._infer(request, service)
        if rest not in ([], ["ready"]):
            raise Refused(404, f"there is nothing at {request.path!r:.200}")
        _need(request, "GET")
        if rest:
            told = {"name": name, "ready": service.ready}
            return of_json(told, 200 if service.ready else 503)
        return of_json(service.metadata())

    # --- inference ----------------------------------------------------------------------

    async def _infer(self, request: web.BaseRequest, service: Service) -> Answer:
        length = self._length(request)
        if not service.ready:
            raise Refused(503, f"model {service.name!r} is not ready")
        if len(service.queue) >= service.model.options.queue_limit:  # before the body is read
            raise _full(service)
        self._held += length
        try:
            body = await self._body(request, length)
            self._metrics.received.add(length, model=service.name)
            reply = await self._computed(service, body, request.headers.get(protocol.LENGTH))
        finally:
            self._held -= length
        self._metrics.sent.add(reply.nbytes, model=service.name)
        headers = {"Content-Type": JSON}
        if reply.json_bytes is not None:
            headers = {"Content-Type": BYTES, protocol.LENGTH: str(reply.json_bytes)}
        return Answer(200, reply.parts, headers)

    def _length(self, request: web.BaseRequest) -> int:
        """The bytes of a body that is going to be read.

        Raises:
            Refused: the head announces something that is not read.
        """
        coding = request.headers.get("Content-Encoding", "identity")
        if coding.lower() != "identity":
            text = f"Content-Encoding: expected identity, got {coding!r:.40}"
            raise Refused(415, text, close=True)
        length = request.content_length
        if length is None:
            raise Refused(411, "expected a Content-Length", close=True)
        if length > self._limits.max_request_bytes:
            most = self._limits.max_request_bytes
            text = f"expected a body of at most {most} bytes, got {length}"
            raise Refused(413, text, close=True)
        if self._held + length > self._limits.max_held_bytes:
            raise Refused(503, "too many bytes of requests are under way", close=True)
        return length

    async def _body(self, request: web.BaseRequest, length: int) -> bytes:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # nothing of the response itself is sent
        content = request.content
        try:
            if content.is_eof():  # it is all here
                return await content.read()
            async with asyncio.timeout(self._limits.timeout_s):
                return await content.readexactly(length)
        except TimeoutError:
            text = f"the body did not come within {self._limits.timeout_s:g} s"
            raise Refused(408, text, close=True) from None
        except (asyncio.IncompleteReadError, web.RequestPayloadError) as error:
            raise Refused(400, f"the body ended early: {error}", close=True) from None

    async def _computed(self, service: Service, body: bytes, header: str | None) -> protocol.Reply:
        """The reply to the request in `body`, by a worker."""
        model = service.model
        asked = protocol.read(service.name, body, header, model.inputs, model.outputs)
        loop = asyncio.get_running_loop()
        job = service.job(asked.inputs, loop.create_future())
        try:
            service.queue.put(job)
        except FullError:
            raise _full(service) from None
        text = f"{service.name}: no result within {self._limits.timeout_s:g} s"
        late: list[Done] = [(job, None, Refused(504, text))]
        limit = loop.call_later(self._limits.timeout_s, settle, late)
        try:
            values = await job.answer
        except ShapeError as error:  # of sizes that the model leaves to requests
            raise Refused(400, f"{service.name}: {error}") from None
        except (Refused, asyncio.CancelledError):  # late, or the client has gone
            service.queue.discard(job)
            raise
        finally:
            limit.cancel()
        return protocol.reply(service.name, model.version, asked, values)

    # --- sending ------------------------------------------------------------------------

    async def _send(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        size = sum(len(part) for part in answer.parts)
        transport = request.transport
        waits = transport is not None and transport.get_write_buffer_size() > 0
        if size <= _JOINED and not waits:  # the system takes it at once
            return _response(answer, b"".join(answer.parts))
        response = _response(answer)
        response.content_length = size
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await response.prepare(request)
                for part in answer.parts if request.method != "HEAD" else ():
                    await response.write(part)
                await request.writer.drain()  # also of replies before: they may be many
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response


def _response(answer: Answer, body: bytes | None = None) -> web.StreamResponse:
    """aiohttp's form of an answer; without `body` its parts are still to be written."""
    headers = {**answer.headers, "Server": "gnomon"}
    if body is None:
        response = web.StreamResponse(status=answer.status, headers=headers)
    else:
        response = web.Response(status=answer.status, headers=headers, body=body)
    if answer.close:
        response.force_close()
    return response


def _need(request: web.BaseRequest, method: str) -> None:
    """Raises Refused where a request has another method; HEAD is as GET."""
    if request.method != method and (method, request.method) != ("GET", "HEAD"):
        raise Refused(405, f"expected {method}, got {request.method:.20}", close=True)


def _full(service: Service) -> Refused:
    limit = service.model.options.queue_limit
    return Refused(429, f"{service.name}: {limit} requests wait already", close=True)


def settle(done: list[Done]) -> None:
    """Tell those that wait for jobs their results."""
    for job, values, failure in done:
        if job.answer.done():  # nothing waits any more
            continue
        if failure is None:
            job.answer.set_result(values)
        else:
            job.answer.set_exception(failure)


# --- connections ----------------------------------------------------------------------------


class Door:
    """What makes a connection for each that comes, as many as may be open."""

    def __init__(self, site: Site, metrics: Metrics, limits: Limits) -> None:
        self.metrics, self._limits = metrics, limits
        self.transports: set[asyncio.Transport] = set()
        self._server = web.Server(site.handle, handler_cancellation=True)
        metrics.connections.watch(self.transports.__len__)

    def __call__(self) -> asyncio.Protocol:
        if len(self.transports) >= self._limits.max_connections:
            return Busy()
        return Connection(self._server, self, self._limits.idle_s)

    async def close(self, seconds: float) -> None:
        """End the connections that are open; what is under way may take so long."""
        self._server.pre_shutdown()
        await self._server.shutdown(seconds)
        for transport in self.transports:
            transport.abort()
        while self.transports:
            await asyncio.sleep(0)


class Connection(web.RequestHandler):
    """A connection; what is no HTTP is answered as other errors are, and counted."""

    __slots__ = ("_door", "_own")

    def __init__(self, manager: web.Server, door: Door, idle_s: float) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=idle_s,
            access_log=None,  # type: ignore[arg-type]
            lingering_time=1.0,
            read_bufsize=1 << 20,
            auto_decompress=False,
        )
        self._door = door

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and be counted."""
        assert isinstance(transport, asyncio.Transport)
        self._own = transport
        self._door.transports.add(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._door.transports.discard(self._own)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a head that cannot be read."""
        self._door.metrics.requests.add(model="", status=str(status))
        answer = of_error(status, f"no HTTP that is understood: {message!r:.200}", close=True)
        return _response(answer, b"".join(answer.parts))


class Busy(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say so, and close."""
        assert isinstance(transport, asyncio.Transport)
        body = protocol.encoded({"error": "too many connections are open"})
        head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {JSON}\r\nRetry-After: 1\r\n"
        head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        transport.write(head.encode() + body)
        transport.close()

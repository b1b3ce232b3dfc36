"""How the processes of a job find one another when it starts.

Rank 0 listens at a TCP port, and tells the other ranks where by one MPI message each. A rank
connects to the first of rank 0's addresses that answers, and says who it is and what all ranks must
have in common. When all have come, rank 0 tells each who they are, or what differs.

A connection is watched from its first moment. So the start of MPI and that one message are all that
a lost link can delay without a heartbeat to tell; both end at `dist_timeout_seconds`.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.launch.addresses import addresses

CONNECT_SECONDS = 5.0  # for one address of rank 0 to answer, and for a greeting to come
GRACE_SECONDS = 2.0  # in which rank 0 tells the cause of a failure before others do
BUFFER_BYTES = 1 << 20  # of a connection: the list of all ranks is sent at once


class Peer(NamedTuple):
    """A process of the job, as messages name it."""

    rank: int
    host: str
    process: int

    def __str__(self) -> str:
        return f"rank {self.rank} (host {self.host}, process {self.process})"


class Line:
    """A connection: what came of a line that is not complete, and when anything came last."""

    def __init__(self, peer: Peer, link: socket.socket) -> None:
        self.peer, self.link = peer, link
        self.text = b""
        self.last = time.monotonic()
        self.open, self.farewell = True, False
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)

    def send(self, **message: Any) -> None:
        """Send a message, or nothing where the other side is gone."""
        with contextlib.suppress(OSError):
            self.link.send(json.dumps(message).encode() + b"\n", socket.MSG_NOSIGNAL)

    def lines(self) -> list[dict[str, Any]]:
        """The messages that have come; beats are empty lines."""
        try:
            data = self.link.recv(1 << 16)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.open = bool(data)
        self.last = time.monotonic()
        *whole, self.text = (self.text + data).split(b"\n")
        return [json.loads(line) for line in whole if line]


def joined(talk: Any, watch: Any, common: Mapping[str, Any], limit: float) -> list[Peer]:
    """All processes of the job, by rank; each has a connection to rank 0, which `watch` has.

    Args:
        talk: an MPI communicator of all ranks.
        watch: this process's `Watch`.
        common: what ranks must agree on, as JSON knows it.
        limit: the seconds to wait for others; 0 is for ever.

    Raises:
        GnomonError: ranks disagree, or rank 0 did not come or could not be reached.
    """
    if talk.size == 1:
        return [watch.me]
    end = time.monotonic() + (limit or float("inf"))
    if talk.rank == 0:
        return _gathered(talk, watch, common, end)
    call = _received(talk, end + GRACE_SECONDS)
    watch.add(_connected(Peer(*call["peer"]), watch.me, common, call))
    watch.welcomed.wait(None if not limit else max(0.0, end - time.monotonic()) + GRACE_SECONDS)
    if not watch.welcomed.is_set():
        raise GnomonError(f"kvstore.create: rank 0 did not say within {limit:g} s who takes part")
    if watch.refusal is not None:
        watch.leave()
        raise GnomonError(watch.refusal)
    found: list[Peer] = watch.peers
    return found


def _gathered(talk: Any, watch: Any, common: Mapping[str, Any], end: float) -> list[Peer]:
    """What rank 0 does: call all others, and tell each who they are when they have come."""
    with socket.create_server(("", 0), backlog=talk.size) as server:
        token = secrets.token_hex(16)
        port = server.getsockname()[1]
        known = list(addresses().values())
        call = {"peer": watch.me, "addresses": known, "port": port, "token": token}
        calls = [talk.isend(call, rank) for rank in range(1, talk.size)]
        came = {0: (watch.me, common)}
        server.settimeout(0.02)
        while len(came) < talk.size:
            for each in calls:
                each.test()  # MPI sends while it is looked after
            found = _greeted(server, token)
            if found is not None:
                line, table = found
                came[line.peer.rank] = line.peer, table
                watch.add(line)
            elif time.monotonic() > end:
                missing = [str(rank) for rank in range(talk.size) if rank not in came]
                watch.fail(f"rank {', '.join(missing)} did not come to kvstore.create in time")
        for each in calls:
            each.wait()
    peers, tables = zip(*(came[rank] for rank in range(talk.size)), strict=True)
    refusal = _disagreement(peers, tables)
    watch.welcome(list(peers), refusal)
    if refusal is not None:
        watch.leave()
        raise GnomonError(refusal)
    return list(peers)


def _greeted(server: socket.socket, token: str) -> tuple[Line, Any] | None:
    """The next connection with its greeting; None where none came, or it is not of this job."""
    try:
        link, _ = server.accept()
    except TimeoutError:
        return None
    link.settimeout(CONNECT_SECONDS)
    with contextlib.suppress(OSError, ValueError, KeyError), link.makefile("rb") as stream:
        said = json.loads(stream.readline(1 << 16))
        if secrets.compare_digest(said["token"], token):
            link.send(b"\n")
            return Line(Peer(*said["peer"]), link), said["common"]
    return None


def _received(talk: Any, end: float) -> Any:
    """Rank 0's call."""
    request = talk.irecv(source=0)
    while time.monotonic() < end:
        done, call = request.test()
        if done:
            return call
        time.sleep(1e-3)
    raise GnomonError(
        "kvstore.create: rank 0 did not come in time, or MPI cannot reach its host; "
        "setting dist_timeout_seconds says how long ranks wait"
    )


def _connected(to: Peer, me: Peer, common: Mapping[str, Any], call: Mapping[str, Any]) -> Line:
    """A connection to rank 0 by the first of its addresses that answers."""
    greeting = json.dumps({"token": call["token"], "peer": me, "common": common}).encode()
    for address in ["127.0.0.1"] * (me.host == to.host) + call["addresses"]:
        try:
            link = socket.create_connection((address, call["port"]), timeout=CONNECT_SECONDS)
            link.sendall(greeting + b"\n")
            if link.recv(1) == b"\n":
                return Line(to, link)
        except OSError:
            continue
    raise GnomonError(
        f"kvstore.create: {me} cannot connect to {to} by TCP at port {call['port']} of any of its "
        f"addresses {call['addresses']}"
    )


def _disagreement(peers: Sequence[Peer], tables: Sequence[Mapping[str, Any]]) -> str | None:
    """What the first rank with another version or other settings has; None where all agree."""
    for name, value in tables[0].items():
        for peer, table in zip(peers, tables, strict=True):
            if table.get(name) != value:
                return (
                    f"kvstore.create: ranks disagree on {name}: {peer} has {table.get(name)!r}, "
                    f"{peers[0]} has {value!r}"
                )
    return None

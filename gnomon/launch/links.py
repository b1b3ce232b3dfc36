"""The links between `gnomon launch` and its ranks, watched from the first moment.

A link ends with its rank, and a rank with its link: MPICH's mpiexec waits for ever when its proxy
on a host has died, and its ranks go on when it is killed with `gnomon launch`. Here the launcher
knows when all ranks have ended, and ranks know when the launcher has.

Until MPI has started and ranks have met, no rank can tell one that comes late from one whose host
is out of reach: MPI waits for both alike. So each rank's `rank.py` holds a connection to the
launcher, along which nothing is said: the kernels at both ends ask one another for an answer. Where
none comes for the limit, the link or the host is gone, and both ends know: the launcher ends the
job, and the rank, which it cannot reach, ends itself, as does one that cannot connect. A process
that is only stopped is answered for by its kernel.

A rank also says, by a connection of its own, when it comes to `kvstore.create`, and when it has
waited there too long: the launcher tells who has not come.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from gnomon import config
from gnomon.launch.addresses import addresses
from gnomon.launch.rank import LINKS, kept_alive

HERE = "127.0.0.1"
GREETING_SECONDS = 5.0
START_SECONDS = 15  # for the next rank to connect; MPI's launchers start them at the same time
LATER_SECONDS = 3  # than ranks that have met: they know more of what happened


class Links:
    """Connections of ranks to this launcher; `far` where ranks may be on other hosts.

    Attributes:
        ended: when the last rank ended; in seconds of `time.monotonic`, infinite until then.
    """

    def __init__(self, ranks: int, far: bool) -> None:
        self._missing, self._latest = set(map(str, range(ranks))), float("inf")
        self._absent = set(self._missing)  # those that have not come to kvstore.create
        self._left, self.ended = ranks, float("inf")
        self._far = far
        self._limit = int(config.get("dist_heartbeat_seconds")) + LATER_SECONDS
        self._token = secrets.token_hex(16)
        self._server = socket.create_server(("" if far else HERE, 0), backlog=128)
        self._poll = select.poll()
        self._poll.register(self._server, select.POLLIN)
        self._known: dict[int, tuple[socket.socket, str]] = {}
        self._names: dict[str, str] = {}

    def watch(self, lost: Callable[[str], None]) -> None:
        """Let ranks connect; `lost` is called with what to say of one that is out of reach."""
        work = threading.Thread(target=self._run, args=(lost,), name="gnomon links", daemon=True)
        work.start()

    def environment(self) -> dict[str, str]:
        """What tells ranks where to connect."""
        where = {
            "addresses": list(addresses().values()) if self._far else [HERE],
            "port": self._server.getsockname()[1],
            "token": self._token,
            "limit": self._limit,
        }
        return {LINKS: json.dumps(where)}

    def _run(self, lost: Callable[[str], None]) -> None:
        while True:
            for number, _ in self._poll.poll(1000):
                here = number == self._server.fileno()
                text = self._accept() if here else self._ended(number)
                if text is not None:
                    lost(text)
            late = self._far and time.monotonic() > self._latest + START_SECONDS
            if self._missing and late:
                names = ", ".join(sorted(self._missing, key=int))
                lost(
                    f"rank {names} did not connect to the launcher, {START_SECONDS} s after others"
                )

    def _accept(self) -> str | None:
        """Take a rank's connection or its message; what to say of one that waits in vain."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            link, _ = self._server.accept()
            link.settimeout(GREETING_SECONDS)
            with link.makefile("rb") as stream:
                said = json.loads(stream.readline(1 << 12))
            ours = secrets.compare_digest(said["token"], self._token)
            if ours and "host" in said:
                self._connected(link, said)
                return None
            link.close()
            return self._came(said) if ours else None
        return None

    def _connected(self, link: socket.socket, said: dict[str, Any]) -> None:
        kept_alive(link, self._limit)
        self._names[said["rank"]] = who = f"rank {said['rank']} (host {said['host']})"
        self._known[link.fileno()] = link, who
        self._poll.register(link, select.POLLIN)
        self._missing -= {said["rank"]} if said["rank"].isdigit() else self._missing
        self._latest = time.monotonic()

    def _came(self, said: dict[str, Any]) -> str | None:
        """Note a rank that came to `kvstore.create`; whom it waits for, if it waited too long."""
        self._absent.discard(said["rank"])
        if not (self._absent and "waited" in said):
            return None
        whose = ", ".join(sorted(self._names.get(r, f"rank {r}") for r in self._absent))
        return f"{whose} did not come to kvstore.create within {said['waited']:g} s"

    def _ended(self, number: int) -> str | None:
        """What to say of a connection that has ended: None where only its process did."""
        link, who = self._known.pop(number)
        self._poll.unregister(link)
        self._left -= 1
        if not self._left:
            self.ended = time.monotonic()
        with link:
            try:
                link.recv(1)
            except ConnectionResetError:
                return None
            except OSError as error:
                return f"{who} cannot be reached for {self._limit} s ({error.strerror})"
        return None

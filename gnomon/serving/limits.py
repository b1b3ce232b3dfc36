"""`Limits`: what a server takes on, and how long it waits."""

from __future__ import annotations

from dataclasses import fields

from gnomon.base import ParamError, complaint
from gnomon.ground.record import record


@record(slots=False)
class Limits:
    """What a server takes on.

    Args:
        max_request_bytes: of a body.
        max_held_bytes: of all bodies that are read or computed; more are refused with status 503.
        max_connections: that are open; a further one is told status 503.
        timeout_s: seconds for reading a body, for its result, and for sending the reply, each.
        idle_s: seconds that a connection may wait for the head of a request to be there.
        shutdown_s: seconds in which what is under way may end when the server stops.
    """

    max_request_bytes: int = 64 << 20
    max_held_bytes: int = 1 << 30
    max_connections: int = 1024
    timeout_s: float = 30.0
    idle_s: float = 60.0
    shutdown_s: float = 10.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if type(value) not in (int, float) or not 0 < value < 1e15:
                raise ParamError(complaint("serving", option.name, "a number above 0", repr(value)))

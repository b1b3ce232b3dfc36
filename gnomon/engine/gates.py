"""Gates: locks behind which threads sleep until others open them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _thread import LockType


def shut_gate() -> LockType:
    """A lock that is taken: a thread that acquires it sleeps until another releases it."""
    try:
        gate = threading.Lock()
    except RuntimeError as error:  # as Python calls it
        raise MemoryError("for a lock") from error
    gate.acquire()
    return gate


def open_gates(gates: list[LockType]) -> None:
    """Wake all who sleep behind gates; no harm in doing it twice, where an interrupt came."""
    while gates:
        if gates[-1].locked():
            gates[-1].release()
        del gates[-1]

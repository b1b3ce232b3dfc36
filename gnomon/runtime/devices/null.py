"""A device without memory that only records what is asked of it, for tests and dry runs."""

from __future__ import annotations

_FIRST = 1 << 40  # no address of it may be touched; the alignment is that of real blocks


class Null:
    """Hands out addresses that must not be read, and notes every call in `calls`."""

    name = "null"
    host = runs = False

    def __init__(self) -> None:
        self.calls: list[tuple[str | int, ...]] = []
        self._next = _FIRST

    def allocate(self, nbytes: int) -> int:
        """An address that no other block of this device has."""
        address = self._next
        self._next += -(-max(nbytes, 1) // 64) * 64
        self.calls.append(("allocate", nbytes))
        return address

    def release(self, address: int, nbytes: int) -> None:
        """Notes the release."""
        self.calls.append(("release", address, nbytes))

    def clear(self, address: int, nbytes: int, is_new: bool) -> None:
        """Notes it; no byte changes."""
        self.calls.append(("clear", address, nbytes))

    def copy(self, dest: int, source: int, nbytes: int) -> None:
        """Notes the copy; no byte moves."""
        self.calls.append(("copy", dest, source, nbytes))

    def synchronise(self) -> None:
        """Notes the wait."""
        self.calls.append(("synchronise",))

    def queue(self) -> None:
        """There is none."""


DEVICE = Null()

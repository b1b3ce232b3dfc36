"""Names for symbols that were given none: `fullyconnected0`, `fullyconnected1`, ...

State: each thread has a stack of managers entered by `with`; the current one is its top. A thread
starts with a manager of its own, so automatic names do not depend on what other threads do.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, ClassVar


class _Managers(threading.local):
    """The managers this thread has entered, the current one last."""

    def __init__(self) -> None:
        self.stack: list[NameManager] = [NameManager()]


class _Current:
    """`NameManager.current`: the manager that names this thread's symbols."""

    def __get__(self, instance: object, owner: type) -> NameManager:
        return NameManager._managers.stack[-1]


class NameManager:
    """Counts the uses of each hint, so that every symbol without a name gets one of its own.

    >>> with NameManager():
    ...     NameManager.current.get(None, "relu"), NameManager.current.get("mine", "relu")
    ('relu0', 'mine')
    """

    _managers: ClassVar[Any]
    current: ClassVar[Any] = _Current()

    def __init__(self) -> None:
        self._counter: Counter[str] = Counter()

    def get(self, name: str | None, hint: str) -> str:
        """`name` where one was given, else `hint` and the number of its uses so far."""
        if name:
            return name
        number = self._counter[hint]
        self._counter[hint] += 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        self._managers.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._managers.stack.pop()


class Prefix(NameManager):
    """A manager that puts `prefix` before every name, given ones included.

    >>> with Prefix("net_"):
    ...     NameManager.current.get(None, "relu"), NameManager.current.get("out", "relu")
    ('net_relu0', 'net_out')
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """The prefix and what a plain manager says."""
        return self._prefix + super().get(name, hint)


NameManager._managers = _Managers()

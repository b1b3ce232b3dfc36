"""Operators by name. The file of an operator is imported when its name is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import unknown_operator
from gnomon.ground.folder_registry import FolderRegistry

if TYPE_CHECKING:
    from gnomon.ops.op import Op

_operators: FolderRegistry[type[Op]] = FolderRegistry("operator", "gnomon.ops")


def register(cls: type[Op]) -> None:
    """Enter `cls` under its name and its aliases; GnomonError when a name is taken."""
    _operators.register(cls.name, cls, cls.aliases)


def find(name: str) -> type[Op]:
    """The operator called `name` (its own name or an alias).

    >>> find("concat").name
    'Concat'
    """
    if not has(name):
        raise unknown_operator(name, names())
    return _operators[name]


def names() -> list[str]:
    """Every name and alias, sorted."""
    return sorted(_operators)


def has(name: str) -> bool:
    """Whether an operator is called `name`."""
    return name in _operators

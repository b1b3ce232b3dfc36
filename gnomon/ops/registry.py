"""Operators by name: every file of this folder is looked through at the first question.

States: nothing read; being read, by the one thread that holds `first_use`; every family imported,
for the rest of the process. An import that fails goes back to nothing read, and is done again at
the next question: what it had registered is replaced then. An operator that a user registers later
is found like the built-in ones.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from gnomon import registry as _generic
from gnomon.compatibility.absent import unknown_operator
from gnomon.ground.lock import first_use, load_module

if TYPE_CHECKING:
    from gnomon.ops.op import Op

_operators: _generic.Registry[type[Op]] = _generic.Registry("operator")
_progress: list[str] = []
_failed: list[bool] = []  # whether the reading before did


def register(cls: type[Op]) -> None:
    """Enter `cls` under its name and its aliases; GnomonError when a name is taken."""
    again = bool(_failed and _progress)
    _operators.register(cls.name, cls, cls.aliases, replace=again)


def find(name: str) -> type[Op]:
    """The operator called `name` (its own name or an alias).

    >>> find("concat").name
    'Concat'
    """
    _read_families()
    if name not in _operators:
        raise unknown_operator(name, names())
    return _operators.get(name)


def names() -> list[str]:
    """Every name and alias, sorted."""
    _read_families()
    known = [_operators.get(name) for name in _operators.names()]
    return sorted(n for cls in known for n in (cls.name, *cls.aliases))


def has(name: str) -> bool:
    """Whether an operator is called `name`."""
    _read_families()
    return name in _operators


def _read_families() -> None:
    if len(_progress) == 2:
        return
    with first_use:  # a family that asks while it is being read gets what there is
        if _progress:
            return
        _progress.append("begun")
        try:
            _import_families()
            _progress.append("done")
            _failed.clear()
        except BaseException:
            _failed[:] = [True]
            _progress.clear()
            raise


def _import_families() -> None:
    package = load_module("gnomon.ops")
    for module in pkgutil.walk_packages(package.__path__, "gnomon.ops."):
        if not module.name.endswith(".testing"):
            load_module(module.name)

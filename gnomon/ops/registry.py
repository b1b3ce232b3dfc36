"""Operators by name. The file of an operator is imported when its name is first asked for.

`gnomon/data/operators.txt` tells which file that is. It is written by `tests/generated.py` and only
saves time: a name that it lacks, or that its file does not register, has every file of this folder
looked through, and so has the question for all names.

States: being read, by the one thread that holds `first_use`, or not; every file imported, for the
rest of the process. After an import that failed, what it had registered is replaced by the next
reading. An operator that a user registers later is found like the built-in ones.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gnomon import registry as _generic
from gnomon.compatibility.absent import unknown_operator
from gnomon.ground.lock import first_use, load_module
from gnomon.ground.tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gnomon.ops.op import Op

_FOLDER = "gnomon.ops."
_operators: _generic.Registry[type[Op]] = _generic.Registry("operator")
_begun: list[bool] = []  # whether files are being read
_failed: list[bool] = []  # whether an import failed, until every file has been read
_complete: list[bool] = []  # whether every file has been


def register(cls: type[Op]) -> None:
    """Enter `cls` under its name and its aliases; GnomonError when a name is taken."""
    own = cls.__module__.removeprefix(_FOLDER)
    for name in (cls.name, *cls.aliases):
        if _files().get(name, own) != own:
            has(name)  # another's, which may not have been imported yet
    _operators.register(cls.name, cls, cls.aliases, replace=bool(_failed and _begun))


def find(name: str) -> type[Op]:
    """The operator called `name` (its own name or an alias).

    >>> find("concat").name
    'Concat'
    """
    if not has(name):
        raise unknown_operator(name, names())
    return _operators.get(name)


def names() -> list[str]:
    """Every name and alias, sorted."""
    _read(_import_all)
    known = [_operators.get(name) for name in _operators.names()]
    return sorted(n for cls in known for n in (cls.name, *cls.aliases))


def has(name: str) -> bool:
    """Whether an operator is called `name`."""
    if name not in _operators and name in _files() and not _failed:
        _read(_import_file, _files()[name])
    if name not in _operators or _failed:
        _read(_import_all)
    return name in _operators


def _read(work: Callable[..., None], *arguments: str) -> None:
    """Import files; one that asks for operators meanwhile finds those that are registered."""
    if _complete:
        return
    with first_use:
        if _begun:
            return
        _begun.append(True)
        try:
            work(*arguments)
        except BaseException:
            _failed[:] = [True]
            raise
        finally:
            _begun.clear()


def _import_file(file: str) -> None:
    if find_spec(f"{_FOLDER}{file}"):
        load_module(f"{_FOLDER}{file}")


def _import_all() -> None:
    package = load_module("gnomon.ops")
    for module in pkgutil.walk_packages(package.__path__, _FOLDER):
        if not module.name.endswith(".testing"):
            load_module(module.name)
    _complete.append(True)
    _failed.clear()


@functools.cache
def _files() -> dict[str, str]:
    """The file of each operator, by all of its names."""
    return {name: file for file, names in table("operators.txt").items() for name in names}

"""Registries of what the files of a folder declare. A file is imported when a name asks for it.

`gnomon/data/declared.txt` tells which file that is. It is written by `tests/generated.py` and only
saves time: a name that it lacks, or that its file does not register, has every file of the folder
looked through, and so has the question for all names.

States: being read, by the one thread that holds `first_use`, or not; every file imported, for the
rest of the process. After an import that failed, what it had registered is replaced by the next
reading. What a user registers later is found like what is built in.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any, TypeVar

from gnomon.compatibility.absent import Find, Names, elsewhere, offering
from gnomon.ground.lock import first_use, load_module
from gnomon.ground.tables import table
from gnomon.registry import Registry

T = TypeVar("T", bound=type)
FOLDERS: list[FolderRegistry[Any]] = []  # those of the folders that were imported


class FolderRegistry(Registry[T]):
    """Classes of one `kind`, which the files of a `folder` of gnomon's declare."""

    def __init__(self, kind: str, folder: str, *, ignore_case: bool = False) -> None:
        super().__init__(kind, ignore_case=ignore_case)
        self.folder = folder
        self._own: dict[str, T] = {}  # the classes of its files by their names in Python
        self._begun: list[bool] = []  # whether files are being read
        self._failed: list[bool] = []  # whether an import failed, until every file has been read
        self._complete: list[bool] = []  # whether every file has been
        FOLDERS.append(self)

    def register(
        self, name: str, thing: T, aliases: tuple[str, ...] = (), *, replace: bool = False
    ) -> T:
        if thing.__module__.startswith(f"{self.folder}."):
            self._own[thing.__name__] = thing
        return super().register(name, thing, aliases, replace=replace)

    def other(self, name: str, thing: T) -> T | None:
        if self._failed and self._begun:
            return None  # what the reading that failed has left is no other
        if self._file(name) not in ("", thing.__module__):
            self._look_for(name)  # its file may not have been imported yet
        return super().other(name, thing)

    def own(self, name: str) -> T | None:
        """The class of the folder's files that Python calls so."""
        if name not in self._own or self._failed:
            self._look_for(name)
        return self._own.get(name)

    def own_names(self) -> list[str]:
        """What Python calls the classes of the folder's files."""
        self._look_for(None)
        return list(self._own)

    def _file(self, name: str) -> str:
        """The module that declares what is called so; "" where none is known."""
        return _files().get((self.folder, self._fold(name)), "")

    def _look_for(self, name: str | None) -> None:
        if name is None:
            self._read(self._import_all)
            return
        known = self._fold(name)
        if known not in self._things and not self._failed and (file := self._file(name)):
            self._read(_import_file, file)
        if known not in self._things or self._failed:
            self._read(self._import_all)

    def _read(self, work: Callable[..., None], *arguments: str) -> None:
        """Import files; one that asks for others meanwhile finds those that are registered."""
        if self._complete:
            return
        with first_use:
            if self._begun:
                return
            self._begun.append(True)
            try:
                work(*arguments)
            except BaseException:
                self._failed[:] = [True]
                raise
            finally:
                self._begun.clear()

    def _import_all(self) -> None:
        package = load_module(self.folder)
        for module in pkgutil.walk_packages(package.__path__, f"{self.folder}."):
            if not module.name.endswith(".testing"):
                load_module(module.name)
        self._complete.append(True)
        self._failed.clear()


def _import_file(file: str) -> None:
    if find_spec(file):
        load_module(file)


@functools.cache
def _files() -> dict[tuple[str, str], str]:
    """The file of each name, by folder and name."""
    found = {}
    for place, names in table("declared.txt").items():
        folder, _, file = place.partition("/")
        found.update({(f"gnomon.{folder}", name): f"gnomon.{folder}.{file}" for name in names})
    return found


def public(registry: FolderRegistry[Any], own: Iterable[str]) -> tuple[Find, Names]:
    """`__getattr__` and `__dir__` of such a folder.

    A class of its files is public under its name in Python, beside the folder's `own` names.
    """

    def find(name: str) -> Any:
        found = registry.own(name)
        if found is not None:
            return found
        if find_spec(f"{registry.folder}.{name}"):
            return load_module(f"{registry.folder}.{name}")
        return elsewhere(registry.folder, name, (*own, *registry.own_names()))

    return offering(registry.folder, find, lambda: sorted({*own, *registry.own_names()}))

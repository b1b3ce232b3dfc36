"""Namespaces of functions that the registry gives: `mx.nd`, `mx.sym.contrib` and their like.

A package says once how a function of an operator is made; each of its modules takes its attributes
from there, and a function comes to be when it is first asked for.

    __getattr__, __dir__ = attributes("contrib")
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from gnomon.compatibility.absent import Find, Names, elsewhere, offering, public
from gnomon.ground.lock import load_module
from gnomon.ops import registry
from gnomon.ops.signature import namespaced

SPACES = ("_internal", "contrib", "image", "linalg", "op", "random", "sparse")


class Functions:
    """The functions of a package; `make(registered, name, module)` gives one."""

    def __init__(self, package: str, make: Callable[[str, str, str], Any]) -> None:
        self._package = package
        self._make = make
        self.find = functools.cache(self._find)

    def _find(self, space: str, name: str) -> Any:
        """The function called `name` in a namespace of the package ('' is the top).

        Raises:
            AttributeError: no operator has this name there.
        """
        where = f"{self._package}.{space}".rstrip(".")
        if name.startswith("__"):
            elsewhere(where, name, ())
        for full in full_names(space, name):
            if registry.has(full):
                made = self._make(full, name, where)
                if where in sys.modules:  # which has it from now on
                    vars(sys.modules[where]).setdefault(name, made)
                return made
        return elsewhere(where, name, names_of(space))

    def attributes(self, space: str, own: Iterable[str] = ()) -> tuple[Find, Names]:
        """`__getattr__` and `__dir__` of a namespace's module, whose own names are `own`."""
        return offering(
            f"{self._package}.{space}",
            functools.partial(self.find, space),
            lambda: sorted({*own, *names_of(space)}),
        )

    def top(self) -> tuple[Find, Names]:
        """The same for the package itself, which has what it imports and the other namespaces."""

        def find(name: str) -> Any:
            if name in SPACES:
                return load_module(f"{self._package}.{name}")
            return self.find("", name)

        package = self._package
        return offering(package, find, lambda: sorted({*public(package, SPACES), *names_of("")}))


def full_names(space: str, name: str) -> tuple[str, ...]:
    """What an operator that is `name` in `space` may be registered as."""
    if space in ("", "_internal", "op"):
        return (name,)
    further = {"sparse": (name,), "random": (f"_sample_{name}", f"_{name}")}
    return (f"_{space}_{name}", *further.get(space, ()))


def names_of(space: str) -> list[str]:
    """The names that registered operators have in `space`."""
    at = "" if space == "op" else space
    return [
        short for full in registry.names() for there, short in (namespaced(full),) if there == at
    ]

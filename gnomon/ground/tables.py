"""Tables by name: of files that the package carries, and of functions that decorators enter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

DATA = Path(__file__).parents[1] / "data"


def table(file: str) -> dict[str, list[str]]:
    """The names of each key, of a file of `gnomon/data/` with a key and its names in each line.

    >>> "use_np" in table("mxnet-names.txt")[""]
    True
    """
    rows = (line.partition(":") for line in (DATA / file).read_text(encoding="utf-8").splitlines())
    return {key: names.split() for key, _, names in rows}


def entering(functions: dict[str, T]) -> Callable[..., Callable[[T], T]]:
    """A decorator that enters functions there, under the names that it is given."""

    def under(*names: str) -> Callable[[T], T]:
        def enter(function: T) -> T:
            functions.update(dict.fromkeys(names, function))
            return function

        return enter

    return under

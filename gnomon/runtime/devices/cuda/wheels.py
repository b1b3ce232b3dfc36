"""NVIDIA's libraries where they are found: in NVIDIA's wheels, or where the system looks."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator, Mapping
from ctypes import c_int
from pathlib import Path
from typing import Any


def files(names: tuple[str, ...], wheels: tuple[str, ...]) -> Iterator[str]:
    """What may be the file of a library of NVIDIA's: in wheels, then where the system looks."""
    for wheel in wheels:
        try:
            spec = importlib.util.find_spec(wheel)
        except ModuleNotFoundError:  # there is no wheel of NVIDIA's at all
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for name in names:
                yield from map(str, Path(folder).glob(f"lib/{name}"))
    yield from names


def opened(
    names: tuple[str, ...], wheels: tuple[str, ...], calls: Mapping[str, tuple[Any, ...]]
) -> ctypes.CDLL | None:
    """A library with the arguments of its calls declared; None where none has them all.

    All calls give a status.
    """
    for file in files(names, wheels):
        try:
            found = ctypes.CDLL(file)
        except OSError:
            continue
        for name, arguments in calls.items():
            function = getattr(found, name, None)
            if function is None:  # it is too old, or too new
                return None
            function.argtypes, function.restype = arguments, c_int
        return found
    return None

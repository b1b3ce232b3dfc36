"""Operators whose names begin with an underscore: `mx.nd._internal`."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray import functions


def __getattr__(name: str) -> Any:
    return functions.find("_internal", name)


def __dir__() -> list[str]:
    return functions.names("_internal")

"""Operators that know sparse storage: `mx.nd.sparse`."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray import functions


def __getattr__(name: str) -> Any:
    return functions.find("sparse", name)


def __dir__() -> list[str]:
    return functions.names("sparse")

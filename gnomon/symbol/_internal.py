"""Operators whose names begin with an underscore: `mx.sym._internal`."""

from __future__ import annotations

from typing import Any

from gnomon.symbol import functions


def __getattr__(name: str) -> Any:
    return functions.find("_internal", name)


def __dir__() -> list[str]:
    return functions.names("_internal")

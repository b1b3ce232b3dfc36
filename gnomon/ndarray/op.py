"""Every operator under its registered name: `mx.nd.op`."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray import functions


def __getattr__(name: str) -> Any:
    return functions.find("op", name)


def __dir__() -> list[str]:
    return functions.names("")

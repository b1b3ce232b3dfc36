"""Operators on images: `mx.nd.image`."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray import functions


def __getattr__(name: str) -> Any:
    return functions.find("image", name)


def __dir__() -> list[str]:
    return functions.names("image")

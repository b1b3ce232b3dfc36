"""Errors of blocks: which block, what it was called with, and only the program's own frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.base import DTypeError, EngineError, GnomonError, ShapeError
from gnomon.frames import shorten
from gnomon.ndarray import NDArray


def tell(error: GnomonError | NotImplementedError, block: Any, args: Sequence[Any]) -> None:
    """Have an error that `block` raised name it, and its arrays where shapes or types are wrong.

    Of blocks within each other the innermost is named.
    """
    shorten(error)
    if isinstance(error, (EngineError, NotImplementedError)) or hasattr(error, "block"):
        return
    error.block = block.name  # type: ignore[attr-defined]
    text = str(error)
    if f"{block.name!r}" not in text:
        error.args = (f"{type(block).__name__} {block.name!r}: {text}", *error.args[1:])
    if isinstance(error, (ShapeError, DTypeError)):
        error.add_note(_outline(block, args))


def _outline(block: Any, args: Sequence[Any]) -> str:
    """A line with the inputs and the block's own parameters."""
    inputs = f"inputs of {block.name!r}: {', '.join(map(_shown, args))}"
    params = [f"{p.name} {p.shape}" for p in block._reg_params.values()]
    return f"{inputs}; parameters: {', '.join(params)}" if params else inputs


def _shown(x: Any) -> str:
    """An input in short."""
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_shown, x))}]"
    return f"{x.shape} {x._dtype.name}" if isinstance(x, NDArray) else f"{x!r:.40}"

"""Mistakes with blocks: which block, what it was called with, and the program's own frames."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from gnomon.base import DTypeError, EngineError, GnomonError, ShapeError, shown
from gnomon.ground.frames import shorten
from gnomon.ndarray import NDArray


def not_begun(block: Any, name: str) -> AttributeError:
    """The error of a block whose own constructor has not called that of its base."""
    kind = type(block).__name__
    return AttributeError(f"{kind}.{name}: call super().__init__() in {kind}.__init__ first")


class NotBegun:
    """An attribute that the constructor of blocks sets: until then, asking for it is that error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, block: Any, owner: type) -> Any:
        if block is None:
            return self
        raise not_begun(block, self._name)


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


def explain(error: TypeError, block: Any, args: Sequence[Any]) -> None:
    """Where `hybrid_forward` does not take what it is called with, note what that is."""
    names = list(block._reg_params)
    try:
        inspect.signature(block.hybrid_forward).bind(None, *args, **dict.fromkeys(names))
    except TypeError:
        params = f" and the block's parameters by name: {', '.join(names)}" if names else ""
        error.add_note(
            f"hybrid_forward of {type(block).__name__} {block.name!r} is called with F, as many "
            f"inputs as the block ({len(args)}){params}"
        )


def warn_of_containers(block: Any) -> None:
    """Warn of blocks in lists, tuples and dicts: they are no parts of `block`."""
    known = set(map(id, block._children.values()))
    for name, value in block.__dict__.items():
        if isinstance(value, (list, tuple, dict)) and any(id(x) not in known for x in _in(value)):
            what = f"{type(block).__name__} {block.name!r}: blocks in the container {name!r}"
            warnings.warn(
                f"{what} are not registered: their parameters are not collected, saved or trained. "
                "Call register_child for each, or use Sequential",
                stacklevel=4,
            )


def _in(value: Any) -> Iterator[Any]:
    """The blocks in nested containers."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _in(each)
    elif isinstance(value, dict):
        yield from _in(list(value.values()))
    elif hasattr(value, "collect_params") and hasattr(value, "_children"):
        yield value


def _outline(block: Any, args: Sequence[Any]) -> str:
    """A line with the inputs and the block's own parameters."""
    inputs = f"inputs of {block.name!r}: {', '.join(map(_shown, args))}"
    params = [f"{p.name} {p.shape}" for p in block._reg_params.values()]
    return f"{inputs}; parameters: {', '.join(params)}" if params else inputs


def _shown(x: Any) -> str:
    """An input in short."""
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_shown, x))}]"
    return f"{x.shape} {x._dtype.name}" if isinstance(x, NDArray) else shown(x)

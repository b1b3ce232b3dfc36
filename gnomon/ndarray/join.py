"""The usual statement by one native call: where its code finds what it reads; see `join_code`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon import config
from gnomon.engine import Var
from gnomon.engine.strike_code import VARIABLE
from gnomon.native.method import Method, bound, native_code
from gnomon.ndarray.chunk import Chunk
from gnomon.ndarray.core import Array
from gnomon.ndarray.join_code import JOIN
from gnomon.ndarray.settle import native_wait
from gnomon.ndarray.trace import Rule, Stage
from gnomon.ndarray.window import HELD, Own, Window
from gnomon.runtime import jit
from gnomon.runtime.fields import offset, readable, type_offset
from gnomon.runtime.native import Block
from gnomon.runtime.once import once

#: `join(own, array, other)` or `join(own, array)`: the pending result, or None
Join = Callable[..., Any]

_SLOTS: dict[type, tuple[str, ...]] = {
    Array: ("_address", "_chunk", "_index", "_layout", "_tape", "_window"),
    Chunk: ("ctx", "nbytes", "promised", "shared"),
    Own: ("large", "settings", "windows"),
    Rule: ("shape",),
    Stage: ("after", "full", "index", "layout"),
    Window: (
        "addresses", "busy", "closed", "ctx", "eager", "held", "numbers", "places", "read",
        "results", "stage",
    ),
}  # fmt: skip
_COUNT = "count"


@once
def _method() -> tuple[jit.Module, Method]:
    numbers = {name: offset(Var, name) for name in VARIABLE}
    for kind, slots in _SLOTS.items():
        numbers.update((f"{kind.__name__}.{slot}", offset(kind, slot)) for slot in slots)
    numbers.update(type=type_offset(), HELD=HELD)
    code = native_code(JOIN, numbers, {})
    return code, Method("join", code.address("join"))


def joining(pairs: dict[Any, Any], singles: dict[Any, Any] | None) -> Join:
    """The native `join` by rules of two arrays, and of one or one and a number if there are any."""
    if not readable():
        return lambda *operands: None
    native_wait()
    words = [id(Array.main), id(pairs), 0 if singles is None else id(singles)]
    record = Block([*words, id(float), id(int), id(config.changes), id(_COUNT)])
    _kept.append((record, pairs, singles))
    made: Join = bound(_method()[1], record.address)
    return made


_kept: list[Any] = []  # what native code refers to: a few for each of Python's operators

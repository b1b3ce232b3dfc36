"""Operators applied again by one native call: where its code finds what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.ndarray import result
from gnomon.ndarray.again_code import REPEAT
from gnomon.ndarray.core import Array
from gnomon.ndarray.layout import Layout
from gnomon.ndarray.recipe import Recipe
from gnomon.runtime.fields import readable
from gnomon.runtime.launch import Method, bound, for_good, native_code
from gnomon.runtime.once import once

#: of a kernel: its strike's record, the results' layouts, further integers, and who owns the record
Entry = tuple[int, list[Layout], list[int], Recipe]
#: `repeat(known, arrays, out, ctx)`: the results, or None with nothing done; see `again_code`
Repeat = Callable[[dict[Any, Entry], tuple[Any, ...], Any, Any], Any]

_SLOTS: dict[type, tuple[str, ...]] = {
    Array: ("_address", "_chunk", "_layout", "_tape", "_window"),
}
_MEMORY, _ONE = "_chunk", 1


@once
def repeating() -> Repeat:
    """The native `repeat`; one that refuses everything where there is no native code."""
    if not readable():
        return lambda known, arrays, out, ctx: None
    record = result.record(Array.main, _MEMORY, _ONE)
    code = native_code(REPEAT, result.numbers(_SLOTS), {"record": record.address})
    method = Method("repeat", code.address("repeat"))
    for_good((code, method))
    made: Repeat = bound(method, None)
    return made

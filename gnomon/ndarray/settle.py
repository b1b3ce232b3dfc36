"""The usual wait by one native call: where its code finds what it reads; see `settle_code`."""

from __future__ import annotations

from gnomon.ndarray import result
from gnomon.ndarray.core import Array
from gnomon.ndarray.recipe import Recipe
from gnomon.ndarray.settle_code import WAIT
from gnomon.ndarray.trace import EMPTY, Stage
from gnomon.ndarray.window import Own, Window
from gnomon.runtime.fields import readable
from gnomon.runtime.launch import Method, for_good, method_of, native_code
from gnomon.runtime.once import once

_SLOTS: dict[type, tuple[str, ...]] = {
    Array: ("_address", "_chunk", "_window"),
    Own: ("eager", "ident"),
    Recipe: ("address",),
    Stage: ("layout", "single", "sole"),
    Window: (
        "addresses", "busy", "closed", "ctx", "eager", "held", "homes", "numbers", "own", "places",
        "read", "results", "stage",
    ),
}  # fmt: skip
_NUMBERS = (0, 1)
_DOC = """wait_to_read($self, /)
--

Sleep until every write pushed so far is done.

Raises:
    EngineError: a function that the elements depend on failed."""


@once
def native_wait() -> None:
    """From now on arrays are waited for by native code, where there may be such."""
    if not readable():
        return
    record = result.record(Window, Array.wait_to_read, EMPTY, *_NUMBERS)
    code = native_code(WAIT, result.numbers(_SLOTS), {"record": record.address})
    method = Method("wait_to_read", code.address("wait"), _DOC, none=True)
    for_good((code, method))
    Array.wait_to_read = method_of(Array, method)  # type: ignore[method-assign]

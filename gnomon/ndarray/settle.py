"""The usual wait by one native call: where its code finds what it reads; see `settle_code`."""

from __future__ import annotations

from gnomon.context import Context
from gnomon.engine.bookkeeping import Books
from gnomon.engine.current import PROCESS, Process
from gnomon.engine.strike_code import VARIABLE
from gnomon.engine.var import Var
from gnomon.ndarray import chunk
from gnomon.ndarray.core import Array
from gnomon.ndarray.layout import Layout
from gnomon.ndarray.recipe import Recipe
from gnomon.ndarray.settle_code import WAIT
from gnomon.ndarray.trace import EMPTY, Stage
from gnomon.ndarray.window import Own, Window
from gnomon.runtime.fields import offset, readable, type_offset
from gnomon.runtime.launch import Method, for_good, method_of, native_code
from gnomon.runtime.native import Block
from gnomon.runtime.once import once
from gnomon.runtime.pool import SMALL

_SLOTS: dict[type, tuple[str, ...]] = {
    Array: ("_address", "_chunk", "_window"),
    Context: ("device_typeid",),
    Layout: ("nbytes",),
    Own: ("eager", "ident"),
    Process: ("engine",),
    Recipe: ("address",),
    Stage: ("layout", "single", "sole"),
    Books: ("_briefly", "_bulk", "_late", "_observer"),
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
    numbers = chunk.offsets() | {name: offset(Var, name) for name in VARIABLE}
    for kind, slots in _SLOTS.items():
        numbers.update((f"{kind.__name__}.{slot}", offset(kind, slot)) for slot in slots)
    numbers.update(type=type_offset(), GPU=chunk.GPU, SMALL=SMALL)
    known = [Window, Array.wait_to_read, PROCESS, EMPTY, *_NUMBERS, chunk.cpu_shelves()]
    record = Block([*map(id, known), chunk.record().address, id(chunk.allocate)])
    code = native_code(WAIT, numbers, {"record": record.address})
    method = Method("wait_to_read", code.address("wait"), _DOC, none=True)
    for_good((known, record, code, method))
    Array.wait_to_read = method_of(Array, method)  # type: ignore[method-assign]

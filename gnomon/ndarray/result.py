"""What native code that makes results finds where; see `result_code.py`."""

from __future__ import annotations

from collections.abc import Mapping

from gnomon.context import Context
from gnomon.engine.bookkeeping import Books
from gnomon.engine.current import PROCESS, Process
from gnomon.engine.strike_code import VARIABLE
from gnomon.engine.var import Var
from gnomon.ndarray import chunk
from gnomon.ndarray.layout import Layout
from gnomon.runtime.fields import offset, type_offset
from gnomon.runtime.launch import for_good
from gnomon.runtime.native import Block
from gnomon.runtime.pool import SMALL

_SLOTS: dict[type, tuple[str, ...]] = {
    Books: ("_briefly", "_bulk", "_late", "_observer"),
    Context: ("device_typeid",),
    Layout: ("nbytes",),
    Process: ("engine",),
}


def numbers(slots: Mapping[type, tuple[str, ...]]) -> dict[str, int]:
    """What stands for the names in such code, which reads `slots`, too."""
    found = chunk.offsets() | {name: offset(Var, name) for name in VARIABLE}
    for kind, names in (*_SLOTS.items(), *slots.items()):
        found.update((f"{kind.__name__}.{name}", offset(kind, name)) for name in names)
    return found | {"type": type_offset(), "GPU": chunk.GPU, "SMALL": SMALL}


def record(*things: object) -> Block:
    """A record for such code, with further objects behind its first words; it is never freed."""
    shelves = chunk.cpu_shelves()
    first = [id(PROCESS), id(shelves), chunk.record().address, id(chunk.allocate)]
    made = Block([*first, *map(id, things)])
    for_good((shelves, things))
    return for_good(made)

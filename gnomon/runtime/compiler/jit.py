"""Machine code from LLVM IR text or from object files, safe from any thread.

States of a `Module`: *loaded* from the moment `compile_ir` or `load_object` returns it, *closed*
after `close()` or when it is collected. Its addresses are valid while it is loaded, so the code
that holds an address holds the module. Nothing is unloaded while the interpreter shuts down:
threads may still be running the code.

What was compiled now and what comes from disk are loaded alike, by `elf` and `memory`: LLVM writes
object files and links none. Loading takes no lock: what a thread loads is its own until it is done.

Measured on 2 cores (`python benchmarks/runtime.py jit`): optimising and emitting a small kernel
takes 5 to 10 ms, loading its object file 0.05 ms; a module holds its code in pages of its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Mapping

from gnomon.base import GnomonError
from gnomon.runtime.compiler import guard
from gnomon.runtime.compiler.elf import MACHINES, Machine, Object
from gnomon.runtime.compiler.guard import llvm
from gnomon.runtime.compiler.host import baseline
from gnomon.runtime.compiler.memory import Region
from gnomon.runtime.ffi import symbol

_ROOM_EACH = 128  # bytes that LLVM may want for each of a text
BRANCHES = 4  # the pipeline for code that is all calls and branches; see `llvm`
STRAIGHT = 5  # the one for vector loops that go straight through memory


class Module:
    """Machine code in memory: holds the addresses of its functions alive.

    Made by `compile_ir` and `load_object`.
    """

    __slots__ = ("_addresses", "_region")

    def __init__(self, region: Region, addresses: dict[str, int]) -> None:
        self._addresses = addresses
        self._region: Region | None = region

    @property
    def names(self) -> tuple[str, ...]:
        """The functions and variables that `address` knows."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """The address of the function or variable `name`; GnomonError for an unknown name."""
        if self._region is None:
            raise GnomonError(f"Module.address: argument 'name': {name!r} of a closed module")
        try:
            return self._addresses[name]
        except KeyError:
            raise GnomonError(
                f"Module.address: argument 'name': expected one of {list(self._addresses)}, "
                f"got {name!r}"
            ) from None

    def close(self) -> None:
        """Unloads the code; its addresses must not be called any more. Twice is fine."""
        region, self._region = self._region, None
        if region is not None:
            region.free()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_region") and not ending():  # or an interrupt came before it was there
            self.close()


def compile_ir(
    text: str,
    *,
    opt: int = 2,
    verify: bool = True,
    symbols: Mapping[str, int] | None = None,
) -> Module:
    """Machine code for machines of this level from LLVM IR: `load_object` of its `object_code`.

    >>> m = compile_ir("define i32 @two() { ret i32 2 }")
    >>> m.names
    ('two',)

    Raises:
        GnomonError: the text does not parse or verify, or calls a function that no library has.
    """
    return load_object(object_code(text, opt=opt, verify=verify), symbols=symbols)


def object_code(text: str, *, opt: int = 2, verify: bool = True) -> bytes:
    """The object file of LLVM IR, which any process on a machine of this one's level can load.

    `opt` is the pipeline: 0 none, 1 light, 2 LLVM's usual, 3 its most, `BRANCHES` and `STRAIGHT`
    what their names say; -1 is none and a code generator in haste, whose code takes a third longer.

    Raises:
        GnomonError: the text does not parse or verify.
        MemoryError: there is too little memory to compile with.
    """
    guard.need_room(guard.ROOM + _ROOM_EACH * len(text))
    emit, here = llvm.object_code, baseline()
    return guard.undisturbed(lambda: emit(text, opt, verify, here))


def ir(text: str, *, opt: int = 2) -> str:
    """The LLVM IR that a text becomes before code is generated."""
    show, here = llvm.ir, baseline()
    return guard.undisturbed(lambda: show(text, opt, here))


def assembly(text: str, *, opt: int = 2) -> str:
    """The assembly of a text for machines of this level."""
    show, here = llvm.assembly, baseline()
    return guard.undisturbed(lambda: show(text, opt, here))


def load_object(code: bytes, *, symbols: Mapping[str, int] | None = None) -> Module:
    """Machine code from an object file, without compiling.

    `symbols` gives the addresses of functions and variables that the file only declares; what it
    does not name is searched in the process (libc, libm).

    Raises:
        GnomonError: `code` is no object file for this host, or asks for what no library has.
        MemoryError: there is no room for it.
    """
    file, known = Object(code, _machine()), symbols or {}
    region = Region(file.size)
    module = Module(region, {name: region.address + at for name, at in file.exports.items()})
    linked = file.linked(region.address, lambda n: known[n] if n in known else _of_process(n))
    region.fill(linked)
    return module


def _of_process(name: str) -> int:
    found = symbol(_process(), name)
    if not found:
        raise GnomonError(f"load_object: argument 'code': no library has {name!r}")
    return found


@functools.cache
def _machine() -> Machine:
    name = os.uname().machine
    if name not in MACHINES:
        raise GnomonError(f"load_object: a machine of {sorted(MACHINES)} is expected, not {name!r}")
    return MACHINES[name]


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)

"""Machine code from LLVM IR text: one process-wide just-in-time linker, safe from any thread.

States of a `Module`: *linked* from the moment `compile_ir` or `load_object` returns it, *closed*
after `close()` or when it is collected. Its addresses are valid while it is linked, so the code
that holds an address holds the module. All work with LLVM happens under one lock, which is also
taken around a fork, so that a child never inherits it in another thread's hands. Nothing is
unloaded while the interpreter shuts down: threads may still be running the code.

Measured on 2 cores (`python benchmarks/runtime.py jit`): optimising and emitting a small kernel
takes 5 to 10 ms, linking emitted code 0.15 ms; a linked module holds about 40 KB.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import threading
import weakref
import zlib
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import llvmlite.binding as llvm

from gnomon.base import GnomonError
from gnomon.lock import Reentrant, around_forks, give_back, reentrant, renew
from gnomon.record import record
from gnomon.runtime.once import once

T = TypeVar("T")
_ROOM, _ROOM_EACH = 64 << 20, 128  # bytes that LLVM may want: at all, and for each of a text
_LOOK = 0.5  # seconds between two looks whether a thread is still there
_lock = reentrant()
_serial = itertools.count()
BRANCHES = 4  # a pipeline for code that is all calls and branches; see `_branches`


@record()
class HostInfo:
    """What the machine that runs this process is, in LLVM's words."""

    triple: str
    cpu: str
    features: frozenset[str]
    vector_bytes: int

    @property
    def feature_string(self) -> str:
        """The features as LLVM's target machine takes them: "+avx2,+fma"."""
        return ",".join(f"+{name}" for name in sorted(self.features))


@functools.cache
def host() -> HostInfo:
    """The machine that runs this process.

    >>> host().vector_bytes in (16, 32, 64)
    True
    """
    with _lock:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        table = llvm.get_host_cpu_features()
        features = frozenset(name for name, on in table.items() if on)
        return HostInfo(
            llvm.get_process_triple(), llvm.get_host_cpu_name(), features, _widest(features)
        )


def _widest(features: frozenset[str]) -> int:
    if "avx512f" in features:
        return 64
    return 32 if "avx2" in features else 16


class Module:
    """Linked machine code: holds the addresses of its functions alive.

    Made by `compile_ir` and `load_object`.
    """

    __slots__ = ("_addresses", "_opt", "_source", "_tracker", "code")

    def __init__(
        self, tracker: Any, addresses: dict[str, int], code: bytes, source: bytes, opt: int
    ) -> None:
        self._tracker = tracker
        self._addresses = addresses
        self._source = source
        self._opt = opt
        self.code = code

    @property
    def names(self) -> tuple[str, ...]:
        """The functions and variables that `address` knows."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """The address of the function or variable `name`; GnomonError for an unknown name."""
        if self._tracker is None:
            raise GnomonError(f"Module.address: argument 'name': {name!r} of a closed module")
        try:
            return self._addresses[name]
        except KeyError:
            raise GnomonError(
                f"Module.address: argument 'name': expected one of {list(self._addresses)}, "
                f"got {name!r}"
            ) from None

    def ir(self) -> str:
        """The optimised LLVM IR as text (derived anew from the source at each call)."""
        with _lock:
            return str(optimised(self._text(), self._opt, _machine(self._opt < 0)))

    def asm(self) -> str:
        """The assembly of the module as text (derived anew from the source at each call)."""
        with _lock:
            machine = _machine(self._opt < 0)
            module = optimised(self._text(), self._opt, machine)
            with _without_lsr():
                return str(machine.emit_assembly(module))

    def close(self) -> None:
        """Unloads the code; its addresses must not be called any more. Twice is fine."""
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            with _lock:
                tracker.close()

    def _text(self) -> str:
        if not self._source:
            raise GnomonError("Module.ir: this module was loaded from an object without its text")
        return zlib.decompress(self._source).decode()


def compile_ir(
    text: str,
    *,
    opt: int = 2,
    verify: bool = True,
    symbols: Mapping[str, int] | None = None,
) -> Module:
    """Machine code for this host from LLVM IR.

    `opt` is the pipeline: 0 none, 1 light (see `_light`), 2 LLVM's usual, 3 its most, `BRANCHES`
    what its name says; -1 is none
    and a code generator in haste, whose code takes a third longer. `symbols` gives the addresses of
    functions that the text only declares; what it does not name is searched in the process (libc,
    libm). `.code` of the result is the object file, which `load_object` links again, in this or in
    another process on an equal host.

    >>> m = compile_ir("define i32 @two() { ret i32 2 }")
    >>> m.names
    ('two',)

    Raises:
        GnomonError: the text does not parse or verify, or calls a function that no library has.
    """

    def make() -> Module:
        need_room(_ROOM + _ROOM_EACH * len(text))
        machine = _machine(opt < 0)
        module = optimised(text, opt, machine, verify)
        _check_declared(module, symbols or {})
        names = _defined(module)
        with _without_lsr():
            code: bytes = machine.emit_object(module)
        return _link(code, names, symbols or {}, _packed(text), opt)

    return undisturbed(make)


def load_object(
    code: bytes,
    names: Sequence[str],
    *,
    symbols: Mapping[str, int] | None = None,
    text: str = "",
    opt: int = 2,
) -> Module:
    """Machine code from the `.code` of an earlier module, without compiling.

    `names` are the functions whose addresses are wanted (`.names` of that module); `text` and
    `opt`, what it was compiled from, serve `.ir()` and `.asm()` only.

    Raises:
        GnomonError: `code` is not an object file for this host, or lacks a name.
    """

    return undisturbed(lambda: _link(code, names, symbols or {}, _packed(text), opt))


def _await(gate: threading.Lock, lives: Callable[[], object]) -> None:
    """Wait for a thread, or for its end: one that finds no memory to begin with says no word."""
    while not gate.acquire(timeout=_LOOK) and lives() is not None:
        pass


def undisturbed(make: Callable[[], T]) -> T:
    """What `make` gives, made under the lock on a thread that runs no signal handlers.

    An exception of a handler (Ctrl-C) between two of llvmlite's calls would leave it with memory
    that is freed twice. It ends the wait here instead; work that has begun goes on.
    """
    need_room(_ROOM)
    gate = threading.Lock()
    made: list[T] = []
    wanted = True
    errors: list[BaseException] = []

    def work(life: object = None) -> None:
        try:
            with _lock:
                if wanted:
                    made.append(make())
        except BaseException as error:
            errors.append(error)
        finally:
            gate.release()

    gate.acquire()
    life: set[object] = set()  # held by the thread alone, and gone when that is
    lives = weakref.ref(life)
    on_main = threading.current_thread() is threading.main_thread()
    if on_main and not _lock._is_owned():
        try:
            start_new_thread(work, (life,))
        except RuntimeError:  # no thread is to be had, as when the interpreter ends
            work()
    else:
        work()
    del life
    try:
        _await(gate, lives)
    except BaseException:
        wanted = False
        raise
    if errors:
        raise errors.pop()
    if not made:
        raise MemoryError("jit: no memory is left to compile with")
    return made.pop()


def need_room(nbytes: int) -> None:
    """MemoryError unless the process may take `nbytes` more: libraries that find none end it.

    >>> need_room(1 << 20)
    """
    try:
        mmap.mmap(-1, nbytes).close()
    except OSError:
        raise MemoryError(f"jit: {nbytes >> 20} MiB of memory are needed to compile") from None


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 1) if text else b""


def optimised(text: str, opt: int, machine: Any, verify: bool = True) -> Any:
    """LLVM's module of a text, after the pipeline `opt` for a target machine; within the lock.

    Raises:
        GnomonError: the text does not parse or verify.
    """
    try:
        module = llvm.parse_assembly(text)
        if verify:
            module.verify()
    except RuntimeError as error:
        raise GnomonError(f"compile_ir: argument 'text': not valid LLVM IR: {error}") from None
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if opt > 0:
        options = llvm.create_pipeline_tuning_options(min(opt, 3))
        # what is worth vectors is written with them; LLVM 22 makes wrong code of some loops that
        # it makes vectors of by itself: seed 4462 of tests/shadow/test_compositions.py
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        usual = builder.getModulePassManager
        passes = _branches() if opt == BRANCHES else usual() if opt > 1 else _light()
        passes.run(module, builder)
    return module


def _light() -> Any:
    """What code that is vectorised and hoisted already needs: a quarter of the usual time.

    Stack places become registers (sroa), what they hid is simplified, loops test at their end
    (rotate) and short ones are unrolled.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_loop_rotate_pass()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


def _branches() -> Any:
    """What code of calls and branches needs: the functions that ask for it inlined, ways joined.

    Two thirds of the usual pipeline's time, and the same code.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_jump_threading_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    return passes


@contextmanager
def _without_lsr() -> Iterator[None]:
    """Inside, within the lock, code is generated without LLVM's loop strength reduction.

    Loops come with the induction variables they need; the search for others takes a third of code
    generation and makes no kernel faster. The option holds for the whole process, so it is set for
    these moments alone.
    """
    llvm.set_option("gnomon", "--disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("gnomon", "--disable-lsr=false")


def _defined(module: Any) -> list[str]:
    things = itertools.chain(module.functions, module.global_variables)
    hidden = ("internal", "private")
    return [t.name for t in things if not t.is_declaration and t.linkage.name not in hidden]


def _check_declared(module: Any, symbols: Mapping[str, int]) -> None:
    """LLVM's own message does not say which function it lacks."""
    declared = [f.name for f in module.functions if f.is_declaration]
    for name in declared:
        known = name.startswith("llvm.") or name in symbols
        if not known and not hasattr(_process(), name):
            raise GnomonError(f"compile_ir: argument 'text': no library has function {name!r}")


def _link(
    code: bytes, names: Sequence[str], symbols: Mapping[str, int], source: bytes, opt: int
) -> Module:
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in symbols.items():
        library.import_symbol(name, address)
    for name in names:
        library.export_symbol(name)
    try:
        tracker = library.link(_linker(), f"gnomon.{next(_serial)}")
    except RuntimeError as error:
        raise GnomonError(f"jit: cannot link {list(names)}: {error}") from None
    return Module(tracker, {name: tracker[name] for name in names}, code, source, opt)


@functools.cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@functools.cache
def _machine(hasty: bool) -> Any:
    here = host()
    target = llvm.Target.from_triple(here.triple)
    return target.create_target_machine(
        cpu=here.cpu,
        features=here.feature_string,
        opt=0 if hasty else 2,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


@once
def _linker() -> Any:
    return llvm.create_lljit_compiler(_machine(False), use_jit_link=True, suppress_errors=True)


# llvmlite's own lock is taken around each of its calls
_LOCKS: tuple[Reentrant, Reentrant] = _lock, llvm.ffi.lib._lock._lock


def _hold_before_fork() -> None:
    for lock in _LOCKS:
        lock.acquire()


def _release_after_fork() -> None:
    for lock in reversed(_LOCKS):
        give_back(lock)


def _renew_in_child() -> None:
    for lock in reversed(_LOCKS):
        renew(lock)


around_forks(_hold_before_fork, _release_after_fork, _renew_in_child)

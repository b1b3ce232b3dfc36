"""The way to LLVM: its import, the lock under which it works, and the thread that it works on.

`lock` is held over forks, so that a child never inherits it in another thread's hands. It is asked
for last: who holds it asks for no other lock but llvmlite's own, which joins it here once there.
"""

from __future__ import annotations

import mmap
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gnomon.base import GnomonError, Later
from gnomon.ground.lock import Reentrant, around_forks, give_back, reentrant, renew

T = TypeVar("T")
ROOM = 64 << 20  # bytes that LLVM may want
_LIBRARY = 256 << 20  # bytes of addresses that it takes when it is loaded
_LOOK = 0.5  # seconds between two looks whether a thread is still there
lock = reentrant()
LOCKS: list[Reentrant] = [lock]  # in the order in which they are taken


class _Library(Later):
    """The module `llvm`, imported where there is room for its library."""

    def __getattr__(self, name: str) -> Any:
        need_room(_LIBRARY)
        try:
            return super().__getattr__(name)
        except OSError as error:
            raise GnomonError(
                f"llvmlite, which compiles kernels, cannot be loaded: {error}"
            ) from None


if TYPE_CHECKING:
    from gnomon.runtime.compiler import llvm as llvm  # noqa: PLC0414  given on
else:
    llvm = _Library("gnomon.runtime.compiler.llvm")


def _await(gate: threading.Lock, lives: Callable[[], object]) -> None:
    """Wait for a thread, or for its end: one that finds no memory to begin with says no word."""
    while not gate.acquire(timeout=_LOOK) and lives() is not None:
        pass


def undisturbed(make: Callable[[], T]) -> T:
    """What `make` gives, made under the lock on a thread that runs no signal handlers.

    An exception of a handler (Ctrl-C) between two of llvmlite's calls would leave it with memory
    that is freed twice. It ends the wait here instead; work that has begun goes on.
    """
    need_room(ROOM)
    gate = threading.Lock()
    made: list[T] = []
    wanted = True
    errors: list[BaseException] = []

    def work(life: object = None) -> None:
        try:
            with lock:
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
    if on_main and not lock._is_owned():
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


def _hold_before_fork() -> None:
    for each in LOCKS:
        each.acquire()


def _release_after_fork() -> None:
    for each in reversed(LOCKS):
        give_back(each)


def _renew_in_child() -> None:
    for each in reversed(LOCKS):
        renew(each)


around_forks(_hold_before_fork, _release_after_fork, _renew_in_child)

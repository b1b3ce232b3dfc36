"""Imports of gnomon's modules that are under way in other threads; a fork waits for them.

A child has the locks of modules as they were: that of a module which another thread was importing
stays taken for good, and the child waits for it in its own `import`. CPython frees none of them
after a fork, and nothing of a package runs before its first module is found, read and begun: until
the hook below is there, a fork cannot be told to wait. So this is imported before all else, and
needs only what a program with a second thread has loaded.
"""

from __future__ import annotations

import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BEGUN = time.time()  # what of gnomon was written before is what this process reads
PATIENCE = 5.0  # seconds
_PACKAGE = __name__.partition(".")[0]
_module_locks = sys.modules["_frozen_importlib"]._module_locks  # name -> weak reference
#: whether `lock` has begun a fork of this thread, and what begins it: there once that is imported
begins: list[tuple[Callable[[], bool], Callable[[], None]]] = []


def is_importing() -> bool:
    """Whether this thread is in an `import` statement of a module of gnomon's."""
    return threading.get_ident() in _importers()


def _importers() -> list[int | None]:
    """The threads in `import` statements of modules of gnomon's; None for one that begins.

    Read off the locks of modules, which live as long as such statements. The frames of a thread
    that goes on meanwhile must not be walked: CPython 3.11 follows them into freed memory.
    """
    locks = [(name, reference()) for name, reference in [*_module_locks.items()]]
    ours = [lock for name, lock in locks if f"{name}.".startswith(f"{_PACKAGE}.")]
    return [lock.owner for lock in ours if lock is not None]


def wait_while_others_import(before: Callable[[], object], after: Callable[[], object]) -> None:
    """Wait, calling `before` and `after` around each sleep, no longer than `PATIENCE` seconds.

    Not where this thread is in such a statement, for which another one may wait.
    """
    mine, until = threading.get_ident(), time.monotonic() + PATIENCE
    if is_importing():
        return
    while time.monotonic() < until and {*_importers()} - {mine}:
        before()
        time.sleep(1e-3)
        after()


def _before_fork() -> None:
    """Called after all other hooks, as it was registered first.

    Where that of `lock` was not yet registered when the fork began, it is called from here.
    """
    if any(has_begun() for has_begun, _ in begins):
        return
    wait_while_others_import(bool, bool)
    for _, begin in begins:
        begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)

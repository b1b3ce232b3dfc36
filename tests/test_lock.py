"""Locks and interrupts that fall anywhere; work under a lock that nobody waits for."""

from __future__ import annotations

import ast
import dis
import re
import sys
import threading
import types
from pathlib import Path

import pytest
from interrupted import interruptions

from gnomon.ground.lock import SafeLock, SafeReentrant, exclusive, if_free, reentrant


def test_work_is_done_where_the_lock_is_free():
    lock, done = threading.Lock(), []
    assert if_free(lock, lambda: done.append(lock.locked()))
    assert done == [True] and not lock.locked()


def test_nobody_waits_for_the_lock():
    lock, done = threading.Lock(), []
    with lock:
        assert not if_free(lock, lambda: done.append(1))
        assert lock.locked()
    assert done == [] and if_free(lock, lambda: done.append(1))


def test_work_that_comes_back_finds_the_lock_taken():
    lock, inner = threading.Lock(), []
    assert if_free(lock, lambda: inner.append(if_free(lock, lambda: None)))
    assert inner == [False] and not lock.locked()


def test_an_error_of_the_work_leaves_the_lock_free():
    lock = threading.Lock()
    try:
        if_free(lock, lambda: 1 // 0)
    except ZeroDivisionError:
        assert not lock.locked()
    else:
        raise AssertionError("the error was swallowed")


def enter(lock):
    with lock:
        pass


def taken(lock):
    free = lock.acquire(blocking=False)
    if free:
        lock.release()
    return not free or (hasattr(lock, "_is_owned") and lock._is_owned())


@pytest.mark.parametrize(
    ("make", "work"),
    [
        (exclusive, lambda lock: if_free(lock, lambda: None)),
        (exclusive, enter),
        (reentrant, enter),
        (SafeLock, enter),
        (SafeReentrant, enter),
    ],
)
def test_an_interrupt_leaves_the_lock_free_wherever_it_falls(make, work):
    lock = make()
    assert interruptions(lambda: work(lock), lambda: taken(lock)) > 100


@pytest.mark.parametrize("make", [exclusive, reentrant, SafeLock, SafeReentrant])
def test_a_block_has_the_lock_to_its_end(make):
    lock, order = make(), []

    def other():
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock as entered:
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert entered is True and order == ["first", "other"] and not taken(lock)
    with pytest.raises(ZeroDivisionError), lock:
        _ = 1 // 0
    assert not taken(lock)


def _escapes(source: str, path: str) -> list[str]:
    """Jumps back in blocks of `with` and a lock that look for signals outside of what those cover.

    An interrupt there would leave the lock held: see `gnomon.ground.lock`.
    """
    blocks = [
        (node.body[0].lineno, node.body[-1].end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.With)
        if any(re.search("lock|first_use", ast.unparse(item.context_expr)) for item in node.items)
    ]
    found, codes = [], [compile(source, path, "exec")]
    for code in codes:
        codes += [x for x in code.co_consts if isinstance(x, types.CodeType)]
        covered = list(dis._parse_exception_table(code))
        for step in dis.get_instructions(code):
            line = step.positions.lineno if step.positions else None
            looks = step.opname == "JUMP_BACKWARD"
            if looks and not any(part.start <= step.offset < part.end for part in covered):
                inside = [a for a, b in blocks if line and code.co_firstlineno < a <= line <= b]
                found += [f"{path}:{line}: in {code.co_name}"] * bool(inside)
    return found


def test_no_loop_lets_an_interrupt_leave_a_lock_held():
    root = Path(__file__).parents[1]
    found = []
    for path in sorted((root / "gnomon").rglob("*.py")):
        found += _escapes(path.read_text("utf-8"), str(path.relative_to(root)))
    assert not found, "make the loop a function of its own:\n" + "\n".join(found)


def test_loops_that_let_an_interrupt_out_are_found():
    head = "def f(x):\n    with lock:\n"
    text = head + "        for y in x:\n            if y:\n                f(y)\n"
    found = [line.split(":")[0] for line in _escapes(text, "a.py")]
    assert found == ["a.py"] * (sys.version_info >= (3, 12))
    assert not _escapes(text.replace("lock", "other"), "a.py")

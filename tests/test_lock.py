"""Locks and interrupts that fall anywhere; work under a lock that nobody waits for."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from gnomon.lock import SafeLock, SafeReentrant, exclusive, if_free, reentrant


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
    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False
            raise InterruptedError

    armed, interrupts, lock = False, 0, make()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-4)
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                armed = True
                work(lock)
                armed = False
            except InterruptedError:
                interrupts += 1
            assert not taken(lock)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 100


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

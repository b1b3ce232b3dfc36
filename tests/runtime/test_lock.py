"""Work under a lock that nobody waits for, and interrupts that fall anywhere."""

from __future__ import annotations

import signal
import threading
import time

from gnomon.runtime.lock import if_free


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


def test_an_interrupt_leaves_the_lock_free_wherever_it_falls():
    def interrupt(*_):
        nonlocal armed
        if armed:
            armed = False
            raise InterruptedError

    armed, interrupts, lock = False, 0, threading.Lock()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-4)
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                armed = True
                if_free(lock, lambda: None)
                armed = False
            except InterruptedError:
                interrupts += 1
            assert not lock.locked()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 100

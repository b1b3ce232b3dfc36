"""The collector rests while it is told to, and is as it was afterwards, whatever comes between."""

import gc
import sys
import threading

import pytest

from gnomon.collector import resting


@pytest.fixture(autouse=True)
def _on():
    gc.enable()
    yield
    gc.enable()


@pytest.mark.parametrize("on", [True, False])
def test_it_is_as_it_was(on):
    (gc.enable if on else gc.disable)()
    with resting(), resting():
        assert not gc.isenabled()
    assert gc.isenabled() == on
    with pytest.raises(ZeroDivisionError), resting():
        _ = 1 // 0
    assert gc.isenabled() == on
    with resting(False):
        assert gc.isenabled() == on


def test_scopes_of_two_threads_that_overlap():
    """The second begins in the first, and looks when that is about to end."""
    begun, looked, ended = threading.Event(), threading.Event(), threading.Event()

    def first():
        with resting():
            begun.set()
            looked.wait(20)
        ended.set()

    def second(frame, event, _):
        if event == "line" and not gc.isenabled() and not looked.is_set():
            looked.set()
            ended.wait(20)
        return second

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(20)
    sys.settrace(second)
    try:
        with resting():
            pass
    finally:
        sys.settrace(None)
        looked.set()
        thread.join()
    assert gc.isenabled()


def test_an_interrupt_leaves_it_as_it_was_wherever_it_falls():
    """Python looks for signals where functions begin, and generators go on."""

    def interrupted(frame, event, _):
        nonlocal left
        left -= 1
        if not left:
            raise InterruptedError

    interrupts = 0
    for number in range(1, 12):
        left = number
        sys.settrace(interrupted)
        try:
            with resting():
                pass
        except InterruptedError:
            interrupts += 1
        finally:
            sys.settrace(None)
        assert gc.isenabled(), number
    assert interrupts > 3

"""Handlers of signals that come amid first uses: what they ask for, and interrupt, is whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from interrupted import interruptions

from gnomon.ground.lock import first_use
from tests.engine.processes import run

AMID = """
import os, signal, sys
import gnomon as mx

def others():
    adam, mae = mx.optimizer.create("adam"), mx.metric.create("mae")
    x, drawn = mx.nd.array([[2.0, 1.0]]), mx.init.create("xavier")
    mae.update([x], [x + 1])
    kinds = [type(each).__name__ for each in (adam, drawn, mx.gluon.nn.Dropout(0.5))]
    return *kinds, mae.get()[1], mx.nd.sort(x).asnumpy().tolist()

def first():
    sgd, layer = mx.optimizer.create("sgd"), mx.gluon.nn.Dense(2)
    accuracy = mx.metric.create("acc")
    layer.initialize(mx.init.One())
    accuracy.update([mx.nd.array([1])], [mx.nd.array([[0.1, 0.9]])])
    given = mx.nd.relu(layer(mx.nd.array([[1.0, -3.0]]))).asnumpy().tolist()
    return type(sgd).__name__, accuracy.get()[1], given

def interrupted(at, raises):  # by a handler at that instruction of what is imported
    left, came = at, []
    def handler(*_):
        sys.settrace(None)
        came.append(others())
        if raises:
            raise InterruptedError
    def watch(frame, event, arg):
        nonlocal left
        place, name = frame.f_code.co_filename, frame.f_code.co_name
        if "gnomon" not in place or not ("registry" in place or name == "<module>"):
            return None
        left -= 1
        if left == 0:
            signal.raise_signal(signal.SIGUSR1)
        return watch
    signal.signal(signal.SIGUSR1, handler)
    sys.settrace(watch)
    try:
        given = first()
    except InterruptedError:
        given = first()
    sys.settrace(None)
    return at - left, came, given, signal.getsignal(signal.SIGUSR1) is handler

def forked(*how):
    told, tell = os.pipe()
    if not os.fork():
        os.write(tell, repr(interrupted(*how)).encode())
        os._exit(0)
    os.close(tell)
    os.wait()
    return eval(os.read(told, 10_000))

count, *_ = forked(0, False)
for part in range(PARTS):
    came, given = ["Adam", "Xavier", "Dropout", 1.0, [[1.0, 2.0]]], ("SGD", 1.0, [[0.0, 0.0]])
    found = forked(1 + count * part // PARTS, part % 2 == 1)[1:]
    if found != ([tuple(came)], given, True):
        print(part, found)
print(count > 10_000)
"""


def test_a_handler_amid_a_first_use_computes_with_what_is_whole():
    assert run(AMID.replace("PARTS", "9"), limit=100) == (0, "True\n")


@pytest.fixture
def handled():
    """Signals whose handlers note that they came, or do more."""
    told, before = [], {}

    def handle(number, more=lambda: None):
        def handler(came, frame):
            told.append(came)
            more()

        before[number] = signal.signal(number, handler)
        return handler

    yield told, handle
    for number, handler in before.items():
        signal.signal(number, handler)


def test_handlers_are_called_once_a_block_is_over_each_of_them_whatever_another_raises(handled):
    told, handle = handled
    first, last = handle(signal.SIGUSR1, lambda: 1 // 0), handle(signal.SIGUSR2)

    def use():
        with first_use:
            for _ in range(3):
                signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR2)
        assert told == []

    with pytest.raises(ZeroDivisionError), first_use:
        use()
    assert told == [signal.SIGUSR1, signal.SIGUSR2] and not first_use._is_owned()
    assert signal.getsignal(signal.SIGUSR1) is first
    assert signal.getsignal(signal.SIGUSR2) is last


def test_a_handler_that_is_set_meanwhile_stays(handled):
    told, handle = handled
    handle(signal.SIGUSR1)
    with first_use:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.raise_signal(signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN and told == []


def test_first_uses_of_other_threads_put_no_handler_off(handled):
    told, handle = handled
    handle(signal.SIGUSR1)
    begun, go = threading.Event(), threading.Event()

    def use():
        with first_use:
            begun.set()
            go.wait(30)

    thread = threading.Thread(target=use)
    thread.start()
    begun.wait(30)
    signal.raise_signal(signal.SIGUSR1)
    assert told == [signal.SIGUSR1]
    go.set()
    thread.join()


def test_an_interrupt_leaves_no_handler_put_off():
    def work():
        with first_use:
            pass

    assert interruptions(work, first_use._is_owned) > 100


ELSEWHERE = """
import _thread
done = _thread.allocate_lock()
done.acquire()
def work():
    import threading  # takes this thread for the main one, before Python 3.13
    import sys
    sys.path[:] = PATH
    import gnomon as mx
    print(mx.nd.ones((2, 3)).asnumpy().sum())
    done.release()
_thread.start_new_thread(work, ())
done.acquire(True, 60)
"""


def test_first_uses_in_a_thread_that_only_threading_takes_for_the_main_one():
    code = ELSEWHERE.replace("PATH", repr(sys.path))
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "6.0\n", ran.stderr

"""Operators that wait in the engine's state: their memory is bounded, forks have their results."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from gnomon.base import EngineError
from gnomon.engine import behind, waiting
from gnomon.engine.native_behind import FREE
from tests.engine.processes import run
from tests.engine.test_process import in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

LOOP = """
    import sys, time
    import gnomon as mx
    from gnomon import nd
    from gnomon.engine.native_behind import most_memory
    from gnomon.runtime.devices.pool import in_use, pool_of

    class Same(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            time.sleep({seconds})
            self.assign(out_data[0], req[0], in_data[0])

    @mx.operator.register("same")
    class SameProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Same()

    def step(x):
        return {step}

    x, w = nd.ones((512, 512)), nd.ones((512, 512)) / 512
    for _ in range(3):
        x = step(x)
    nd.waitall()
"""

BOUNDED = """
    base, most = in_use(pool_of()), 0
    for _ in range(150):
        x = step(x)
        most = max(most, in_use(pool_of()))
    print("fits", most <= most_memory(2 * base), most, base)
    assert x.asnumpy().shape == (512, 512)
"""


@pytest.mark.parametrize(
    "step",
    [
        "nd.sort(nd.dot(x, w))",
        "nd.Custom(x, op_type='same')",
        "nd.dot(nd.Custom(x, op_type='same'), w) + 1",
    ],
)
def test_a_loop_of_operators_in_python_that_never_waits_is_bounded(step):
    code, out = run(LOOP.format(step=step, seconds=0.002) + BOUNDED)
    assert (code, out.split()[:2]) == (0, ["fits", "True"]), out


QUIET = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
"""
FORK = """
    for _ in range(5):
        x = step(x)
    y = nd.dot(x, w)
    pid = os.fork()
    if not pid:
        print(float(x.asnumpy().mean()), float(y.asnumpy().mean()), flush=True)
        os._exit(0)
    print(os.waitpid(pid, 0)[1])
"""


def test_a_forked_child_has_what_operators_in_python_were_to_give():
    step = "nd.sort(nd.dot(nd.Custom(x, op_type='same'), w)) + 1"
    code, out = run("    import os" + QUIET + LOOP.format(step=step, seconds=0.05) + FORK)
    assert (code, out.split()) == (0, ["9.0", "9.0", "0"]), out


INTERRUPTED = """
    for _ in range(12):
        x = step(x)
    print("forking", flush=True)
    try:
        pid = os.fork()
        if not pid:
            os._exit(0)
        for _ in range(2000):  # a signal that comes right before a sleep is told after it
            time.sleep(0.01)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(0)
"""


def test_ctrl_c_while_a_fork_waits_is_raised_after_it():
    step = "nd.Custom(x, op_type='same')"
    code, out = run(
        "    import os" + QUIET + LOOP.format(step=step, seconds=0.1) + INTERRUPTED, "forking"
    )
    assert (code, out.split()) == (0, ["forking", "interrupted"]), out


def test_a_fork_goes_on_where_an_operator_waits_for_a_function_without_an_end(
    threaded, monkeypatch
):
    monkeypatch.setattr(waiting, "GIVEN_UP", 0.2)
    x, go, ran = threaded.new_variable(), threading.Event(), []
    threaded.push_sync(lambda run_ctx: go.wait(10), None, (), (x,))
    threaded.push_operator(lambda run_ctx: ran.append(1), None, (), (x,), "one")
    threaded.push_inline(lambda run_ctx: ran.append(2), None, (), (x,))

    def child() -> None:
        with pytest.raises(EngineError, match="pending in the parent when the process forked"):
            threaded.wait_for_var(x)

    in_child(child)
    go.set()
    threaded.wait_for_var(x)
    assert ran == [1, 2]


def test_a_push_goes_on_where_what_is_queued_waits_for_it(threaded, monkeypatch):
    """It takes what is in use then as the program's own."""
    monkeypatch.setattr(waiting, "GIVEN_UP", 0.2)
    monkeypatch.setattr(behind, "in_use", lambda pool: len(threaded._queued) * FREE // 2)
    x, go, ran = threaded.new_variable(), threading.Event(), []
    threaded.push_sync(lambda run_ctx: go.wait(60), None, (), (x,))
    begin = time.monotonic()
    for _ in range(6):
        threaded.push_operator(lambda run_ctx: ran.append(1), None, (), (x,), "one")
    assert ran == [] and time.monotonic() - begin >= 0.2
    go.set()
    threaded.wait_for_var(x)
    assert len(ran) == 6


def test_a_push_goes_on_whatever_other_threads_do(threaded, monkeypatch):
    monkeypatch.setattr(waiting, "GIVEN_UP", 0.2)
    monkeypatch.setattr(behind, "in_use", lambda pool: len(threaded._queued) * FREE // 2)
    x, go, over = threaded.new_variable(), threading.Event(), threading.Event()

    def others():
        until = time.monotonic() + 60
        while time.monotonic() < until and not over.wait(0.02):
            threaded.push_sync(lambda run_ctx: None)

    beside = threading.Thread(target=others)
    beside.start()
    threaded.push_sync(lambda run_ctx: go.wait(60), None, (), (x,))
    for _ in range(6):
        threaded.push_operator(lambda run_ctx: None, None, (), (x,), "one")
    still = beside.is_alive()
    over.set()
    go.set()
    beside.join()
    threaded.wait_for_all()
    assert still, "the pushes waited for what other threads push"


def test_a_wait_that_was_given_up_keeps_nobody_from_what_is_ready(threaded, monkeypatch):
    monkeypatch.setattr(waiting, "GIVEN_UP", 0.2)
    monkeypatch.setattr(behind, "in_use", lambda pool: len(threaded._queued) * FREE // 2)
    x, y = threaded.new_variable(), threaded.new_variable()
    go, written = threading.Event(), threading.Event()
    threaded.push_sync(lambda run_ctx: go.wait(60), None, (), (x,))
    threaded.push_sync(lambda run_ctx: time.sleep(0.1), None, (), (y,))
    for var in (y, x, x, x, x):
        threaded.push_operator(lambda run_ctx: None, None, (), (var,), "one")
    threaded.push_sync(lambda run_ctx: written.set(), None, (), (y,))
    assert written.wait(30)  # while x waits for `go`
    go.set()
    threaded.wait_for_all()


@pytest.mark.parametrize("bulk_size", [0, 10**6])
def test_the_number_of_queued_operators_is_bounded(threaded, monkeypatch, bulk_size):
    monkeypatch.setattr(behind, "in_use", lambda pool: 0)
    most = FREE // behind._QUEUED
    x, counts, count = threaded.new_variable(), [], iter(range(10**6))
    with threaded.bulk(bulk_size):
        for _ in range(3 * most):
            threaded.push_operator(lambda run_ctx: next(count), None, (), (x,), "one")
            counts.append(len(threaded._queued))
    assert max(counts) <= most + 2
    threaded.wait_for_var(x)
    assert next(count) == 3 * most


DROPPED = """
    import atexit
    late = []

    def read():  # of all handlers the last
        try:
            late[0].asnumpy()
        except mx.base.MXNetError as error:
            print("was pending" if "when Ctrl-C ended" in str(error) else error, flush=True)

    atexit.register(read)
    {loop}
    from gnomon import engine

    def note(run_ctx):
        time.sleep(1)
        print("noted", flush=True)

    engine.get().push_sync(note)
    for _ in range(10):
        x = step(x)
    late.append(x)
    print("waiting", flush=True)
    x.wait_to_read()
"""


def test_a_process_that_ctrl_c_ended_drops_what_has_not_begun():
    step = "nd.Custom(x, op_type='same')"
    program = DROPPED.format(loop=LOOP.format(step=step, seconds=0.5).strip())
    code, out = run(program, "waiting")
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in out and "noted\n" in out and "was pending\n" in out
    assert "Ctrl-C ended the program: dropped " in out

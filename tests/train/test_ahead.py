"""Calls that threads make ahead of the program, whatever interrupts that and however it ends."""

from __future__ import annotations

import threading
import time
import weakref
from functools import partial

import pytest

from gnomon.io.ahead import Ahead, Future
from tests.engine.processes import run


def test_what_a_call_gives_or_raises_is_told_as_often_as_asked():
    threads = Ahead(1)
    given = threads.begin(Future(lambda: 6 * 7))
    raised = threads.begin(Future(lambda: 1 // 0))
    assert [given.result(), given.result()] == [42, 42]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            raised.result()
    assert given.begun and given.wait(0)


def test_a_call_is_made_once_however_often_it_is_begun():
    threads, made = Ahead(4), []
    futures = [Future(partial(made.append, k)) for k in range(100)]
    for future in futures * 3:
        threads.begin(future)
    for future in futures:
        future.result()
    assert sorted(made) == list(range(100))


def test_a_wait_may_come_to_its_end_before_the_call_does():
    go = threading.Event()
    future = Ahead(1).begin(Future(partial(go.wait, 30)))
    assert not future.wait(0.05)
    go.set()
    assert future.wait(30) and future.result()


def test_a_call_that_nobody_holds_is_dropped_and_threads_end_with_what_they_serve():
    go, made = threading.Event(), []
    first = Ahead(1).begin(Future(partial(go.wait, 30)))
    first.threads.begin(Future(partial(made.append, 1)))
    last = first.threads.begin(Future(partial(made.append, 2)))
    gone = weakref.ref(first.threads)
    go.set()
    assert first.result() and last.result() is None
    assert made == [2]
    del first, last
    until = time.monotonic() + 10
    while gone() is not None and time.monotonic() < until:
        time.sleep(1e-3)
    assert gone() is None


INTERRUPTED = """
    import faulthandler, signal, sys, time
    from gnomon.gluon.data import DataLoader
    from gnomon.io import DataBatch, DataDesc, DataIter, PrefetchingIter
    faulthandler.dump_traceback_later(20, exit=True)  # an interrupted wait, or the exit, hangs
    sys.setswitchinterval(1e-4)

    class Five(DataIter):
        provide_data, provide_label, at = [DataDesc("data", (1,))], [], 0
        def reset(self):
            self.at = 0
        def next(self):
            self.at += 1
            if self.at > 5:
                raise StopIteration
            return DataBatch([self.at])

    batches = PrefetchingIter(Five())
    loader = DataLoader(range(5), 1, num_workers=2, thread_pool=True, batchify_fn=sum)
    def epoch_of_batches():
        batches.reset()
        return [batch.data[0] for batch in batches]
    def epoch_of_loader():
        return list(loader)
    armed, interrupts = False, 0
    def interrupt(*_):
        global armed
        if armed:
            armed = False
            raise InterruptedError
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 3e-4)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            armed = True
            EPOCH()
            armed = False
        except InterruptedError:
            interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"interrupts {interrupts > 100} {EPOCH()}")
"""


@pytest.mark.parametrize(
    ("epoch", "given"),
    [("epoch_of_batches", [1, 2, 3, 4, 5]), ("epoch_of_loader", [0, 1, 2, 3, 4])],
)
def test_an_interrupt_at_any_instruction_leaves_no_lock_that_others_wait_for(epoch, given):
    code, out = run(INTERRUPTED.replace("EPOCH", epoch), limit=40)
    assert (code, out) == (0, f"interrupts True {given}\n")


def test_the_exit_does_not_wait_for_ever():
    code, out = run(
        """
    import threading, time
    from functools import partial
    from gnomon.io import ahead
    ahead._PATIENCE = 0.5
    calls = [lambda s=s: (time.sleep(s), print("slept", s)) for s in (0.1, 60, 0)]
    threads = ahead.Ahead(2)
    begun = [threads.begin(ahead.Future(call)) for call in calls]
    begun[0].wait()
    begun += [threads.begin(ahead.Future(partial(time.sleep, 60))) for _ in range(9)]
    """,
        limit=20,
    )
    assert (code, out) == (0, "slept 0.1\nslept 0\n")

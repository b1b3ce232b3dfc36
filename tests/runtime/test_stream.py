"""The stream: order, help, halts, sleep and wake, forks, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from streamed import Slow

from gnomon.runtime.execution import stream
from gnomon.runtime.execution.program import LONG
from gnomon.runtime.execution.stream import Task
from gnomon.runtime.ffi import Block

ROOT = Path(__file__).parents[2]


def entered(task: Task) -> Task:
    stream.enter(task, [])
    return task


def test_tasks_run_in_order_and_are_counted():
    words = Block([0] * 8)
    slow = Slow(1e-6)
    tasks = []
    for k in range(8):  # each puts its number over that of the one before
        pairs = [(words.address + 8 * j, k + 1) for j in range(k, 8)]
        tasks.append(entered(Task(slow.step, pairs)))
    assert stream.wait(tasks[-1].number)
    assert list(words.words) == [1, 2, 3, 4, 5, 6, 7, 8] and slow.runs == 8
    assert [t.number for t in tasks] == list(range(tasks[0].number, tasks[0].number + 8))
    assert stream.done() >= tasks[-1].number and not stream.pending()


def test_words_are_put_before_and_after():
    slow, other = Slow(0.0), Block([5])
    place = slow.block.address + 16  # its count
    task = entered(Task(slow.step, [(place, 40)], [(other.address, 7)]))
    assert stream.wait(task.number)
    assert slow.runs == 41 and other.words[0] == 7
    begin, end = task.times
    assert 0 < begin <= end <= time.perf_counter()


def test_it_runs_without_anybody_waiting():
    slow = Slow(0.001)
    task = entered(Task(slow.step))
    until = time.monotonic() + 30
    while stream.done() < task.number and time.monotonic() < until:
        time.sleep(0.001)
    assert slow.runs == 1


def test_little_work_is_left_to_who_waits():
    slow = Slow(0.0, long=False)
    tasks = [entered(Task(slow.step)) for _ in range(5)]
    assert stream.wait(tasks[-1].number) and slow.runs == 5


def test_who_does_not_help_has_it_run():
    slow = Slow(0.0, long=False)
    task = entered(Task(slow.step))
    assert stream.wait(task.number, helps=False) and slow.runs == 1


def test_a_failure_halts_it_and_what_is_skipped_does_not_run():
    slow, fails = Slow(0.0), Slow(0.0, fails=True)
    first, second, third = (entered(Task(x.step)) for x in (fails, slow, slow))
    assert stream.wait(first.number) and first.failed
    assert not stream.wait(third.number) and slow.runs == 0
    second.skip()
    stream.revive()
    assert stream.wait(third.number) and slow.runs == 1 and not third.failed
    assert second.times == (0.0, 0.0)


def test_held_it_stands():
    slow = Slow(0.0)
    stream.hold()
    try:
        task = entered(Task(slow.step))
        time.sleep(0.01)
        assert slow.runs == 0
    finally:
        stream.let_go()
    assert stream.wait(task.number) and slow.runs == 1


def test_held_twice_it_stands_until_it_is_let_go():
    """A signal's handler may fork amidst a fork."""
    stream.hold()
    stream.hold()
    stream.let_go()
    stream.let_go()
    slow = Slow(0.0)
    assert stream.wait(entered(Task(slow.step)).number) and slow.runs == 1


def test_many_threads_enter_and_wait():
    """No wake-up is lost, whoever runs what."""
    slow = Slow(2e-6, long=False)
    lock, wrong = threading.Lock(), []

    def work(seed: int) -> None:
        for k in range(300):
            task = Task(slow.step)
            with lock:
                stream.enter(task, [])
            if (k * seed) % 7 == 0:
                time.sleep(1e-5)
            if not stream.wait(task.number, helps=(k + seed) % 3 > 0):
                wrong.append(k)

    before = slow.runs
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert slow.runs == before + 4 * 300


def test_a_signal_is_seen_in_a_wait():
    """A wait for work that takes long ends with what the handler raises; the work goes on."""
    slow = Slow(0.5)
    slow.step.work = 1000 * LONG  # too long to help with

    class Told(Exception):
        pass

    def handler(*_: Any) -> None:
        raise Told

    before = signal.signal(signal.SIGALRM, handler)
    try:
        task = entered(Task(slow.step))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Told):
            stream.wait(task.number)
        assert stream.done() < task.number
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stream.wait(task.number) and slow.runs == 1


def test_a_forked_child_has_none():
    slow = Slow(0.001)
    task = entered(Task(slow.step))
    stream.wait(task.number)
    pid = os.fork()
    if not pid:
        os._exit(0 if not stream.available() and not stream.pending() else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert stream.available()


@pytest.mark.parametrize(
    ("variable", "value"), [("GNOMON_STREAMS", "0"), ("GNOMON_GOMP", "1")], ids=["off", "libgomp"]
)
def test_where_there_is_none(variable, value):
    text = "from gnomon.runtime.execution import stream, threads\n"
    text += "print(stream.available(), threads.kind())"
    environment = {**os.environ, variable: value, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(
        [sys.executable, "-c", text], env=environment, check=False, capture_output=True
    )
    found, kind = out.stdout.decode().split()
    assert found == "False" or kind == "own"  # where libgomp is not installed

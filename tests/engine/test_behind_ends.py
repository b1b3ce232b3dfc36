"""Native work behind the program where the process forks or ends."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from streamed import Slow

ROOT = Path(__file__).parents[2]


def run(text: str, **more: object) -> tuple[int, str, str]:
    """The status of a program, what it prints, and its errors."""
    program = text.format(tests=str(ROOT / "tests"), **more)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=False, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    return ran.returncode, ran.stdout.strip(), ran.stderr


def test_a_forked_child_has_what_was_pushed(threaded):
    x, slow = threaded.new_variable(), Slow(0.02)
    for _ in range(3):
        threaded.push_inline(slow.turn(), None, (), (x,))
    pid = os.fork()
    if not pid:
        try:
            assert slow.runs == 3
            threaded.wait_for_var(x)
            threaded.push_inline(slow.turn(), None, (), (x,))
            assert slow.runs == 4 == x.version
            threaded.wait_for_all()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    threaded.push_inline(slow.turn(), None, (), (x,))
    threaded.wait_for_var(x)
    assert slow.runs == 4


FORK = """
import os, sys, threading, time
sys.path.insert(0, {tests!r})
from streamed import Slow
from gnomon import engine
from gnomon.runtime.execution import stream

e = engine.get()
Slow(0.0)  # its code is made by one thread

def flood():
    x = e.new_variable()
    while True:
        e.push_inline(Slow(0.001).turn(), None, (), (x,))

for _ in range(2):
    threading.Thread(target=flood, daemon=True).start()
while stream.pending() < 100:
    time.sleep(0.01)
child = os.fork()
if child:
    print("child", os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


def test_a_process_forks_while_others_push_without_an_end():
    code, out, told = run(FORK)
    assert (out, code) == ("child 0", 0), told


EXIT = """
import sys
sys.path.insert(0, {tests!r})
from streamed import Slow
from gnomon import engine

e = engine.get()
x, slow = e.new_variable(), Slow(0.1)
if {workers!r}:
    e.push_sync(lambda run_ctx: None)
    e.wait_for_all()
for _ in range(3):
    e.push_inline(slow.turn(), None, (), (x,))
e.push_sync(lambda run_ctx: print("done", slow.runs, flush=True), const_vars=[x])
"""


@pytest.mark.parametrize("workers", [True, False])
def test_the_exit_waits_for_it(workers):
    """Also for the function behind it, which needs a worker from before or one that it starts."""
    code, out, told = run(EXIT, workers=workers)
    if not workers and sys.version_info[:3] in {(3, 12, 0), (3, 12, 1)}:  # they start none then
        assert (out, "the engine cannot start a thread" in told) == ("", True), told
    else:
        assert (out, code) == ("done 3", 0), told


FLOOD = """
import atexit, os, sys, threading, time
given = []

def last():  # of all handlers; the code of `Slow` would go amidst its runs
    for x in given:
        e.wait_for_var(x)
    print("read", flush=True)
    os._exit(0)

atexit.register(last)
sys.path.insert(0, {tests!r})
from streamed import Slow
from gnomon import engine

e = engine.get()
Slow(0.0)  # its code is made by one thread

def flood():
    x = e.new_variable()
    given.append(x)
    while True:
        e.push_inline(Slow(0.001).turn(), None, (), (x,))
        time.sleep(0.0005)  # who runs it has its turns, and falls behind all the same

threading.Thread(target=flood, daemon=True).start()
time.sleep(0.2)
"""


def test_the_process_ends_while_a_thread_pushes_more_and_handlers_may_wait_for_that():
    code, out, told = run(FLOOD)
    assert (out, code) == ("read", 0), told

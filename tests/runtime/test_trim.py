"""LLVM's memory goes back to the system when a burst of compiling is over, and comes back."""

import os
import time
from pathlib import Path

import pytest

from gnomon.runtime.compiler import jit, trim
from gnomon.runtime.compiler.guard import llvm

TEXT = "define i64 @f(i64 %x) {{ %y = mul i64 %x, {}\n ret i64 %y }}"


def resident(begin, end):
    """Bytes of the process's memory between these addresses."""
    held, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            inside = begin <= int(words[0].partition("-")[0], 16) < end
        elif inside and words[0] == "Rss:":
            held += int(words[1]) << 10
    return held


@pytest.fixture
def trims(monkeypatch):
    """When memory was given back."""
    found, done = [], trim.trim
    while trim._state.burst:  # a burst of another test's
        time.sleep(0.05)  # its thread ends by itself
    monkeypatch.setattr(trim, "PAUSE", 0.3)
    monkeypatch.setattr(
        trim, "trim", lambda library: (done(library), found.append(time.monotonic()))
    )
    return found


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)  # until it is so, or for 30 s
    assert condition()


def test_pages_that_are_never_written_go_and_come_back():
    code = jit.object_code(TEXT.format(7))
    pages = list(trim.unwritten_pages(llvm._LIBRARY))
    held = sum(resident(*each) for each in pages)
    trim.trim(llvm._LIBRARY)
    left = sum(resident(*each) for each in pages)
    assert held > 20 << 20 and left < held // 4
    assert jit.object_code(TEXT.format(7)) == code


def test_it_is_done_once_when_a_burst_is_over(trims):
    begin = time.monotonic()
    for k in range(5):
        jit.object_code(TEXT.format(k))
        time.sleep(0.1)  # less than the pause: the burst goes on
    latest = trim._state.latest
    wait_for(lambda: trims)
    assert trims[0] >= latest + 0.3 and latest > begin + 0.3
    time.sleep(0.5)  # more than the pause: nothing is given back once more
    assert len(trims) == 1 and not trim._state.burst
    jit.object_code(TEXT.format(5))
    wait_for(lambda: len(trims) == 2)


def test_where_no_thread_is_to_be_had_memory_stays(trims, monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(trim, "start_new_thread", none)
        trim.trim_later(llvm._LIBRARY)
    assert not trim._state.burst
    trim.trim_later(llvm._LIBRARY)
    wait_for(lambda: trims)


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


def test_a_fork_gives_the_memory_back_before_and_sees_no_thread(trims):
    before = threads()
    trim.trim_later(llvm._LIBRARY)
    assert threads() == before + 1
    child = os.fork()  # from Python 3.12 on it warns of other threads
    if child == 0:
        os._exit(int(trim._state.burst is not None))
    assert os.waitpid(child, 0)[1] == 0
    assert len(trims) == 1 and threads() <= before


def test_what_is_no_library_has_no_pages():
    assert not list(trim.unwritten_pages(0))

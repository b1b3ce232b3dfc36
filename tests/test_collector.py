"""The collector rests while it is told to, and is as it was afterwards."""

import gc
import os
import sys
import threading

import pytest

from gnomon.ground import lock
from gnomon.ground.collector import resting
from gnomon.ground.lock import load_module


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


@pytest.mark.parametrize("frozen", [True, False])
def test_it_rests_during_imports_whose_objects_are_old_at_once(frozen, tmp_path, monkeypatch):
    """Where a program has frozen objects, they stay so, and those of the module are young."""
    name = f"rested_{frozen}"
    (tmp_path / f"{name}.py").write_text("import gc\nat, made = gc.get_threshold()[0], [[]]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(lock, "_frozen", [])
    (gc.freeze if frozen else gc.unfreeze)()
    try:
        before = gc.get_threshold()
        module = load_module(name)
        old = any(x is module.made for x in gc.get_objects(generation=2))
        assert (module.at, gc.isenabled(), old) == (0, True, not frozen)
        assert gc.get_threshold() == before
        assert bool(gc.get_freeze_count()) == bool(lock._frozen) == frozen
    finally:
        gc.freeze()  # what tests found, as before
        del sys.modules[name]


@pytest.mark.parametrize("line", range(1, 7))
def test_scopes_of_two_threads_that_overlap(line):
    """The second begins within the first, which ends before the second comes to a line."""
    begun, come, ended = threading.Event(), threading.Event(), threading.Event()

    def first():
        with resting():
            begun.set()
            come.wait(20)
        ended.set()

    def second(frame, event, _):
        nonlocal left
        if event == "line" and frame.f_code.co_name == "resting":
            left -= 1
            if not left:
                come.set()
                ended.wait(20)
        return second

    left, thread = line, threading.Thread(target=first)
    thread.start()
    begun.wait(20)
    sys.settrace(second)
    try:
        with resting():
            pass
    finally:
        sys.settrace(None)
        come.set()
        thread.join()
    assert gc.isenabled()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("mine", [True, False])
def test_a_child_does_not_wait_for_the_end_of_a_rest_of_another_thread(mine):
    begun, done = threading.Event(), threading.Event()

    def rest():
        with resting():
            begun.set()
            done.wait(20)

    def forked():
        pid = os.fork()
        if pid == 0:
            os._exit(int(gc.isenabled()))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    if mine:
        with resting():
            assert not forked()
        return
    thread = threading.Thread(target=rest)
    thread.start()
    begun.wait(20)
    try:
        assert forked()
    finally:
        done.set()
        thread.join()

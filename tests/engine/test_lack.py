"""Where memory lacks for a step of the engine's, nothing is lost, nothing hangs."""

from __future__ import annotations

import pytest

from tests.engine.processes import run

PROGRAM = """
    import faulthandler, gc, os, _testcapi
    os.environ["GNOMON_NATIVE"] = "SETTING"
    from gnomon import engine

    own = engine.get()
    told = []
    note = lambda ctx: told.append(ctx)
    a, b = own.new_variable(), own.new_variable()
    prepared = own.new_operator(note, (), (a,), kind="sync")
    inline = own.new_operator(note, (), (b,), kind="inline")
    fresh = [own.new_variable() for _ in range(2500)]
    lacking, remove, wait = _testcapi.set_nomemory, _testcapi.remove_mem_hooks, own.wait_for_all

    def work():
        new = fresh.pop()
        for _ in range(2):
            own.push_sync(note, None, (a,), (b,))
            own.push(prepared)
            own.push(inline)
            own.push_sync(note, None, (new,), (a,))
            own.push_sync(note, None, (b,), (new,))

    def attempt(first, last):
        lacking(first, last)
        try:
            work()
            wait()
        except BaseException as error:
            return error

    for _ in range(500):
        work()
    wait()
    faulthandler.dump_traceback_later(50, exit=True)
    for first in range(80):
        for count in (1, 2, 3, 6, 12):
            try:
                error = attempt(first, first + count)
            except BaseException as another:  # to return lacked memory, too
                error = another
            finally:
                remove()
            # Python says SystemError where there is no memory for the error of a lack
            assert isinstance(error, (MemoryError, SystemError, engine.EngineError, type(None)))
            try:
                wait()
                own.wait_for_var(a)
                own.wait_for_var(b)
            except engine.EngineError as error:
                assert "MemoryError" in str(error), error
            assert gc.isenabled()
            error = another = None
            told.clear()
            own.push_sync(lambda ctx: None, None, (), (a, b))  # heals it
            work()
            wait()
            assert len(told) == 10, told
    print("fine")
"""


@pytest.mark.parametrize("native", ["1", "0"])
def test_every_step_that_memory_may_lack_for(native):
    pytest.importorskip("_testcapi")
    code, said = run(PROGRAM.replace("SETTING", native), limit=80)
    assert code == 0 and said.splitlines()[-1] == "fine", said


UNBORN = """
    import faulthandler, time
    from gnomon import engine

    class Late:
        def __init__(self, life, times):
            self.life, self.times = life, times

        def __call__(self, *given):
            self.times -= 1
            if self.times >= 0:
                raise MemoryError
            return self.life(*given)

    faulthandler.dump_traceback_later(50, exit=True)
    own = engine.create()
    own._serve = Late(own._serve, 3)
    a, told = own.new_variable(), []
    for _ in range(4):
        own.push_sync(lambda ctx: told.append(time.sleep(0.01)), None, (), (a,))
    own.wait_for_all()
    assert len(told) == 4 and own._serve.times < 0
    own.stop()
    print("fine")
"""


def test_a_thread_for_whose_first_frame_memory_lacks_begins_later():
    code, said = run(UNBORN, limit=80)
    assert code == 0 and said.splitlines()[-1] == "fine", said


FOLLOWED = """
    import faulthandler, time
    from gnomon import engine, nd

    faulthandler.dump_traceback_later(50, exit=True)
    own, seen = engine.get(), []
    real = own._trail

    def trail(gate):
        seen.append(gate)
        if len(seen) < 3:
            own._lock.acquire()  # as a `with` that memory lacks to leave
            raise MemoryError
        real(gate)

    own._trail = trail
    with own._lock:
        own._follow()
    while len(seen) < 3:
        time.sleep(0.01)
    x = nd.ones((2, 3))
    assert (x + 1).sum().asscalar() == 12
    print("fine")
"""


def test_what_follows_work_behind_begins_anew_where_memory_lacks():
    code, said = run(FOLLOWED, limit=80)
    assert code == 0 and said.splitlines()[-1] == "fine", said

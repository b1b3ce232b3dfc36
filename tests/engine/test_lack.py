"""Where memory lacks for a step of the engine's, nothing is lost, nothing hangs."""

from __future__ import annotations

import pytest

from tests.engine.processes import run

PROGRAM = """
    import faulthandler, gc, _testcapi
    from gnomon import engine

    own = engine.get()
    told = []
    note = lambda ctx: told.append(ctx)
    a, b = own.new_variable(), own.new_variable()
    prepared = own.new_operator(note, (), (a,), kind="sync")

    def work():
        for _ in range(3):
            own.push_sync(note, None, (a,), (b,))
            own.push(prepared)

    for _ in range(500):
        work()
    own.wait_for_all()
    faulthandler.dump_traceback_later(50, exit=True)
    for first in range(70):
        for count in (1, 6):
            _testcapi.set_nomemory(first, first + count)
            try:
                work()
                own.wait_for_all()
            except (MemoryError, engine.EngineError):
                pass
            finally:
                _testcapi.remove_mem_hooks()
            try:
                own.wait_for_all()
                own.wait_for_var(a)
                own.wait_for_var(b)
            except engine.EngineError as error:
                assert "MemoryError" in str(error), error
            assert gc.isenabled()
            told.clear()
            own.push_sync(lambda ctx: None, None, (), (b,))  # heals it
            work()
            own.wait_for_all()
            assert len(told) == 6, told
    print("fine")
"""


def test_every_step_that_memory_may_lack_for():
    pytest.importorskip("_testcapi")
    code, said = run(PROGRAM, limit=80)
    assert code == 0 and said.splitlines()[-1] == "fine", said

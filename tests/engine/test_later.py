"""What is held back runs before anybody could tell, or joined with what comes right after."""

import threading

import pytest

from gnomon import engine
from gnomon.base import EngineError


@pytest.fixture
def one():
    return engine.create("ThreadedEnginePerDevice")


def later(one, told, word, *variables):
    return one.push_later(lambda run_ctx: told.append(word), mutate_vars=variables, name=word)


def test_it_waits_for_the_next_entry(one):
    x, y, told = one.new_variable(), one.new_variable(), []
    later(one, told, "a", x)
    assert told == []
    one.wait_for_var(y)  # of anything
    assert told == ["a"]


@pytest.mark.parametrize("entry", ["push_inline", "push_later", "push_sync"])
def test_pushes_come_after_it(one, entry):
    x, told = one.new_variable(), []
    later(one, told, "a", x)
    getattr(one, entry)(lambda run_ctx: told.append("b"), mutate_vars=[x])
    one.wait_for_var(x)
    assert told == ["a", "b"]


def test_a_brief_kernel_comes_after_it(one):
    x, told = one.new_variable(), []
    later(one, told, "a", x)
    assert not one.run_brief(lambda run_ctx: told.append("b"), (), (x,))


@pytest.mark.parametrize("brief", [True, False])
def test_another_may_stand_in_its_place_and_does_its_work(one, brief):
    x, y, told = one.new_variable(), one.new_variable(), []

    def both(run_ctx):
        told.append("a and b")

    job = later(one, told, "a", x)
    held = one.hold_instead(job, both, (), (x, y), "both")
    assert one.is_held_back(held) and not one.is_held_back(job) and told == []
    assert one.hold_instead(job, both, (), (x, y), "both") is None
    one.push_held(held, brief)
    assert told == ["a and b"] and (x.version, y.version) == (1, 1)
    one.push_held(held, brief)  # another thread was first
    one.wait_for_all()
    assert told == ["a and b"]


@pytest.mark.parametrize("brief", [True, False])
def test_a_wait_runs_what_stands_in_its_place(one, brief):
    x, y, told = one.new_variable(), one.new_variable(), []
    job = later(one, told, "a", x)
    held = one.hold_instead(job, lambda run_ctx: told.append("a and b"), (), (x, y), "both")
    one.wait_for_var(y)  # as a signal's handler may do it
    assert told == ["a and b"]
    one.push_held(held, brief)
    one.wait_for_all()
    assert told == ["a and b"] and x.version == 1


def test_nothing_stands_in_the_place_of_what_has_run(one):
    x, told = one.new_variable(), []
    job = later(one, told, "a", x)
    one.wait_for_all()
    assert one.hold_instead(job, print, (), (x,), "late") is None
    assert told == ["a"]


def test_another_thread_runs_it(one):
    x, told = one.new_variable(), []
    later(one, told, "a", x)
    thread = threading.Thread(target=one.wait_for_all)
    thread.start()
    thread.join()
    assert told == ["a"]


def test_in_a_function_of_the_engine_nothing_is_held_back(one):
    x, y, told = one.new_variable(), one.new_variable(), []

    def outer(run_ctx):
        later(one, told, "inner", y)
        told.append("outer")

    one.push_inline(outer, mutate_vars=[x])
    one.wait_for_var(y)
    assert told == ["outer", "inner"]


def test_failures_are_told_at_the_wait(one):
    x = one.new_variable()

    def fails(run_ctx):
        raise ValueError("no")

    one.push_later(fails, mutate_vars=[x], name="fails")
    with pytest.raises(EngineError, match="fails"):
        one.wait_for_var(x)


def test_the_naive_engine_holds_nothing_back():
    naive, told = engine.create("NaiveEngine"), []
    job = later(naive, told, "a", naive.new_variable())
    assert told == ["a"] and not naive.is_held_back(job)
    assert naive.hold_instead(job, print, (), (), "late") is None


def test_a_handler_amid_its_entry_enters_it_no_second_time(one, monkeypatch):
    x, told = one.new_variable(), []
    held = later(one, told, "a", x)
    admit = type(one)._admit

    def interrupted(self, job):
        monkeypatch.undo()
        ready = admit(self, job)
        later(one, told, "b", x)
        assert not one.is_held_back(held)
        one.push_sync(lambda run_ctx: told.append("c"), mutate_vars=[x])
        return ready

    monkeypatch.setattr(type(one), "_admit", interrupted)
    one.wait_for_var(x)
    one.wait_for_all()
    assert told == ["a", "b", "c"] and one._pending == 0

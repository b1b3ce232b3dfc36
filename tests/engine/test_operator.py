"""Prepared operators, deletion of operators and variables, bulk."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from gnomon import engine
from gnomon.base import EngineError


@pytest.mark.parametrize("kind", ["sync", "inline", "brief", "async"])
def test_an_operator_is_pushed_many_times(any_engine, kind):
    var, seen = any_engine.new_variable(), []

    def function(ctx, on_complete=None):
        seen.append(len(seen))
        if on_complete is not None:
            on_complete()

    operator = any_engine.new_operator(function, (), [var], kind=kind)
    for _ in range(50):
        any_engine.push(operator)
    any_engine.delete_operator(operator)
    assert seen == list(range(50))
    assert var.version == 50
    with pytest.raises(EngineError, match=r"operator .*function' was deleted"):
        any_engine.push(operator)


def test_operators_are_asynchronous_unless_told_otherwise(threaded):
    done = []
    operator = threaded.new_operator(lambda ctx, on_complete: done.append(on_complete))
    threaded.push(operator)
    while not done:
        threading.Event().wait(0.001)
    threading.Timer(0.02, done[0]).start()
    threaded.delete_operator(operator)
    assert operator.active == 0


def test_an_unknown_kind_is_refused(any_engine):
    with pytest.raises(EngineError, match="expected one of sync, async, inline, brief"):
        any_engine.new_operator(lambda ctx: None, kind="quick")


def test_deleting_an_operator_waits_for_it(threaded):
    go, seen = threading.Event(), []
    operator = threaded.new_operator(lambda ctx: seen.append(go.wait(5)), kind="sync")
    threaded.push(operator)
    threaded.push(operator)
    threading.Timer(0.02, go.set).start()
    threaded.delete_operator(operator)
    assert seen == [True, True]


def test_an_operator_cannot_be_deleted_by_itself(threaded):
    box = []
    box.append(threaded.new_operator(lambda ctx: threaded.delete_operator(box[0]), kind="sync"))
    threaded.push(box[0])
    with pytest.raises(EngineError, match="itself"):
        threaded.wait_for_all()


def test_a_deleted_variable_is_refused_and_its_users_finish(any_engine):
    var, seen = any_engine.new_variable("page"), []
    for number in range(3):
        any_engine.push_sync(lambda ctx, n=number: seen.append(n), None, [var])
    operator = any_engine.new_operator(lambda ctx: None, [var], kind="sync")
    any_engine.push_delete(lambda ctx: seen.append("freed"), None, var)
    with pytest.raises(EngineError, match=r"push_sync: Var\(page.*was deleted"):
        any_engine.push_sync(lambda ctx: None, None, [var])
    with pytest.raises(EngineError, match=r"Var\(page.*of operator"):
        any_engine.push(operator)
    any_engine.wait_for_all()
    assert sorted(seen[:3]) == [0, 1, 2]
    assert seen[3] == "freed"


def test_delete_variable(any_engine):
    var = any_engine.new_var()
    any_engine.delete_variable(var)
    with pytest.raises(EngineError, match="was deleted"):
        any_engine.push_sync(lambda ctx: None, None, (), [var])


def test_a_resource_is_freed_though_its_variable_is_poisoned(threaded):
    var, seen = threaded.new_variable(), []
    threaded.push_sync(lambda ctx: 1 // 0, None, (), [var])
    threaded.push_delete(lambda ctx: seen.append("freed"), None, var)
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        threaded.wait_for_all()
    assert seen == ["freed"]


def test_bulk_joins_pushes(threaded):
    var, seen, threads = threaded.new_variable(), [], set()
    with threaded.bulk(4):
        for number in range(10):
            threaded.push_sync(lambda ctx, n=number: seen.append(n), None, (), [var])
            threaded.push_sync(lambda ctx: threads.add(threading.get_ident()))
        assert var.version < 10
    threaded.wait_for_var(var)
    assert seen == list(range(10))
    assert var.version <= 5  # joined: fewer engine operations than writes


def test_bulk_cannot_be_told_from_its_absence(threaded):
    var, out, seen = threaded.new_variable(), threaded.new_variable(), []
    with threaded.bulk(100):
        threaded.push_sync(lambda ctx: seen.append("write"), None, (), [var])
        threaded.push_inline(lambda ctx: seen.append("inline"), None, [var])
        threaded.push_sync(lambda ctx: seen.append("write again"), None, (), [var])
        threaded.wait_for_var(var)
        assert seen == ["write", "inline", "write again"]
        threaded.push_sync(lambda ctx: seen.append("mine"), None, (), [var])
        other = threading.Thread(
            target=lambda: threaded.push_sync(
                lambda ctx: seen.append("other's"), None, [var], [out]
            )
        )
        other.start()
        other.join()
        threaded.wait_for_var(out)
        assert seen[3:] == ["mine", "other's"]
        threaded.push_sync(lambda ctx: seen.append("last"))
        threaded.wait_for_all()
    assert seen[5:] == ["last"]


def test_what_a_bulk_held_goes_without_the_collector(threaded):
    class Held:
        def __call__(self, run_ctx):
            pass

    def push(count):
        held = [Held() for _ in range(count)]
        with threaded.bulk(count):
            for each in held:
                threaded.push_sync(each)
        threaded.wait_for_all()
        return [weakref.ref(each) for each in held]

    gc.disable()
    try:
        refs = push(5)
        push(1)  # a worker may hold its last job until it has another
        assert [ref() for ref in refs] == [None] * 5
    finally:
        gc.enable()


def test_bulk_keeps_failures_apart(threaded):
    good, bad, late = (threaded.new_variable() for _ in range(3))
    with threaded.bulk(10):
        threaded.push_sync(lambda ctx: None, None, (), [good])
        threaded.push_sync(lambda ctx: 1 // 0, None, (), [bad])
        threaded.push_sync(lambda ctx: None, None, [bad], [late])
    threaded.wait_for_var(good)
    for var in (bad, late):
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            threaded.wait_for_var(var)


def test_bulk_size_is_set_and_given_back(any_engine):
    assert any_engine.set_bulk_size(7) == 0
    assert any_engine.set_bulk_size(0) == 7
    with pytest.raises(EngineError, match="integer of at least 0, got -1"):
        any_engine.set_bulk_size(-1)


def test_bulk_closes_the_native_way_no_longer_than_a_scope(threaded):
    opened, leave = threading.Event(), threading.Event()

    def other():
        with threaded.bulk(8):
            opened.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with threaded.bulk(3):
        thread.start()
        opened.wait()
    assert threaded._bulking
    leave.set()
    thread.join()
    assert not threaded._bulking


def test_the_process_has_one_engine():
    first = engine.get()
    assert engine.get() is first
    assert isinstance(first, engine.Engine)
    with engine.bulk(3):
        assert engine.set_bulk_size(3) == 3

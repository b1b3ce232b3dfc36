"""What other threads do meanwhile: resize what is computed with, fork, note statements."""

from __future__ import annotations

import copy
import importlib
import io
import os
import sys
import threading

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import GnomonError
from gnomon.expr.pattern import EPOCH, pattern_of
from gnomon.ground.lock import first_use
from gnomon.ground.record import put
from gnomon.runtime.statements import call_cache, dispatch
from gnomon.shadow import TensorContainer, fn

LARGE = 300_000  # elements: whoever stores them lets other threads run


def together(*works) -> list[BaseException]:
    """The errors of functions that run side by side until the first one has ended."""
    errors: list[BaseException] = []
    ended = threading.Event()

    def again(work):
        try:
            while not ended.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=again, args=(work,)) for work in works[1:]]
    for thread in others:
        thread.start()
    try:
        works[0]()
    finally:
        ended.set()
        for thread in others:
            thread.join()
    return errors


@pytest.fixture(params=[None, 3e-5], ids=["usual turns", "short turns"])
def turns(request):
    """How long a thread may run before others do, in seconds: Python's 5 ms, or hardly."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(request.param or before)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("turns")
@pytest.mark.parametrize("count", [7, LARGE])
@pytest.mark.parametrize("product", [False, True])
def test_a_container_is_resized_while_others_compute_with_it(count, product):
    box, small = TensorContainer((count,), init=1.0), TensorContainer((8, 8), init=1.0)
    watched = [TensorContainer((count,), init=5.0) for _ in range(8)]
    done = refused = 0

    def compute():
        nonlocal done, refused
        try:
            box[:] = box * 0.5 + 1.0
            box.__iadd__(2.0)
            if product:
                small[:] = shadow.dot(small, small.T)
            done += 1
        except GnomonError:  # it has no memory just now, or an expression has another shape
            refused += 1

    def resize():
        fresh = []
        for k in range(400):
            box.resize((count + 64 * (k % 5),))
            small.resize((8 + 8 * (k % 3), 8 + 8 * (k % 3)))
            if k % 7 == 0:  # memory that was given back is in other hands at once
                fresh.append(TensorContainer((count,), init=5.0))
                box.resize((1,))
                shadow.free_space(box)
                box.resize((count,))
        watched.extend(fresh)

    assert together(resize, compute, compute) == []
    before = done
    compute()  # what came between has left nothing behind
    assert done == before + 1
    for other in watched:
        assert (other.numpy() == 5.0).all()


def test_two_threads_resize_one_container():
    box = TensorContainer((5, 5))

    def resize(sizes):
        for n in sizes:
            box.resize((n, n + 1))

    assert together(lambda: resize(range(1, 400)), lambda: resize((70, 3, 120))) == []
    assert box.owner.nbytes >= shadow.Shape(box.shape).size() * 4
    assert box.address == box.owner.address
    assert len(box.strides) == 2


def test_a_container_without_memory_takes_some_again():
    box = shadow.alloc_space((3, 4))
    shadow.free_space(box)
    box.resize((2, 3))
    box[:] = 4.0
    np.testing.assert_array_equal(box.numpy(), np.full((2, 3), 4.0))


@pytest.mark.native
def test_a_child_learns_statements_whoever_was_noting_them():
    a, b = TensorContainer((6,), init=1.0), TensorContainer((6,), init=2.0)
    for _ in range(call_cache.PATIENCE + 200):
        a[:] = b + 1.0
    with call_cache._writing[0], dispatch.tracing(Elsewhere()):
        release, held = threading.Event(), threading.Event()

        def trace():
            with dispatch.tracing(Elsewhere()):
                held.set()
                release.wait()

        thread = threading.Thread(target=trace)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            os._exit(learns())
        release.set()
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Elsewhere:
    """Takes statements and forgets them."""

    def take(self, stores, together):
        pass

    def draw(self, source, count):
        raise AssertionError


def learns() -> int:
    """0 where statements become quick in this process."""
    try:
        dispatch._thread.tracer = None  # that of the thread that forked goes on
        dispatch.TRACERS.clear()
        a, b = TensorContainer((6,), init=1.0), TensorContainer((6,), init=2.0)
        for _ in range(40):
            a[:] = b + 1.0
        noted = [launch.noted for launch in dispatch.KNOWN["saveto"].values()]
        return 0 if any(noted) and (a.numpy() == 3.0).all() else 1
    except BaseException:
        return 2


def test_a_child_looks_for_extensions_whoever_was_loading_them():
    release, held = threading.Event(), threading.Event()

    def load():
        with first_use:
            held.set()
            release.wait()

    thread = threading.Thread(target=load)
    thread.start()
    assert held.wait(9)
    threading.Timer(0.05, release.set).start()
    child = os.fork()  # it waits for the first use to end
    if child == 0:
        os._exit(hasattr(shadow, "there_is_none"))
    assert release.is_set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_draws_from_a_stream_whoever_was_drawing():
    stream, drawn = shadow.Random(seed=3), TensorContainer((4,))
    with stream._lock:
        child = os.fork()
        if child == 0:
            drawn[:] = stream.uniform((4,))
            os._exit(0 if (drawn.numpy() < 1).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.usefixtures("turns")
def test_views_lie_in_the_memory_that_they_keep():
    box = TensorContainer((64,))
    outside = []

    def look():
        try:
            for view in (box[1:3], box.flat_to_1d()):
                begin, end = view.owner.address, view.owner.address + view.owner.nbytes
                if not begin <= view.address <= view.address + 4 * view.shape[0] <= end:
                    outside.append((begin, view.address, view.shape, end))
        except GnomonError:  # it has no memory just now
            pass

    def resize():
        for k in range(2000):
            if k % 7 == 0:
                shadow.free_space(box)
            box.resize(((64, 3000, 4)[k % 3],))

    assert together(resize, look, look) == []
    assert outside == []


def during(monkeypatch, place: str, box: TensorContainer, sizes: tuple[int, ...]):
    """Let a container take another shape once, while a function is being called."""
    module, _, name = place.rpartition(".")
    module = importlib.import_module(module)
    function, turns = getattr(module, name), [sizes]

    def changing(*args, **named):
        found = function(*args, **named)
        if turns:
            box.resize(turns.pop())
        return found

    monkeypatch.setattr(module, name, changing)


@pytest.mark.native
def test_what_was_made_of_a_shape_before_is_not_found_after():
    box, other = TensorContainer((64,), init=1.0), TensorContainer((8,))
    for _ in range(call_cache.PATIENCE + 200):
        other[:] = other + 1.0
    epoch = EPOCH.value
    made, mirrored = fn.maximum(box, 2.5), shadow.flip(box, 0)
    box.resize((8,))
    call_cache._note_map(fn.maximum, (box, 2.5), made, epoch)
    call_cache._note_call(shadow.flip.__wrapped__, (box, 0), mirrored, epoch)
    assert fn.maximum(box, 2.5).shape == (8,)
    assert shadow.flip(box, 0).shape == (8,)


@pytest.mark.parametrize("sizes", [(7,), (700,)])
def test_an_older_pattern_on_a_tensor_is_not_taken_for_its_own(sizes):
    box, total = TensorContainer((50,), init=1.0), TensorContainer(())
    room = TensorContainer((800,), init=1.0)
    other = room[:50]
    pattern_of(other)
    older = pattern_of(box)
    box.resize(sizes)
    box[:] = 1.0
    for _ in range(6):
        put(box, "pattern", older)  # as a thread does that looked before
        total[:] = shadow.reduce(box, "sum")
        assert total.numpy() == sizes[0]
        total[:] = shadow.reduce(other, "sum")
        assert total.numpy() == 50


def test_statements_become_quick_again_after_another_tensor_was_resized():
    box, a, b = (TensorContainer((6,), init=1.0) for _ in range(3))
    for _ in range(2):
        box.resize((9,))
        for _ in range(4):
            a[:] = b * 1.5
        key = (pattern_of(b * 1.5), pattern_of(a))
        assert dispatch.KNOWN["saveto"][key].epoch == EPOCH.value


def test_a_layout_is_that_of_the_strides(monkeypatch):
    box = TensorContainer((4, 16))
    during(monkeypatch, "gnomon.shadow.container.stride_classes", box, (4, 5))
    assert box.layout != box.layout


@pytest.mark.parametrize(
    ("place", "make"),
    [
        ("gnomon.shadow.lvalue.slice_", lambda t: shadow.slice_ex(t, (10,), (60,))),
        ("gnomon.shadow.lvalue.mirrored", lambda t: shadow.flip(t, 0)),
        ("gnomon.shadow.tensor.prod", lambda t: t.flat_to_1d()),
        ("gnomon.shadow.tensor.inside", lambda t: t[-5:]),
        ("gnomon.shadow.tensor.is_read_only", copy.copy),
    ],
)
def test_views_are_of_one_shape(monkeypatch, place, make):
    box = TensorContainer((64,), init=1.0)
    during(monkeypatch, place, box, (24,))
    view = make(box)
    last = {24: 96, 14: 96, 5: 96}[view.shape[0]]
    first = view.address + 4 * min(0, view.strides[0] * (view.shape[0] - 1))
    assert first + 4 * view.shape[0] == box.address + last


def test_what_is_written_of_a_tensor_fits_its_sizes(monkeypatch):
    box, stream = TensorContainer((64,), init=1.0), io.BytesIO()
    during(monkeypatch, "gnomon.shadow.binary.method", box, (3,))
    shadow.save_binary(stream, box)
    assert len(stream.getvalue()) == 4 + 4 * 64
    assert stream.getvalue()[:4] == (64).to_bytes(4, "little")

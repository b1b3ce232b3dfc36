"""Random programs whose native work runs behind them: the same bits as where each runs at once.

Beside statements on arrays, views and shifted parts of themselves there are functions of the
engine in Python, slow native work, reads in the middle, and several threads, which read an array
that they have in common.

Programs in a row, a *block*, have few statements in common, on other arrays and in another order in
each: so most of what they compile is there from programs before. Other blocks have others.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ndarray.test_programs import on_some, statement
from streamed import Slow, all_behind

from gnomon import autograd, config, cpu, engine, nd, optimizer, sym
from gnomon.ground.record import put
from gnomon.native import serve
from gnomon.ndarray.lazy import applied, notes, repeat
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.runtime.execution import program as programs
from gnomon.runtime.execution import stream
from gnomon.runtime.statements.fields import readable

EXTRA = [
    "python(x{a})",
    "python(x{a}, x{b})",
    "slow(x{a})",
    "slow(x{a}, x{b})",
    "x{a} = x{b} + x{c}.sum(axis=0, keepdims=True)",
    "x{a}[:] = dot(dot(x{b}, x{c}, transpose_b=True), x{a}) * 0.01",
    "x{a} = softmax(x{b})",
    "seen.append(x{a}.asnumpy())",
    "seen.append((x{a} + x{b}).sum().asscalar())",
    "x{a} = gradient(x{b}, x{c})",
    "x{a} = x{b}.copy()",
    "x{a}[1] = x{b}[2]",
    "x{a}[[0, 2]] = x{b}[1:3]",
    "x{a}[[3, 1]] = x{a}[0:2]",
    "part = x{b}[1:] - x{c}[:-1]",
    "x{a}[:-1] += part; part = x{b}[:3]",
    "x{a}[1:] = part",
    "x{a} = x{b} * common",
    "x{a}[:-1] += common[1:]",
    "python(x{a}, common)",
    "del x{a}; x{a} = zeros(shape)",
    "wait()",
]
SHAPE = (4, 5)


class Block:
    """Programs in a row, and the statements that they have in common."""

    def __init__(self, number: int, count: int) -> None:
        draw = random.Random(number)
        self.length = draw.randint(8, 28)
        self.usual = [statement(draw) for _ in range(8)]
        self.extra = draw.sample(EXTRA, 8)
        self.texts = [self._text(random.Random(f"{number} {k}")) for k in range(count)]

    def _text(self, draw: random.Random) -> str:
        """The half are usual statements."""
        lines = [on_some(draw, draw.choice(self.usual)) for _ in range(self.length)]
        for _ in range(self.length):
            a, b, c = draw.sample(range(4), 3)
            place = draw.randrange(len(lines) + 1)
            lines.insert(place, draw.choice(self.extra).format(a=a, b=b, c=c))
        return "\n".join(lines)


def python(dest: Any, source: Any = None) -> None:
    """A function of the engine that computes with NumPy, sometimes after a while."""
    pause = random.Random(dest.size).choice([0, 0, 0.0002])

    def work(run_ctx: Any) -> None:
        time.sleep(pause)
        if source is None:
            into[...] = into * 0.5 + 1
        else:
            into[...] = into + 0.25 * taken

    reads = [source._var] if source is not None and source._var is not dest._var else []
    into, taken = dest._numpy(), None if source is None else source._numpy()
    engine.get().push_sync(work, None, reads, [dest._var])


def slow(dest: Any, source: Any = None) -> None:
    """Native work that does nothing for a while, and says that it writes an array."""
    reads = [source._var] if source is not None and source._var is not dest._var else []
    turn = Slow(20e-6).turn()
    engine.get().push_inline(turn, None, reads, [dest._var])


def gradient(x: Any, y: Any) -> Any:
    x = x.copy()
    x.attach_grad()
    with autograd.record():
        z = (x * y + nd.tanh(x)).sum()
    z.backward()
    return x.grad * 0.5


def run(text: str, given: list[np.ndarray], common: Any) -> list[np.ndarray]:
    """All that a program computes and reads, of which `common` is the same array in all."""
    seen: list[Any] = []
    names: dict[str, Any] = {f"x{k}": nd.array(x) for k, x in enumerate(given)}
    names |= {"maximum": nd.maximum, "abs": nd.abs, "dot": nd.dot, "softmax": nd.softmax}
    names |= {"python": python, "slow": slow, "gradient": gradient, "seen": seen}
    names |= {"zeros": nd.zeros, "shape": SHAPE, "wait": nd.waitall, "part": nd.ones((3, 5))}
    names["common"] = common
    exec(text, names)
    arrays = [names[name] for name in ("x0", "x1", "x2", "x3", "part")]
    return [*(x.asnumpy() for x in arrays), *map(np.asarray, seen)]


def beside(count: int, work: Callable[[int], None]) -> None:
    """Run `work(number)` in so many threads."""
    wrong: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    if wrong:
        raise wrong[0]


def compare(texts: list[str], patch: pytest.MonkeyPatch) -> None:
    """Run programs under the naive engine, then all behind, by one thread and by several."""
    given = [np.random.default_rng(k).normal(size=SHAPE).astype("f") for k in range(4)]
    before = engine.get()
    try:
        engine.use(engine.create("NaiveEngine"))
        with np.errstate(all="ignore"):
            common = nd.array(given[0])
            expected = [run(text, given, common) for text in texts]
        made = engine.create("ThreadedEnginePerDevice")
        engine.use(made)
        common = nd.array(given[0])

        def check(number: int) -> None:
            for text, values in list(zip(texts, expected, strict=True))[number % 2 :: 1 + number]:
                for found, value in zip(run(text, given, common), values, strict=True):
                    np.testing.assert_array_equal(found, value, err_msg=text)

        with all_behind(patch), np.errstate(all="ignore"):
            check(0)
            beside(3, check)
        made.stop()
    finally:
        engine.use(before)


@pytest.mark.parametrize("number", range(5))
def test_random_programs_are_what_they_are_at_once(number, monkeypatch):
    compare(Block(number, 8).texts, monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(1000, 1400))
def test_a_hundred_thousand_programs_are_what_they_are_at_once(number, monkeypatch):
    compare(Block(number, 250).texts, monkeypatch)


@pytest.fixture
def long_dot(monkeypatch):
    """A product that is long, whatever time it takes here, and who enters its tasks: counts."""
    monkeypatch.setattr("gnomon.runtime.kernels.template.is_long", lambda *given: True)
    by_python, before = [], stream.enter
    monkeypatch.setattr(stream, "enter", lambda *given: (by_python.append(1), before(*given)))
    a = nd.array(np.random.default_rng(0).normal(size=(300, 301)))
    b = nd.array(np.random.default_rng(1).normal(size=(301, 299)))
    nd.waitall()

    def pushed(work: Callable[[], Any]) -> tuple[Any, int, int]:
        """What some work gives, and how many tasks came by Python and by native code."""
        all_before, python_before = entered(), len(by_python)
        made = work()
        python = len(by_python) - python_before
        return made, python, entered() - all_before - python

    return a, b, pushed


def entered() -> int:
    """Tasks that ever came, counted while none goes from pending to done: it would count twice."""
    while True:
        done = stream.done()
        found = stream.pending() + done
        if stream.done() == done:
            return found


def test_long_work_that_came_before_is_pushed_by_native_code(long_dot):
    a, b, pushed = long_dot
    right = a.asnumpy() @ b.asnumpy()
    for _ in range(2):
        nd.dot(a, b).wait_to_read()
    for count in (1, 3):
        made, python, native = pushed(lambda n=count: [nd.dot(a, b) for _ in range(n)])
        assert python + native == count and native >= readable()  # at least one was spare
        for y in made:
            np.testing.assert_allclose(y.asnumpy(), right, rtol=1e-4, atol=1e-4)
            assert y._chunk.version == 1
    made, python, native = pushed(lambda: nd.dot(nd.dot(a, b), b.T))
    nd.waitall()
    np.testing.assert_allclose(made.asnumpy(), right @ b.asnumpy().T, rtol=1e-4, atol=1e-3)
    assert native >= readable()


def test_memory_of_long_work_comes_and_goes_without_python(long_dot):
    a, b, _ = long_dot
    for _ in range(5):
        nd.dot(a, b).wait_to_read()
    called = set[str]()
    sys.setprofile(lambda frame, event, arg: called.add(frame.f_code.co_name))
    try:
        made = nd.dot(a, b)
        made.wait_to_read()
        made = None
    finally:
        sys.setprofile(None)
    assert made is None and "wait_to_read" in called
    ways = {"allocate", "take", "fitting", "taken", "forget", "put_back"}
    assert ways.isdisjoint(called) == readable()


@pytest.mark.parametrize("what", ["shared", "observed", "failed", "written", "off"])
def test_what_is_unusual_is_not_pushed_by_native_code(what, long_dot):
    a, b, pushed = long_dot
    right = a.asnumpy() @ b.asnumpy()
    if what == "shared":
        a = nd.from_numpy(a.asnumpy(), zero_copy=True)
    for _ in range(3):
        nd.dot(a, b).wait_to_read()
    current, gate = engine.get(), threading.Event()
    if what == "observed":
        current.observe(lambda *told: None)
    elif what == "failed":
        current.push_sync(lambda run_ctx: 1 / 0, None, [], [a._var])
        with pytest.raises(engine.EngineError):
            a.wait_to_read()
    elif what == "written":
        current.push_sync(lambda run_ctx: gate.wait(), None, [], [a._var])
    try:
        with config.using(streams=what != "off"):
            made, _, native = pushed(lambda: nd.dot(a, b))
    finally:
        gate.set()
        current.observe(None)
    assert not native
    if what != "failed":
        np.testing.assert_allclose(made.asnumpy(), right, rtol=1e-4, atol=1e-4)


def test_long_work_that_python_pushes_counts_more(long_dot, monkeypatch):
    a, b, _ = long_dot
    later = serve.Later(repeat.repeat, None, 1 << 30)
    later._has_looked = True
    monkeypatch.setattr(applied, "repeater", later)
    for _ in range(5):
        nd.dot(a, b).wait_to_read()
    assert later.calls > 2 * repeat.LONG


@pytest.mark.native
def test_what_is_short_after_all_is_applied_again_by_native_code(monkeypatch):
    unknown = "gnomon.runtime.kernels.template.is_long"
    monkeypatch.setattr(unknown, lambda work, seconds: seconds is None)
    x, summed = nd.array(np.arange(55.0).reshape(5, 11)), applied.applying("sum", axis=(0,))
    right, before = x.asnumpy().sum(axis=0).tolist(), stream.done()
    for _ in range(8):
        assert summed((x,)).asnumpy().tolist() == right
    assert stream.done() == before + 1  # the first time alone
    address, _, _, recipe, _ = summed._known[x._layout, None]
    assert address == recipe.address != 0


def test_a_task_that_is_spare_keeps_nothing(long_dot):
    a, b = long_dot[0].copy(), long_dot[1]
    kept = weakref.ref(a._chunk)
    for _ in range(3):
        nd.dot(a, b).wait_to_read()
    nd.waitall()
    del a
    gc.collect()
    assert kept() is None


def test_passes_that_came_before_are_pushed_by_native_code(monkeypatch):
    x = sym.Variable("x")
    net = sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=500), name="softmax")
    bound = net.simple_bind(cpu(), x=(400, 600))
    for array in bound.arg_arrays:
        array[:] = nd.random.normal(scale=0.1, shape=array.shape)
    by_python, before = [], stream.enter
    monkeypatch.setattr(stream, "enter", lambda *given: (by_python.append(1), before(*given)))
    monkeypatch.setattr(programs, "is_long", lambda *given: True)

    def step() -> list[np.ndarray]:
        outputs = bound.forward(is_train=True)
        bound.backward()
        return [outputs[0].asnumpy(), *(g.asnumpy() for g in bound.grad_arrays)]

    first = step()
    nd.waitall()
    for k in range(4):
        bound.arg_dict["x"][:] = bound.arg_dict["x"] * 1.0
        by_python.clear()
        nd.waitall()
        count = entered()
        for found, value in zip(step(), first, strict=True):
            np.testing.assert_array_equal(found, value)
        native = entered() - count - len(by_python)
        assert native == (2 if readable() and k else native)


def trained(steps: int, after: Callable[[], None]) -> list[np.ndarray]:
    """The losses of steps on other batches, all of which are given away, and the weight."""
    draw = np.random.default_rng(0)
    weight = nd.array(draw.normal(size=(20, 30)))
    update = optimizer.get_updater(optimizer.SGD(0.01))
    weight.attach_grad()
    losses = []
    for _ in range(steps):
        batch = nd.array(draw.normal(size=(40, 30)))
        with autograd.record():
            loss = nd.mean(nd.relu(nd.FullyConnected(batch, weight, num_hidden=20, no_bias=True)))
        loss.backward()
        update([0], [weight.grad], [weight])
        losses.append(loss)
        after()
    return [x.asnumpy() for x in (*losses, weight)]


@pytest.mark.parametrize("waits", [True, False])
def test_recorded_steps_that_came_before_are_pushed_by_native_code(waits, monkeypatch):
    """With their update in one task; those too whose variables steps before still use."""
    with config.using(programs=False):
        right = trained(14, nd.waitall)
    monkeypatch.setattr(notes, "OFTEN", 2)
    put(here.own, "noted", None)
    by_python, before = [], stream.enter
    monkeypatch.setattr(stream, "enter", lambda *given: (by_python.append(1), before(*given)))
    counts: list[tuple[int, int]] = []

    def after() -> None:
        if waits or len(counts) == 8:
            nd.waitall()  # from then on, nothing does
        counts.append((entered(), len(by_python)))

    with all_behind(monkeypatch):
        found = trained(14, after)
    for x, y in zip(found, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    (first, python), (last, more) = counts[8], counts[12]
    assert last - first == 4
    assert more - python == (0 if readable() else 4)

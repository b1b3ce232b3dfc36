"""A program that has used all of gnomon forks children that use it too, and nothing hangs."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import first_use
import mixed_forks
import numpy as np
import pytest

import gnomon as mx
from gnomon import engine, shadow
from gnomon.ground import lock
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.shadow import Tensor, TensorContainer, fn

SECONDS = 60  # a hang is a failure, not a wait
ROOT = Path(__file__).parent.parent
FORK = multiprocessing.get_context("fork")
SIDE = 700  # large enough for kernels to use several threads


def compute() -> float:
    """A map, a reduction and a product, of sizes that are shared among threads."""
    x = Tensor(np.full((SIDE, SIDE), 0.5, np.float32))
    y, total = TensorContainer((SIDE, SIDE)), TensorContainer(())
    y[:] = fn.exp(x) * 2.0 + shadow.broadcast_to(shadow.reduce(x, "sum", 0, True), x.shape)
    y += shadow.dot(x, y.T)
    total[:] = shadow.reduce(y, "sum")
    return float(total.numpy())


def differentiate() -> float:
    x = mx.nd.ones((SIDE, SIDE))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.dot(mx.nd.tanh(x), x).sum()
    y.backward()
    return float(x.grad.asnumpy().sum())


def network() -> mx.sym.Symbol:
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Pooling(mx.sym.Activation(net, act_type="relu"), kernel=(2, 2), stride=(2, 2))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc"), name="softmax")


def batches() -> mx.io.NDArrayIter:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 1, 8, 8)).astype("f")
    return mx.io.NDArrayIter(data, rng.integers(0, 3, 40).astype("f"), 10)


def train(module: mx.mod.Module) -> float:
    module.fit(batches(), num_epoch=1, initializer=mx.init.One(), force_init=False)
    return float(np.abs(module.get_params()[0]["fc_weight"].asnumpy()).sum())


def predict(module: mx.mod.Module) -> float:
    return float(module.predict(batches()).asnumpy().sum())


class Program:
    """A program in the middle of its work: everything has been used, and a module is trained."""

    def __init__(self) -> None:
        self.module = mx.mod.Module(network(), context=mx.cpu())
        train(self.module)
        self.known = (compute(), differentiate(), predict(self.module))

    def everything(self) -> None:
        """Use it all again; AssertionError where results differ."""
        again = (compute(), differentiate(), predict(self.module))
        np.testing.assert_allclose(again, self.known, rtol=1e-4)

    def train_more(self) -> None:
        assert np.isfinite(train(self.module))


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


def report(work: Callable[[], Any], results: Any) -> None:
    """What a child does: `work`, and say how it went."""
    warnings.simplefilter("error")
    try:
        work()
        results.put("done")
    except BaseException as error:
        results.put(f"{type(error).__name__}: {error}")


@pytest.fixture
def children() -> Iterator[Callable[..., list[str]]]:
    """Runs functions in forked children at once, and gives what they reported."""
    started = []

    def run(*works: Callable[[], Any]) -> list[str]:
        results = FORK.Queue()
        with warnings.catch_warnings():  # Python 3.12 warns of forks beside threads, rightly
            warnings.simplefilter("ignore", DeprecationWarning)
            for work in works:
                child = FORK.Process(target=report, args=(work, results))
                child.start()
                started.append(child)
        found = [results.get(timeout=SECONDS) for _ in works]
        for child in started:
            child.join(SECONDS)
            assert child.exitcode == 0
        return found

    yield run
    for child in started:
        child.kill()
        child.join()


def test_children_do_all_that_their_parent_did(program, children):
    assert children(program.everything, program.everything) == ["done"] * 2
    program.everything()


def test_children_train_the_parent_s_module(program, children):
    before = predict(program.module)
    assert children(program.train_more, program.train_more) == ["done"] * 2
    assert predict(program.module) == pytest.approx(before)


@contextmanager
def repeated(work: Callable[[int], object], numbers: Iterable[int]) -> Iterator[None]:
    """Another thread does `work` with one number after the other, until the block is left."""
    stop = threading.Event()

    def busy() -> None:
        for number in numbers:
            if stop.is_set():
                break
            work(number)

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(SECONDS)
        assert not worker.is_alive()


def test_a_fork_while_work_is_under_way(program, children):
    """Functions are queued and other threads run kernels: the child begins with nothing to do."""
    variable = engine.get().new_variable()
    with repeated(lambda _: compute(), itertools.count()):
        for _ in range(20):
            engine.get().push_sync(lambda run_ctx: compute(), mx.cpu(), (), (variable,))
        assert children(program.everything) == ["done"]
    engine.get().wait_for_var(variable)


def test_children_compile_while_the_parent_compiles(program, children):
    """No lock of a compiler that another thread held at the fork stays shut in the child."""

    def fresh(code: int) -> None:
        x = Tensor(np.ones(5, np.float32))
        e: shadow.Exp = x
        for bit in range(12):  # a structure of its own for each code
            e = e + 1.0 if code >> bit & 1 else e * 2.0
        x[:] = e

    with repeated(fresh, range(1 << 11)):
        for k in range(8):
            assert children(partial(fresh, (1 << 11) + k)) == ["done"]


def test_children_make_primitives_while_the_parent_makes_some(program, children):
    """A library's lock that another thread held at the fork does not stay shut in the child."""

    def fresh(size: int) -> None:
        data, weight = mx.nd.ones((1, 2, size, 5)), mx.nd.ones((2, 2, 3, 3))
        mx.nd.Convolution(data, weight, num_filter=2, kernel=(3, 3), no_bias=True).asnumpy()

    with repeated(fresh, range(4, 1000)):
        for k in range(8):
            assert children(partial(fresh, 1000 + k)) == ["done"]


def test_children_of_children(program, children):
    def fork_again() -> None:
        program.everything()
        results = FORK.Queue()
        child = FORK.Process(target=report, args=(program.everything, results))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        assert results.get(timeout=SECONDS) == "done"
        child.join(SECONDS)

    assert children(fork_again) == ["done"]


def test_a_child_runs_on_one_thread_and_frees_its_memory(program, children):
    parent = threads.num_threads()

    def look() -> None:
        assert threads.num_threads() == 1
        pool.release_all()
        compute()

    assert children(look) == ["done"]
    assert threads.num_threads() == parent


def test_a_pool_of_workers_maps_arrays(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with FORK.Pool(2) as workers:
            found = workers.map_async(square, range(6)).get(SECONDS)
    assert found == [k * k * 4.0 for k in range(6)]


def square(k: int) -> float:
    return float((mx.nd.full((2, 2), k) ** 2).sum().asscalar())


@pytest.mark.parametrize("what", first_use.READY)
def test_a_fork_while_another_thread_uses_something_for_the_first_time(what, tmp_path):
    for k, seconds in enumerate((0.02, 0.15)):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": str(tmp_path / str(k))}
        command = [sys.executable, first_use.__file__, what, str(seconds)]
        subprocess.run(command, env=env, timeout=100, check=True)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_three_hundred_forks_while_everything_is_used(seed):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, mixed_forks.__file__, "100", str(seed)]
    seen: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 1200}
    done = subprocess.run(command, env=env, check=False, **seen)
    assert done.stdout.split() == ["fine"], done.stderr[-20_000:]


class Slow:
    """Finds and loads one module of gnomon's that takes long to import."""

    name = "gnomon.slow_for_a_test"

    def __init__(self) -> None:
        self.begun = threading.Event()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self.name else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        self.begun.set()
        time.sleep(0.3)
        module.whole = True


def test_a_fork_waits_for_an_import_statement(monkeypatch):
    slow = Slow()
    monkeypatch.setattr(sys, "meta_path", [slow, *sys.meta_path])
    importing = threading.Thread(target=exec, args=(f"import {slow.name}",))
    importing.start()
    slow.begun.wait()
    child = FORK.Process(target=exec, args=(f"import {slow.name} as m; assert m.whole",))
    child.start()
    importing.join()
    child.join(SECONDS)
    code, _ = child.exitcode, child.kill()
    del sys.modules[slow.name]
    assert code == 0


def forked(child: Callable[[], bool]) -> None:
    """Fork; AssertionError unless the child ends, and finds what it looks at."""
    pid = os.fork()
    if not pid:
        os._exit(not child())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_hooks_that_are_registered_while_a_fork_waits_count(monkeypatch):
    """As those of a module that another thread imports: it may hold that module's lock by now."""
    monkeypatch.setattr(lock, "_hooks", [*lock._hooks])
    told, own, begun = list[str](), lock.reentrant(), threading.Event()

    def use():
        with lock.first_use:
            begun.set()
            time.sleep(0.1)  # the fork waits
            lock.around_forks(own.acquire, partial(lock.give_back, own), partial(lock.renew, own))
            lock.around_forks(*(partial(told.append, word) for word in ("before", "after", "in")))
            own.acquire()
        time.sleep(0.1)
        told.append("used")
        own.release()

    thread = threading.Thread(target=use)
    thread.start()
    begun.wait()
    forked(lambda: told == ["before", "used", "in"] and own.acquire(blocking=False))
    thread.join()
    assert told == ["before", "used", "after"]
    assert not own._is_owned() and own.acquire(blocking=False)


def raises() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("at", ["_await_imports", "_hooks"])
def test_an_interrupt_amidst_a_fork_leaves_the_locks_free_and_comes_again(monkeypatch, at):
    own, told, again = lock.reentrant(), list[bool](), list[object]()
    monkeypatch.setattr(lock, "start_new_thread", lambda *work: again.append(work))
    hooks = [*lock._hooks, (own.acquire, partial(lock.give_back, own), partial(lock.renew, own))]
    monkeypatch.setattr(lock, "_hooks", hooks)
    monkeypatch.setattr(lock, at, raises if at != "_hooks" else [*hooks, (raises, bool, bool)])
    forked(lambda: own.acquire(blocking=False) and not lock.first_use._is_owned())
    signalled = threading.get_ident(), lock.SIGINT
    assert again == [(lock.pthread_kill, signalled)]  # once, in the parent

    def look():
        told.extend(held.acquire(blocking=False) for held in (own, lock.first_use))
        lock.first_use.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert told == [True, True] and not lock._forks.all


def test_a_child_frees_what_another_thread_holds():
    held, begun, done = lock.reentrant(), threading.Event(), threading.Event()

    def hold():
        with held:
            begun.set()
            done.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    forked(lambda: lock.renew(held) is None and held.acquire(blocking=False))
    done.set()
    thread.join()


def test_threads_may_fork_at_one_time():
    code = """
        import os, threading
        from gnomon.ground import lock
        from gnomon import nd
        def fork():
            for _ in range(20):
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
        threads = [threading.Thread(target=fork, daemon=True) for _ in range(4)]
        [t.start() for t in threads]
        [t.join(30) for t in threads]
        print([t.is_alive() for t in threads], lock.first_use._is_owned())
        print(nd.ones(3).sum().asscalar())
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split("\n")[:2] == [f"{[False] * 4} False", "3.0"], done.stderr


@pytest.mark.parametrize("module", ["gnomon", "gnomon.ground.lock"])
def test_a_child_finds_gnomon_imported_where_another_thread_is_about_to(module):
    """`import gnomon` itself: its first line has run, its last one has not."""
    code = f"module = {module!r}\n" + textwrap.dedent("""
        import importlib.abc, importlib.machinery, os, sys, threading, time

        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name != module:
                    return None
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                execute = spec.loader.exec_module

                def executed(made):
                    if name == "gnomon":
                        execute(made)
                    begun.set()
                    time.sleep(0.5)
                    if name != "gnomon":
                        execute(made)

                spec.loader.exec_module = executed
                return spec

        sys.meta_path.insert(0, Slow())
        begun = threading.Event()
        threading.Thread(target=lambda: __import__("gnomon")).start()
        begun.wait()
        pid = os.fork()
        if pid == 0:
            import gnomon.ground.lock
            os._exit(gnomon.ground.lock.first_use._is_owned())
        assert os.waitpid(pid, 0)[1] == 0
    """)
    # Python 3.12 warns of forks beside threads, rightly
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    command, run = [sys.executable, *quiet, "-c", code], {"cwd": ROOT, "timeout": SECONDS}
    found = subprocess.run(command, **run, check=False, capture_output=True)
    assert (found.returncode, found.stderr) == (0, b"")

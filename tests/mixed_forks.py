"""A child of test_fork.py: forks at random moments while other threads use everything.

    python tests/mixed_forks.py COUNT SEED

Threads compile, push to the engine, make primitives of oneDNN, leave work on the stream, train a
hybridized block and read a `DataLoader` with workers. Each forked child computes with all of these
and exits. What hangs, parent or child, writes where its threads stand. Says 'fine' in the end.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import gnomon as mx
from gnomon import shadow

HANG = 60  # seconds until a child that hangs is ended
SIDE = 400
BATCH = 64


def fresh(code: int) -> None:
    """A structure of its own for each code."""
    x = shadow.Tensor(np.zeros(5, np.float32))
    e: shadow.Exp = x
    for bit in range(14):
        e = shadow.fn.abs(e) if code >> bit & 1 else e * 2.0
    x[:] = e + 1.0
    assert x.numpy().tolist() == [1.0] * 5


def compiles(k: int) -> None:
    fresh(k % (1 << 13))


def pushes(k: int) -> None:
    """Many short functions, one after the other, of two variables."""
    own, told = mx.engine.get(), list[int]()
    read, written = own.new_variable(), own.new_variable()
    for number in range(10):
        own.push_sync(lambda ctx, n=number: told.append(n), None, (read,), (written,))
    own.wait_for_var(written)
    assert told == list(range(10))


def primitives(k: int) -> None:
    size = 4 + k % 200
    data, weight = mx.nd.ones((1, 2, size, 5)), mx.nd.ones((2, 2, 3, 3))
    made = mx.nd.Convolution(data, weight, num_filter=2, kernel=(3, 3), no_bias=True)
    assert (made.asnumpy() == 18).all()


def streams(k: int) -> None:
    """Long products that stay behind the program for a while."""
    a = mx.nd.ones((SIDE, SIDE))
    for _ in range(4):
        a = mx.nd.dot(a, a) / SIDE
    time.sleep(0.002)
    assert abs(a.sum().asscalar() - SIDE * SIDE) < 1


class Net:
    """A hybridized block and its trainer; a thread has its own."""

    def __init__(self) -> None:
        self.net = mx.gluon.nn.HybridSequential()
        self.net.add(mx.gluon.nn.Dense(16, activation="relu", in_units=8))
        self.net.add(mx.gluon.nn.Dense(1, in_units=16))
        self.net.initialize(mx.init.Constant(0.1))
        self.net.hybridize()
        params = self.net.collect_params()
        self.trainer = mx.gluon.Trainer(params, "sgd", {"learning_rate": 0.0})
        self.x = mx.nd.ones((BATCH, 8))

    def step(self, k: int) -> None:
        with mx.autograd.record():
            loss = self.net(self.x).sum()
        loss.backward()
        self.trainer.step(BATCH)
        assert abs(loss.asscalar() - BATCH * 1.28) < 0.01


class Loads:
    """Batches of a loader with workers, which are forks themselves."""

    def __init__(self) -> None:
        data = mx.gluon.data.ArrayDataset(np.ones((40, 3), np.float32))
        self.loader = mx.gluon.data.DataLoader(data, batch_size=10, num_workers=2)
        self.batches: Iterator[mx.nd.NDArray] = iter(())

    def __call__(self, k: int) -> None:
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
        else:
            assert batch.sum().asscalar() == 30


def child(net: Net, k: int) -> None:
    """Everything once more, in the copy of the process."""
    fresh((1 << 13) + k)
    pushes(k)
    primitives(300 + k)
    streams(k)
    net.step(k)
    Net().step(k)
    mx.nd.waitall()


def forked(work: Callable[[], None]) -> int:
    """Fork; the child's exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        faulthandler.dump_traceback_later(HANG, exit=True)
        work()
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def main() -> None:
    count, seed = map(int, sys.argv[1:])
    chance, stop, wrong = random.Random(seed), threading.Event(), list[BaseException]()
    faulthandler.register(signal.SIGALRM, chain=True)
    nets = [Net(), Net()]
    nets[1].step(0)

    def busy(work: Callable[[int], None]) -> None:
        try:
            for k in itertools.count():
                if stop.is_set():
                    break
                work(k)
        except BaseException as error:
            wrong.append(error)
            raise

    works: list[Callable[[int], None]] = [
        compiles,
        pushes,
        primitives,
        streams,
        nets[0].step,
        Loads(),
    ]
    threads = [threading.Thread(target=busy, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for k in range(count):
        time.sleep(chance.uniform(0, 0.03))
        signal.alarm(2 * HANG)  # which a child does not have, as it would a thread that watches
        code = forked(lambda k=k: child(nets[1], k))
        assert code == 0, f"child {k} of seed {seed} ended with {code}"
        assert not wrong, wrong
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    print("fine")


if __name__ == "__main__":
    main()

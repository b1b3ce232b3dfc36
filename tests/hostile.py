"""A child of test_hostile.py: calls what is public with anything at all, and assigns to it.

    python tests/hostile.py SEED COUNT LOG

Every call is written to LOG before it is made, so that the last line of one that did not end says
what it was. Errors are what is wanted; a crash, a hang or another exception than an error is not.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import random
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import gnomon as mx

SECONDS = 30  # for one call
ROOM = 1 << 30  # bytes: more than any call should take, but those asked for more than that
MODULES = """
attribute autograd base callback context dtype executor_manager gluon gluon.data gluon.nn gluon.loss
gluon.rnn gluon.utils image initializer io
kvstore lr_scheduler metric model module monitor name ndarray operator optimizer random recordio
registry rnn shadow shadow.fn shadow.red shape symbol util visualization
""".split()
# what is unsafe by its own word, ends or waits on purpose, or speaks to the network
LEFT = """
from_address shutdown_tensor_engine download main get_cuda_compute_capability push push_async
wait_for_var Later set_np reset_np export_model seterr
""".split()


def values(folder: Path) -> list[Any]:
    """Arguments, sensible and not."""
    x, t = mx.nd.array([[1.0, 2.0], [3.0, 4.0]]), mx.shadow.TensorContainer((2, 2), init=1.0)
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    return [
        None, True, 0, 1, 2, -1, 3, 1 << 31, (1 << 63) - 1, 1 << 70, -(1 << 63), 0.5, 1e308,
        float("nan"), float("inf"), 1j, "", "x", "\0", "float32", "sum", "sgd", "data",
        "a" * 10_000, b"", b"\x00\xff", (), (2,), (2, 2), (-1, 2), (1 << 40,), (1 << 62, 4),
        [], [1, 2], [[1], []], {}, {"data": (2, 2)}, {1: 2}, set(), slice(None, None, -1),
        Ellipsis, int, object(), len,
        lambda *a, **k: None, iter(()), range(3), folder / "no" / "x", str(folder / "x"),
        np.zeros(()), np.zeros((0, 3)), np.arange(6.0).reshape(2, 3)[:, ::-1], np.array([None, 1]),
        np.array([1 + 2j]), frozen, np.arange(4, dtype=">f4"), np.float32(1), np.int8(-3),
        x, mx.nd.empty((0, 2)), mx.nd.array([1, 2], dtype="int32"), [x, x], x[0],
        mx.nd.sparse.row_sparse_array(([[1.0]], [1]), shape=(3, 1)), {"w": x},
        t, t * 2.0, mx.shadow.fn.exp, mx.shadow.scalar(2.0), data, net, mx.sym.Group([net, data]),
        mx.cpu(), mx.cpu(99), mx.gpu(7), net.simple_bind(mx.cpu(), data=(2, 2)),
        mx.io.NDArrayIter(x, batch_size=1), mx.optimizer.create("sgd"), mx.metric.create("acc"),
        mx.init.One(), mx.kv.create("local"), mx.mod.Module(net, label_names=()),
    ]  # fmt: skip


def names_of(place: Any) -> list[str]:
    return [name for name in dir(place) if not name.startswith("_") and name not in LEFT]


def public() -> list[tuple[str, Any]]:
    """The functions and classes of the public modules."""
    found: dict[str, Any] = {}
    for module in MODULES:
        place = attrgetter(module)(mx)
        for name in names_of(place):
            with contextlib.suppress(ImportError):  # a module that is not there yet
                found[f"{module}.{name}"] = getattr(place, name, None)
    return [(k, v) for k, v in sorted(found.items()) if callable(v) and not is_left(v)]


def is_left(thing: Any) -> bool:
    """Whether something is not gnomon's: Python's own types, modules, exceptions."""
    home = getattr(thing, "__module__", "") or ""
    error = isinstance(thing, type) and issubclass(thing, BaseException)
    return error or not str(home).startswith("gnomon")


class Attack:
    """Calls and assignments, one after the other, from a seed."""

    def __init__(self, seed: int, log: Path, folder: Path) -> None:
        self.random, self.log = random.Random(seed), log.open("w")
        self.targets, self.values = public(), values(folder)

    def some(self) -> Any:
        return self.random.choice(self.values)

    def arguments(self, function: Any) -> tuple[list[Any], dict[str, Any]]:
        """As many as the function takes, or others."""
        try:
            known = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            known = []
        plain = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        needed = sum(p.default is p.empty for p in plain)
        count = self.random.choice([needed, needed, len(plain), self.random.randrange(5)])
        named = [p.name for p in known if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        chosen = self.random.sample(
            named[count:], min(len(named[count:]), self.random.randrange(3))
        )
        return [self.some() for _ in range(count)], {name: self.some() for name in chosen}

    def call(self, name: str, function: Callable[..., Any]) -> Any:
        args, named = self.arguments(function)
        told = [f"{type(a).__name__} {a!r:.60}" for a in (*args, *named.values())]
        self.say(f"{name}({', '.join(told)}; {', '.join(named)})")
        return self.guarded(lambda: function(*args, **named))

    def guarded(self, work: Callable[[], Any]) -> Any:
        """What `work` gives; None where it raises an error, as it may."""
        signal.alarm(SECONDS)
        try:
            return work()
        except Exception:  # errors are what is wanted
            return None
        finally:
            signal.alarm(0)

    def say(self, line: str) -> None:
        self.log.write(line.replace("\n", " ") + "\n")
        self.log.flush()

    def step(self) -> None:
        """A call; then calls of a method of what it gave, and an assignment to it."""
        name, target = self.random.choice(self.targets)
        thing = self.call(name, target) if self.random.random() < 0.6 else self.some()
        if thing is None or is_left(type(thing)):
            return
        names = names_of(type(thing))
        if not names:
            return
        attribute = self.random.choice(names)
        if self.random.random() < 0.3:
            value = self.some()
            self.say(f"{type(thing).__name__}.{attribute} = {type(value).__name__} {value!r:.60}")
            self.guarded(lambda: setattr(thing, attribute, value))
            self.guarded(lambda: repr(thing))
        found = self.guarded(lambda: getattr(thing, attribute))
        if callable(found) and not is_left(found):
            self.call(f"{type(thing).__name__}.{attribute}", found)
        self.guarded(mx.nd.waitall)


def limit() -> None:
    """Let the process map no more than a call should need; libraries and threads stay mapped."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def main() -> None:
    seed, count, log = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    os.chdir(log.parent)
    warnings.simplefilter("ignore")
    builtins.input = lambda *_: ""
    attack = Attack(seed, log, log.parent)
    for k in range(count):
        limit()
        if k % 50 == 49:  # what was assigned to is used no more
            attack.values = values(log.parent)
        attack.step()
    assert (mx.nd.ones((3,)) + 1).asnumpy().tolist() == [2, 2, 2]
    attack.say("ended")


if __name__ == "__main__":
    main()

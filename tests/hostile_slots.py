"""A child of test_hostile.py: assigns to, and deletes, every slot of all that arrays hold.

    python tests/hostile_slots.py NUMBER OF

From an NDArray, a Tensor, a Symbol, an Executor and a variable of the engine it goes through
attributes to every object of gnomon's classes, takes one of each class, and in a child of its own
for each slot has other values in it and uses everything. Errors are what is wanted; what ends the
interpreter is printed. With NUMBER and OF, every OF-th class from that number on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections import Counter
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

import gnomon as mx
from gnomon import engine

SECONDS = 20  # for one child
SAMPLES = 1  # of each class
JUNK = (None, 0, 2**70, "a", [3], 0.5)
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


class Roots:
    """What users hold."""

    def __init__(self) -> None:
        self.x, self.y = mx.nd.ones((3,)), mx.nd.ones((3,))
        (self.x + self.y).wait_to_read()
        self.pending = self.x + self.y
        self.grad = mx.nd.ones((3,))
        self.grad.attach_grad()
        self.tensor = mx.shadow.Tensor(np.ones((2, 3), np.float32))
        self.expression = self.tensor * 2.0 + mx.shadow.fn.exp(self.tensor)
        self.symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
        self.executor = self.symbol.simple_bind(mx.cpu(), data=(2, 2))
        self.variable = engine.get().new_variable()
        self.operator = engine.get().new_operator(lambda ctx: None, (), (self.variable,))
        self.use()
        self.pending = self.x + self.y

    def statements(self) -> list[Any]:
        def recorded() -> None:
            with mx.autograd.record():
                z = (self.grad * self.x).sum()
            z.backward()
            self.grad.grad.asnumpy()

        def written() -> None:
            self.x += self.y
            self.x[:] = self.y
            self.x.wait_to_read()

        def assigned() -> None:
            self.tensor[:] = self.tensor * 2.0 + mx.shadow.fn.exp(self.tensor)

        def added() -> None:
            (self.x + self.y).wait_to_read()
            ((self.x + self.y) * 2).sum().asscalar()

        def read() -> None:
            (self.pending * 2).asnumpy()
            self.pending.asnumpy()

        def trained() -> None:
            self.executor.forward(is_train=True)[0].asnumpy()
            self.executor.backward(mx.nd.ones((2, 3)))

        def pushed() -> None:
            engine.get().push_sync(lambda ctx: None, None, (self.variable,), ())
            engine.get().push(self.operator, None)
            engine.get().wait_for_var(self.variable)

        return [added, read, written, recorded, assigned, trained, pushed, mx.nd.waitall]

    def use(self) -> None:
        for statement in self.statements():
            with contextlib.suppress(Exception):  # errors are what is wanted
                statement()


def parts(thing: Any) -> list[tuple[str, Any]]:
    """The attributes of an object, and what they hold."""
    slots = [
        name
        for kind in type(thing).__mro__
        for name, slot in vars(kind).items()
        if isinstance(slot, MemberDescriptorType)
    ]
    names = [*slots, *getattr(thing, "__dict__", {})]
    return [(name, getattr(thing, name, None)) for name in names if name != "__weakref__"]


def inside(value: Any) -> list[Any]:
    """A value, and what it holds where it is a container."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)[:3]
    if isinstance(value, dict):
        return [*list(value.keys())[:3], *list(value.values())[:3]]
    return [value]


def is_ours(thing: Any) -> bool:
    if isinstance(thing, (type, ModuleType, FunctionType, MethodType)):
        return False
    return type(thing).__module__.partition(".")[0] == "gnomon"


def found(roots: Roots) -> list[tuple[str, Any]]:
    """Objects of every class that can be reached, with the way to each."""
    seen: set[int] = set()
    counts: Counter[type] = Counter()
    reached: list[tuple[str, Any]] = []
    queue = [(name, thing) for name, thing in vars(roots).items()]
    for way, thing in queue:
        if id(thing) in seen or not is_ours(thing) or counts[type(thing)] >= SAMPLES:
            continue
        seen.add(id(thing))
        counts[type(thing)] += 1
        reached.append((way, thing))
        queue += [(f"{way}.{n}", x) for n, value in parts(thing) for x in inside(value)]
    return reached


def attack(thing: Any, name: str, junk: Any, roots: Roots) -> int:
    """The status of a child that has `junk` in a slot, or nothing, and uses everything."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(SECONDS)
    try:
        if junk is Ellipsis:
            delattr(thing, name)
        else:
            setattr(thing, name, junk)
    except BaseException:
        os._exit(0)
    roots.use()
    os._exit(1)


def attacked(way: str, thing: Any, name: str, roots: Roots) -> tuple[int, int]:
    """The number of attacks on a slot, and how many of them ended the interpreter."""
    count = crashes = 0
    for junk in (*JUNK, ...):
        count += 1
        status = attack(thing, name, junk, roots)
        if -status in CRASHES or -status == signal.SIGALRM:
            crashes += 1
            said = "deleted" if junk is ... else f"= {junk!r}"
            told = signal.Signals(-status).name
            print(f"{type(thing).__name__} {way}.{name} {said}: {told}", flush=True)
        if status == 0:  # it refuses assignments
            break
    return count, crashes


def main() -> None:
    number, of = int(sys.argv[1]), int(sys.argv[2])
    warnings.simplefilter("ignore")
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    roots = Roots()
    reached = found(roots)
    crashes = count = 0
    for way, thing in reached[number::of]:
        for name, _ in parts(thing):
            more, ended = attacked(way, thing, name, roots)
            count, crashes = count + more, crashes + ended
    print(f"{len(reached)} classes, {count} attacks, {crashes} crashes", flush=True)


if __name__ == "__main__":
    main()

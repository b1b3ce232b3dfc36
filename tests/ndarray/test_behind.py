"""Random programs whose native work runs behind them: the same bits as where each runs at once.

Beside statements on arrays, views and shifted parts of themselves there are functions of the
engine in Python, slow native work, reads in the middle, and several threads.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ndarray.test_programs import program
from streamed import Slow, all_behind

from gnomon import autograd, engine, nd

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
    "del x{a}; x{a} = zeros(shape)",
    "wait()",
]
SHAPE = (4, 5)


def text_of(rng: random.Random, length: int) -> str:
    lines = program(rng, length)
    for _ in range(length):
        a, b, c = rng.sample(range(4), 3)
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(EXTRA).format(a=a, b=b, c=c))
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


def run(text: str, given: list[np.ndarray]) -> list[np.ndarray]:
    """All that a program computes and reads."""
    seen: list[Any] = []
    names: dict[str, Any] = {f"x{k}": nd.array(x) for k, x in enumerate(given)}
    names |= {"maximum": nd.maximum, "abs": nd.abs, "dot": nd.dot, "softmax": nd.softmax}
    names |= {"python": python, "slow": slow, "gradient": gradient, "seen": seen}
    names |= {"zeros": nd.zeros, "shape": SHAPE, "wait": nd.waitall}
    exec(text, names)
    return [*(names[f"x{k}"].asnumpy() for k in range(4)), *map(np.asarray, seen)]


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


def compare(seeds: range, patch: pytest.MonkeyPatch, length: int = 8) -> None:
    """Run programs under the naive engine, then all behind, by one thread and by several."""
    given = [np.random.default_rng(k).normal(size=SHAPE).astype("f") for k in range(4)]
    texts = [text_of(random.Random(seed), length) for seed in seeds]
    before = engine.get()
    try:
        engine.use(engine.create("NaiveEngine"))
        with np.errstate(all="ignore"):
            expected = [run(text, given) for text in texts]
        made = engine.create("ThreadedEnginePerDevice")
        engine.use(made)

        def check(number: int) -> None:
            for text, values in list(zip(texts, expected, strict=True))[number % 2 :: 1 + number]:
                for found, value in zip(run(text, given), values, strict=True):
                    np.testing.assert_array_equal(found, value, err_msg=text)

        with all_behind(patch), np.errstate(all="ignore"):
            check(0)
            beside(3, check)
        made.stop()
    finally:
        engine.use(before)


@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_random_programs_are_what_they_are_at_once(seed, monkeypatch):
    compare(range(seed, seed + 8), monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(0, 100_000, 100))
def test_many_random_programs_are_what_they_are_at_once(seed, monkeypatch):
    compare(range(1000 + seed, 1100 + seed), monkeypatch, 8 + seed % 30)

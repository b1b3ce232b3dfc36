"""Random programs of array statements: under each engine the same bits, and NumPy's values.

Statements write through views, overlap, work in place and with operands of any shape; while they
run, other threads keep the engine busy.
"""

from __future__ import annotations

import random
import sys
import threading

import numpy as np
import pytest

from gnomon import autograd, engine, nd

KEYS = ["", "[1:]", "[:-1]", "[::-1]", "[:, 1:3]", "[2]", "[:, ::2]", "[1:3, :1]", "[..., 0]"]
PAIRS = ["{b} + {c}", "{b} - {c}", "{b} * {c} * 0.5", "maximum({b}, {c})", "{b} / ({c} * {c} + 1)"]
ONES = ["{b} * 0.5", "1 - {b}", "-{b}", "abs({b})", "({b} > 0) * {b}", "{b}"]
SHIFTS = [("[1:]", "x{a}[:-1]"), ("[:]", "x{a}[::-1] * 1")]  # an array's own part, elsewhere


def statement(rng: random.Random) -> str:
    """A write of x{a} that may read x{b} and x{c}; for NumPy and for us."""
    key = rng.choice(KEYS)
    value = rng.choice(PAIRS + ONES).format(b=f"x{{b}}{key}", c=f"x{{c}}{key}")
    if rng.random() < 0.3:
        key, value = rng.choice(SHIFTS)
    if rng.random() < 0.2:
        return f"x{{a}}{key or '[:]'} {rng.choice('+-*')}= 0.25 * {value}"
    if key or rng.random() < 0.5:
        return f"x{{a}}{key or '[:]'} = {value}"
    return f"x{{a}} = {value}"


def on_some(rng: random.Random, text: str) -> str:
    """A statement on some of the arrays x0..x3 of one shape; one may stand for several letters."""
    return text.format(**{letter: rng.randrange(4) for letter in "abc"})


def program(rng: random.Random, length: int) -> str:
    return "\n".join(on_some(rng, statement(rng)) for _ in range(length))


def arrays(make, shape=(4, 5)):
    rng = np.random.default_rng(1)
    return {f"x{k}": make(rng.normal(size=shape).astype(np.float32)) for k in range(4)}


def run_ours(text: str) -> dict[str, np.ndarray]:
    names = {**arrays(nd.array), "maximum": nd.maximum}
    exec(text, names)
    return {k: v.asnumpy() for k, v in names.items() if k.startswith("x")}


@pytest.mark.parametrize("seed", range(12))
def test_a_random_program(seed):
    text = program(random.Random(seed), 12)
    expected = {**arrays(np.copy), "maximum": np.maximum}
    exec(text, expected)
    before, found = engine.get(), []
    try:
        for kind in ("ThreadedEnginePerDevice", "NaiveEngine", "ThreadedEngine"):
            engine.use(engine.create(kind))
            found.append(run_ours(text))
            engine.get().stop()
    finally:
        engine.use(before)
    for name, value in found[0].items():
        np.testing.assert_allclose(value, expected[name], 1e-4, 1e-5, err_msg=text)
        for other in found[1:]:
            np.testing.assert_array_equal(value, other[name], err_msg=text)


@pytest.mark.parametrize("seed", range(3))
def test_threads_with_random_programs_that_read_common_arrays(seed):
    """Each thread has arrays of its own; small and waited for, so most statements are native."""
    common = [nd.array(np.random.default_rng(7).normal(size=(4, 5))) for _ in range(4)]
    given = [x.asnumpy() for x in common]
    wrong: list[str] = []

    def work(number: int) -> None:
        rng = random.Random(100 * seed + number)
        for _ in range(4):
            text = program(rng, 15)
            names = {f"x{k}": x * 1 for k, x in enumerate(common)}
            expected = {f"x{k}": x.copy() for k, x in enumerate(given)}
            exec(text, {"maximum": nd.maximum, "abs": nd.abs}, names)
            exec(text, {"maximum": np.maximum}, expected)
            for name, x in names.items():
                (x + common[0]).wait_to_read()
                if not np.allclose(x.asnumpy(), expected[name], 1e-3, 1e-3, equal_nan=True):
                    wrong.append(f"{name} of\n{text}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong, wrong[0]


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_a_random_expression(seed):
    rng = random.Random(seed)
    text = "x0"
    for _ in range(4):
        form = rng.choice(["{a} + {b}", "{a} * {b} * 0.5", "{a} / ({b} * {b} + 1)", "{a} * 0.5"])
        text = form.format(a=f"({text})", b=f"x{rng.randrange(4)}")
    ours, values = arrays(nd.array), arrays(np.float64)
    for x in ours.values():
        x.attach_grad()
    with autograd.record():
        y = eval(text, dict(ours)).sum()
    y.backward()
    for name, x in ours.items():
        direction = np.random.default_rng(seed).normal(size=x.shape)
        ends = [
            np.sum(eval(text, {**values, name: values[name] + step * direction}))
            for step in (1e-6, -1e-6)
        ]
        numeric = (ends[0] - ends[1]) / 2e-6
        found = (x.grad.asnumpy() * direction).sum()
        np.testing.assert_allclose(found, numeric, rtol=1e-3, atol=1e-3, err_msg=text)

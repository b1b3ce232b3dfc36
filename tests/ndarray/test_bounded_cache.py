"""What is learnt about operands' layouts is bounded, and enough for many of them in rotation."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gnomon import nd
from gnomon.ndarray.core import bounded_cache
from gnomon.ndarray.lazy.recipe import Recipe

ROOT = Path(__file__).parents[2]


def test_many_sizes_in_rotation_are_learnt_once(monkeypatch):
    made = []
    make = Recipe.__init__

    def noted(recipe, *args):
        made.append(recipe)
        make(recipe, *args)

    monkeypatch.setattr(Recipe, "__init__", noted)

    def turn():
        for n in range(300, 400):
            x = nd.ones((n, 2))
            assert (nd.softmax(x) + x).sum().asscalar() == 3 * n

    turn()
    assert made
    made.clear()
    turn()
    turn()
    assert len(made) <= 200, "the second and the third run of each chain, by one operator each"
    made.clear()
    turn()
    assert not made


def test_tables_are_bounded_together():
    found = bounded_cache.BoundedCache(3)
    first, second = {}, {}
    for k in range(10):
        found.put(first, k, k)
        found.put(second, k, k)
        assert len(first) + len(second) == min(3, 2 * k + 2)
    table = {}
    bounded_cache.BoundedCache(1).put(table, "x", 1)
    assert table == {"x": 1}


def test_an_entry_put_again_takes_no_room():
    found, table = bounded_cache.BoundedCache(2), {}
    for value in range(5):
        found.put(table, "same", value)
    found.put(table, "other", 0)
    assert table == {"same": 4, "other": 0}


def test_entries_weigh_what_they_say():
    found, table = bounded_cache.BoundedCache(10), {}
    for k in range(20):
        found.put(table, k, SimpleNamespace(kept_bytes=3))
        assert len(table) == min(3, k + 1)
        assert k in table
        assert found.has_room == (k < 2)
    found.put(table, "large", SimpleNamespace(kept_bytes=100))
    assert list(table) == ["large"]
    found.forget()
    assert not table
    assert found.has_room


FLAT = """
import random, re
from pathlib import Path
import numpy as np
from gnomon import nd

def held():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

draw = random.Random(5)
x = nd.array(np.ones(40000, "float32"))

def shapes(count):
    for k in range(count):
        shape = (draw.randint(1, 20), draw.randint(1, 40), draw.randint(1, 50))
        y = x[: shape[0] * shape[1] * shape[2]].reshape(shape)
        for z in (y + y, nd.sum(y, axis=k % 3), nd.transpose(y), y * y[..., :1])[k % 4 :][:1]:
            z.wait_to_read()

MAPS = (nd.exp, nd.tanh, nd.sqrt, nd.abs, nd.square, lambda a: a + x, lambda a: a * 0.5)

def expressions(count):
    for _ in range(count):
        y = x
        for _ in range(draw.randint(4, 12)):
            y = draw.choice(MAPS)(y)
        y.wait_to_read()

x = nd.array(np.ones(40000, "float32"))
shapes(40_000)
first = held()
shapes(60_000)
second = held()
x = nd.array(np.ones(10, "float32"))
expressions(4_000)
third = held()
expressions(6_000)
print(first, second, third, held())
"""


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_shapes_and_expressions_hold_no_more_memory():
    """After the first thousands: of 10^5 shapes and 10^4 expressions."""
    done = subprocess.run(
        [sys.executable, "-c", FLAT], capture_output=True, text=True, check=True, cwd=ROOT
    )
    first, second, third, last = map(float, done.stdout.split())
    assert second < 1.1 * first
    assert last < 1.1 * third

"""Random reductions of pending maps, of one shape after the other: each equals NumPy's.

What was made for one shape serves others, so that a process with many of them in any order, sizes
of 1 among them, tries what no single case does.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gnomon import nd

DTYPES = ("float32", "float64", "int32", "int64")
LONG, SHORT = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 65, 130), (1, 2, 3, 5)
MOST = 20_000  # elements
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "nansum", "nanprod", "norm", "argmax", "argmin")
PAIRS: dict[str, Any] = {
    "elemwise_add": np.add,
    "elemwise_sub": np.subtract,
    "elemwise_mul": np.multiply,
    "broadcast_maximum": np.maximum,
}
ONES: dict[str, Any] = {
    "abs": np.abs,
    "square": np.square,
    "negative": np.negative,
    "relu": lambda x: np.maximum(x, 0),
}
Both = tuple[Any, np.ndarray[Any, Any]]


def mapped(chance: random.Random, leaves: list[Both], depth: int = 0) -> Both:
    """A map of the leaves, by gnomon and by NumPy."""
    kind = chance.random()
    if depth > 2 or kind < 0.3:
        return chance.choice(leaves)
    x, a = mapped(chance, leaves, depth + 1)
    if kind < 0.6:
        y, b = mapped(chance, leaves, depth + 1)
        name = chance.choice(list(PAIRS))
        return getattr(nd, name)(x, y), PAIRS[name](a, b)
    if kind < 0.85:
        name = chance.choice(list(ONES))
        return getattr(nd, name)(x), ONES[name](a)
    along = chance.randrange(a.ndim)
    row = a.sum(along, dtype=a.dtype, keepdims=True)
    return nd.broadcast_add(x, nd.sum(x, axis=along, keepdims=True)), a + row


def reduced(name: str, a: np.ndarray[Any, Any], axis: Any) -> np.ndarray[Any, Any]:
    """NumPy's result, integers as they wrap around; a mean and a norm of them are cut off."""
    if name == "norm":
        return np.sqrt((a.astype(np.float64) ** 2).sum(axis)).astype(a.dtype)
    if name in ("sum", "nansum", "prod", "nanprod"):
        return np.asarray(getattr(np, name)(a, axis, dtype=a.dtype))
    return np.asarray(getattr(np, name)(a, axis))


@np.errstate(over="ignore")
def compare(chance: random.Random) -> None:
    """One random reduction beside NumPy's."""
    ndim, dtype, name = chance.randint(1, 4), chance.choice(DTYPES), chance.choice(REDUCTIONS)
    shape = [chance.choice(LONG if k < 2 else SHORT) for k in range(ndim)]
    chance.shuffle(shape)
    if np.prod(shape) > MOST or (name == "mean" and dtype.startswith("i")):
        return
    draw = np.random.default_rng(chance.randrange(2**32))
    arrays = [draw.integers(-3, 4, shape).astype(dtype) for _ in range(2)]
    x, a = mapped(chance, [(nd.array(a, dtype=dtype), a) for a in arrays])
    if np.isinf(np.where(a == 0, 1, np.abs(a)).prod(dtype=a.dtype)) and "prod" in name:
        return  # in another order another part may be infinite, and 0 times that
    axis: Any = chance.randrange(ndim)
    if not name.startswith("arg") and chance.random() < 0.6:
        some = tuple(sorted(chance.sample(range(ndim), chance.randint(1, ndim))))
        axis = chance.choice([None, some])
    got = getattr(nd, name)(x, **({} if axis is None else {"axis": axis})).asnumpy()
    wanted = reduced(name, a, axis).reshape(got.shape)
    largest = float(np.abs(a.astype(np.float64)).sum()) if name != "prod" else 0.0
    said = f"{name} of {dtype} {shape} over {axis}"
    if dtype.startswith("i") and name != "norm":
        np.testing.assert_array_equal(got, wanted, said)
    elif dtype.startswith("i"):  # the root of a sum of squares that float64 rounds
        np.testing.assert_allclose(got, wanted, 1e-6, 1, err_msg=said)
    else:
        np.testing.assert_allclose(got, wanted, 1e-4, 1e-6 * largest, err_msg=said)


@pytest.mark.parametrize("seed", range(2))
def test_random_reductions(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        compare(chance)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_reductions(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5000):
        compare(chance)

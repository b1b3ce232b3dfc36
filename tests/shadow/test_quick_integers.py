"""Whole numbers beside integers, and casts, go by native code and mean what Python's do."""

import numpy as np
import pytest

from gnomon import config
from gnomon.base import GnomonError
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import map_over
from gnomon.runtime.statements import call_cache
from gnomon.shadow import Tensor, TypecastExp, tcast

EDGES = (0, 1, 3, 127, 128, 200, 255, 256, 65535, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63, 2**70)
NUMBERS = [*EDGES, *(-e for e in EDGES), -(2**31) - 1]
DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "float32", "float64")


@pytest.fixture(autouse=True)
def known():
    """Native code has taken over, whatever the environment says."""
    config.set("native", True)
    a, b = Tensor(np.ones(3, np.float32)), Tensor(np.ones(3, np.float32))
    for _ in range(call_cache.PATIENCE + 4):
        b[:] = a + a
    assert call_cache._installed
    yield
    config.reset("native")


def outcome(make):
    """What is stored, or which error comes."""
    out = Tensor(np.zeros(5, make.dtype))
    try:
        make(out)
    except (GnomonError, TypeError, ValueError) as error:
        return type(error)
    return out.numpy().tolist()


class Made:
    """A statement about a tensor of a dtype and a number."""

    def __init__(self, dtype, statement):
        self.dtype, self.statement = dtype, statement
        self.a = Tensor(np.array([0, 1, 5, 77, 100], dtype))

    def __call__(self, out):
        self.statement(out, self.a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "lt", "ge", "eq"])
def test_all_numbers_mean_what_they_mean_to_python(name, dtype):
    method = {"add": "__add__", "sub": "__sub__", "mul": "__mul__"}.get(name, f"__{name}__")

    def native(number):
        return Made(dtype, lambda out, a: out.__setitem__(slice(None), getattr(a, method)(number)))

    def plain(number):
        fn = SCALAR[name]
        return Made(dtype, lambda out, a: out.__setitem__(slice(None), map_over(fn, (a, number))))

    for _ in range(3):
        for number in NUMBERS:
            assert outcome(native(number)) == outcome(plain(number)), number


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_numbers_are_stored_alike_each_time(dtype):
    def statements(number):
        yield Made(dtype, lambda out, a: out.__setitem__(slice(None), number))
        yield Made(dtype, lambda out, a: out.__iadd__(number))
        yield Made(dtype, lambda out, a: out.__isub__(number))

    first = [outcome(made) for number in NUMBERS for made in statements(number)]
    for _ in range(3):
        again = [outcome(made) for number in NUMBERS for made in statements(number)]
        assert again == first


def test_numbers_that_fit_do_not_come_by_python(monkeypatch):
    came = []
    a, out = Tensor(np.arange(5, dtype=np.int32)), Tensor(np.zeros(5, np.int32))
    for number in (3, 3, 1000, 1000):
        out[:] = a + number
    monkeypatch.setattr(call_cache, "_note_map", lambda *given: came.append(given))
    for number in (0, 127, 128, -1, 2**31 - 1, -(2**31)):
        out[:] = a + number
        assert out.numpy().tolist() == (np.arange(5) + number).astype(np.int32).tolist()
    assert not came
    out[:] = a + True
    assert len(came) == 1


def test_casts_are_recalled():
    x = np.arange(5, dtype=np.float32)
    a, whole, wide = (Tensor(x.astype(dtype)) for dtype in ("float32", "int32", "float64"))
    for _ in range(4):
        made = [tcast("int32", a * 1.5), tcast(np.float64, a)]
        whole[:] = made[0]
        wide[:] = made[1] * 0.5 + tcast("float64", made[0])
        np.testing.assert_array_equal(whole.numpy(), (x * 1.5).astype(np.int32))
        np.testing.assert_array_equal(wide.numpy(), x * 0.5 + whole.numpy())
        with pytest.raises(GnomonError, match="tcast"):
            tcast("int32", a) + a
    assert [type(e) for e in made] == [TypecastExp] * 2
    assert None not in [e.pattern for e in made]  # native code has made them


@pytest.mark.parametrize("native", [False, True])
def test_numbers_from_half_of_uint64_up_are_computed(native):
    config.set("native", native)
    held = np.array([1, 2**63, 2**64 - 1], np.uint64)
    x, out = Tensor(held), Tensor(np.zeros(3, np.uint64))
    for k in [*[1, 300, 2**40] * 3, *[2**63, 2**63 + 1, 2**64 - 1] * 5, 7]:
        n = np.uint64(k)
        out[:] = x / k
        assert out.numpy().tolist() == (held // n).tolist()
        out[:] = k / x
        assert out.numpy().tolist() == (n // held).tolist()
        out[:] = x * k + k
        assert out.numpy().tolist() == (held * n + n).tolist()
        out[:] = x <= k
        assert out.numpy().tolist() == (held <= n).tolist()
        out[:] = k
        assert out.numpy().tolist() == [k] * 3

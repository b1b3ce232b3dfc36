"""Bad input: every argument of every function of the language, exchanged for what does not fit.

An error must be one of gnomon's, name the function, an argument and what came, and come before
anything is written. What is accepted all the same must compute what the oracle does.
"""

from __future__ import annotations

import inspect
import io
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, GnomonError, ShapeError
from gnomon.expr import ext
from gnomon.expr.oracle import evaluate
from gnomon.shadow import Random, Tensor, TensorContainer
from gnomon.shape import prod
from tests.shadow.test_page import tool

PAGE = tool()
EXPECTED = (GnomonError, TypeError, ValueError, IndexError)


def ones(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(np.ones(shape, dtype))


BAD: dict[str, Any] = {
    "None": None,
    "a string": "x",
    "another string": "median",
    "bytes": b"ab",
    "half": 2.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "complex": 1j,
    "-1": -1,
    "-2": -2,
    "0": 0,
    "2**62": 2**62,
    "2**70": 2**70,
    "nothing": (),
    "a list": [1, 2, 3, 4],
    "a negative size": (-1,),
    "letters": ("a",),
    "ragged": [[1], [2, 3]],
    "a dict": {},
    "an object": object(),
    "an array": np.ones((2, 3), np.float32),
    "a reducer": shadow.red.sum,
    "a scalar tensor": ones(),
    "five numbers": ones(5),
    "two numbers": ones(2),
    "no numbers": ones(0),
    "no rows": ones(0, 0),
    "5 axes": ones(1, 1, 1, 1, 1),
    "4 x 7": ones(4, 7),
    "an expression": ones(2, 3) * 2.0,
    "int8": ones(2, 3, dtype="int8"),
    "float64": ones(2, 3, dtype="float64"),
    "bool": ones(2, 3, dtype="bool"),
    "two integers": ones(2, dtype="int64"),
}


def complains(call: Callable[[], Any], *names: str) -> Any:
    """What `call` gives; None where it complains, which must be in the way of this page."""
    try:
        return call()
    except EXPECTED as error:
        message = str(error)
    assert re.search(rf"\b({'|'.join(names)})(: argument|\()", message), message
    assert re.search(r"argument '.+': expected .+, got |is unknown|no derivative", message), message
    return None


def parts(code: str) -> tuple[str, Callable[..., Any], list[Any]]:
    """The name of an example's function, itself, and the arguments."""
    name, _, rest = code.partition("(")
    known = {**vars(shadow), **PAGE.NAMES}
    given: list[Any] = []
    eval(
        f"taken({rest}",
        {**known, "taken": lambda *args, **named: given.extend((*args, *named.values()))},
    )
    return name, known[name], given


@pytest.mark.parametrize("code", PAGE.examples())
def test_extensions(code):
    name, function, good = parts(code)
    operands = {k: e.numpy().copy() for k, e in PAGE.NAMES.items() if isinstance(e, Tensor)}
    for k in range(len(good)):
        for bad in BAD.values():
            args = [*good[:k], bad, *good[k + 1 :]]
            made = complains(lambda args=args: function(*args), name, function.__name__)
            if made is not None and prod(made.shape) < 1000:
                assert evaluate(made).shape == made.shape
    for key, before in operands.items():
        np.testing.assert_array_equal(PAGE.NAMES[key].numpy(), before)


@pytest.mark.parametrize("code", PAGE.examples())
@pytest.mark.parametrize("saver", ["saveto", "plusto", "minusto", "multo", "divto"])
def test_destinations_that_do_not_fit(code, saver):
    _, function, args = parts(code)
    e = function(*args)
    other = "float64" if e.dtype.name != "float64" else "int32"
    for shape, dtype, kind in (
        ((*e.shape, 2), e.dtype.name, ShapeError),
        ((*e.shape[:-1], e.shape[-1] + 1), e.dtype.name, ShapeError),
        (e.shape, other, DTypeError),
    ):
        dest = Tensor(np.full(shape, 7, dtype))
        with pytest.raises(kind, match=r"assignment: argument 'value': expected .*, got <"):
            dest.assign(e, saver)
        assert (dest.numpy() == 7).all()


DRAWN: dict[str, list[Any]] = {
    "uniform": [(2, 3), "float32"],
    "gaussian": [(2, 3), "float32"],
    "exponential": [(2, 3), 1.5, "float32"],
    "gamma": [(2, 3), 1.5, 2.0, "float32"],
    "poisson": [(2, 3), 1.5, "float32"],
    "negative_binomial": [(2, 3), 1.5, 0.5, "float32"],
    "generalized_negative_binomial": [(2, 3), 1.5, 0.5, "float32"],
    "integers": [(2, 3), "int32"],
    "split": [2],
    "sample_uniform": [ones(2, 3), 0.0, 1.0],
    "sample_gaussian": [ones(2, 3), 0.0, 1.0],
    "sample_gamma": [ones(2, 3), 1.5, 2.0],
    "sample_exponential": [ones(2, 3), 1.5],
    "sample_poisson": [ones(2, 3), 1.5],
    "sample_negative_binomial": [ones(2, 3), 1.5, 0.5],
    "sample_generalized_negative_binomial": [ones(2, 3), 1.5, 0.5],
    "get_rand_int": [ones(2, 3, dtype="int32")],
}


@pytest.mark.parametrize("name", DRAWN)
def test_distributions(name):
    good = DRAWN[name]
    into = isinstance(good[0], Tensor)
    for k in range(len(good)):
        for label, bad in BAD.items():
            if (name, label) == ("split", "2**62"):  # so many streams no memory holds
                continue
            rnd = Random(seed=5)
            args = [*good[:k], bad, *good[k + 1 :]]
            if into and k:
                args[0] = TensorContainer((2, 3), init=7.0)
            made = complains(lambda rnd=rnd, args=args: getattr(rnd, name)(*args), name, "Random")
            if made is None and into and k:
                assert (args[0].numpy() == 7).all()


def test_every_distribution_is_tried():
    public = [n for n in dir(Random) if not n.startswith("_")]
    drawing = {n for n in public if callable(getattr(Random, n))}
    assert drawing - {"seed", "reserve", "give_back"} == set(DRAWN)


def into(*shape: int, dtype: str = "float32") -> Callable[[], Tensor]:
    return lambda: Tensor(np.full(shape, 7, dtype))


CUBE = ones(2, 3, 3)
FREE: dict[str, list[Any]] = {
    "softmax": [into(2, 3), ones(2, 3)],
    "softmax_grad": [into(2, 3), ones(2, 3), ones(2)],
    "vector_dot": [into(1), ones(3), ones(3)],
    "batch_gemm": [into(2, 3, 3), CUBE, CUBE, 2.0, 1.0, False, True],
    "add_take_grad": [into(4, 3), ones(2, dtype="int64"), ones(2, 3)],
    "add_take_grad_large_batch": [
        into(4, 3),
        ones(2, dtype="int64"),
        ones(2, dtype="int64"),
        ones(2, 3),
    ],
    "index_fill": [into(4, 3), ones(2, dtype="int64"), ones(2, 3)],
    "sort_by_key": [into(3), into(3), True],
    "vectorized_sort": [into(3), into(3)],
    "map_exp": ["plusto", into(2, 3), ones(2, 3)],
    "map_reduce_keep_lowest": ["plusto", "sum", into(3), ones(2, 3), 1.0],
    "map_reduce_keep_high_dim": ["plusto", "sum", into(2), ones(2, 3), 0, 1.0],
}


@pytest.mark.parametrize("name", FREE)
def test_free_functions(name):
    good, function = FREE[name], getattr(shadow, name)
    for k in range(len(good)):
        for bad in BAD.values():
            made = [x() if callable(x) and not isinstance(x, Tensor) else x for x in good]
            dests = [x for j, x in enumerate(made) if x is not good[j] and j != k]
            args = [*made[:k], bad, *made[k + 1 :]]
            accepted: list[bool] = []

            def call(args: list[Any] = args, accepted: list[bool] = accepted) -> None:
                function(*args)
                accepted.append(True)

            complains(call, name, "assignment")
            assert accepted or all((d.numpy() == 7).all() for d in dests)


def stored(*shape: int) -> bytes:
    stream = io.BytesIO()
    shadow.save_binary(stream, ones(*shape))
    return stream.getvalue()


STREAMS = {
    **{f"cut at {k}": stored(2, 3)[:k] for k in range(len(stored(2, 3)))},
    "sizes beyond memory": struct.pack("<II", 2**32 - 1, 2**32 - 1) + bytes(64),
    "rows too few": stored(3, 3)[:-4],
    "another byte order": struct.pack(">II6f", 2, 3, *range(6)),
    "text": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}" * 3,
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams(case):
    for dest in (TensorContainer((2, 2), init=7.0), Tensor(np.full((2, 3), 7, np.float32))):
        shape = dest.shape
        with pytest.raises(
            EXPECTED, match=r"load_binary: argument '(stream|dest)': expected .*got"
        ):
            shadow.load_binary(io.BytesIO(STREAMS[case]), dest)
        assert dest.shape == shape
        assert (dest.numpy() == 7).all()


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_stream_or_no_tensor(bad):
    value, stream = BAD[bad], io.BytesIO()
    assert complains(lambda: shadow.save_binary(value, ones(2)), "save_binary") is None
    assert complains(lambda: shadow.load_binary(value, ones(2)), "load_binary") is None
    if not isinstance(value, Tensor):
        assert complains(lambda: shadow.save_binary(stream, value), "save_binary") is None
        assert (
            complains(lambda: shadow.load_binary(io.BytesIO(stored(2)), value), "load_binary")
            is None
        )
        assert stream.getvalue() == b""


def test_a_call_of_a_traced_function_names_it():
    @shadow.jit
    def step(w, g):
        w[:] = w - g

    w = shadow.Tensor(np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"^step: missing a required argument: 'g'$"):
        step(w)
    with pytest.raises(TypeError, match=r"^step: too many positional arguments$"):
        step(w, w, w)
    with pytest.raises(TypeError, match=r"^step: .*'gg'.*did you mean 'g'"):
        step(w, g=w, gg=w)


def test_names_that_are_nearly_there():
    for name, meant in (("redcue", "reduce"), ("Tenosr", "Tensor"), ("trasnpose", "transpose")):
        with pytest.raises(AttributeError, match=f"{name}.*did you mean '{meant}'"):
            getattr(shadow, name)


def test_names_of_extensions_are_functions():
    found = {name for name, value in vars(ext).items() if not name.startswith("_")
             and inspect.ismodule(value)}  # fmt: skip
    assert found == {"complex_"}
    with pytest.raises(AttributeError, match="slice"):
        _ = ext.slice


def test_what_is_missing_is_told_with_all_that_there_is_to_give():
    said = r"^softmax\(dst, energy\): missing a required argument: 'energy'$"
    with pytest.raises(TypeError, match=said):
        shadow.softmax(Tensor(np.ones((2, 3), np.float32)))

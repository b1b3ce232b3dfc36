"""Tensors, expressions and what is made of them refuse assignments: compiled code trusts them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import gnomon as mx
from gnomon import shadow
from gnomon.shadow import Tensor, TensorContainer, fn


def made() -> dict[str, object]:
    """One object of each class that a user meets, over memory of its own."""
    t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    return {
        "tensor": t,
        "container": TensorContainer((2, 3), init=1.0),
        "row": t[0],
        "map": t * 2.0 + 1.0,
        "native map": [t + t for _ in range(100)][-1],
        "cast": shadow.tcast("float64", t),
        "scalar": shadow.scalar(2.0),
        "chainer": shadow.flip(t * 2.0, 0),
        "joined": shadow.concat(t, t),
        "call": shadow.dot(t, t.T),
        "blob": shadow.TBlob(t),
        "plan": shadow.make_plan(t),
        "stream": shadow.new_stream(),
        "dtype": t.dtype,
        "context": mx.cpu(1),
    }


def names(thing: object) -> list[str]:
    slots = [s for kind in type(thing).__mro__ for s in getattr(kind, "__slots__", ())]
    return sorted({*slots, *vars(type(thing)), *getattr(thing, "__dict__", ())} - {"__weakref__"})


VALUES = [(60,), (-1,), "float64", None, 7, 1 << 62, -3.5, np.zeros(3)]


@pytest.mark.parametrize("kind", made())
def test_no_attribute_is_taken_or_deleted(kind):
    thing = made()[kind]
    for name in names(thing):
        if name == "stream_":
            continue
        for value in VALUES:
            with pytest.raises((AttributeError, TypeError)):
                setattr(thing, name, value)
        with pytest.raises((AttributeError, TypeError)):
            delattr(thing, name)


def test_the_refusal_says_what_was_tried():
    t = Tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(AttributeError, match=r"Tensor: argument 'shape': .* got \(60,\)"):
        t.shape = (60,)
    with pytest.raises(AttributeError, match=r"Tensor: argument 'shape': .* deletion"):
        del t.shape
    t[:] = 1.0
    assert t.numpy().sum() == 6


def test_a_stream_is_all_that_may_be_assigned():
    t, stream = Tensor(np.zeros(3, np.float32)), shadow.new_stream()
    t.stream_ = stream
    assert t.stream_ is stream
    with pytest.raises(TypeError, match="a Stream or None"):
        t.stream_ = 4
    with pytest.raises(TypeError, match="a Stream or None"):
        Tensor(np.zeros(3, np.float32), stream="cpu")


AGAIN = [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]


@shadow.op
def larger(a, b):
    return a if a > b else b


@pytest.mark.parametrize("again", AGAIN)
def test_expressions_are_copied_all_the_same(again):
    t = Tensor(np.arange(3, dtype=np.float32))
    e = again(shadow.tcast("float64", fn.exp(t) * 2.0) + shadow.scalar(1.0, "float64"))
    out = TensorContainer((3,), "float64")
    out[:] = e
    np.testing.assert_allclose(out.numpy(), np.exp(t.numpy()).astype("d") * 2 + 1, rtol=1e-6)


REDUCED = {
    "sum": lambda t: shadow.reduce(t, "sum"),
    "arg": lambda t: shadow.arg_reduce(t, "max", 1),
    "own": lambda t: shadow.reduce(t, shadow.red.make(larger, -np.inf)),
    "scan": lambda t: shadow.cumsum(t, 1),
    "reshape": lambda t: shadow.broadcast_with_axis(t, 0, 3),
    "random": lambda t: shadow.Random(seed=3).gaussian(t.shape) * t,
}


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("again", AGAIN)
def test_what_holds_reducers_and_streams_is_copied_too(again, name):
    e = REDUCED[name](Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))
    one, other = (TensorContainer(e.shape, e.dtype) for _ in range(2))
    one[:], other[:] = e, again(e)
    np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("again", AGAIN)
def test_what_holds_tensors_is_copied_too(again):
    t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert again(shadow.make_plan(t * 2.0)).eval(1, 2) == 10
    assert again(shadow.TBlob(t)).get(2)[1, 2] == 5
    assert again(shadow.red.sum) == shadow.red.sum


@pytest.mark.parametrize("again", AGAIN)
def test_copies_of_streams_go_on_from_where_they_were(again):
    rnd = shadow.Random(seed=3)
    rnd.uniform((5,))
    other = again(rnd)
    assert type(other) is shadow.Random
    assert other.state == rnd.state == (3, 5)
    other.uniform((5,))
    assert (other.state, rnd.state) == ((3, 10), (3, 5))

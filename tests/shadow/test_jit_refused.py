"""What `jit` refuses, and what its errors tell of the function that was traced."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.expr.deferred import TraceError
from gnomon.shadow import Tensor, fn


def tensors(count: int, n: int = 20) -> list[Tensor]:
    rng = np.random.default_rng(count)
    return [Tensor(rng.integers(-4, 5, size=n).astype(np.float32)) for _ in range(count)]


def done(*_: object) -> None:
    """Nothing, whatever was done."""


def test_errors():
    a, b = tensors(2)
    cases = {
        "compare": (lambda a, k: done(a.assign(a + 1.0 if k > 0 else a)), "k is not known"),
        "loop": (lambda a, k: done(*[a.assign(a) for _ in range(k)]), "k is not known"),
        "read": (lambda a, k: done(a.assign(float(a.numpy()[0]))), "a: the values of .* not known"),
        "element": (lambda a, k: done(a.assign(a[0])), "a: the values of .* not known"),
        "result": (lambda a, k: a, "'result': expected nothing"),
        "truth": (lambda a, k: done(a.assign(a if a > 0 else 0.0)), "no truth value"),
        "plan": (lambda a, k: done(shadow.make_plan(a + 1.0).eval(0, 0)), "are not known"),
    }
    for name, (function, message) in cases.items():
        before = a.numpy().copy()
        with pytest.raises(TypeError, match=message):
            shadow.jit(function)(a, 3)
        np.testing.assert_array_equal(a.numpy(), before, name)
    with pytest.raises(ShapeError, match="shape"):
        shadow.jit(lambda a, b: done(a.assign(b)))(a, tensors(1, n=3)[0])
    with pytest.raises(TypeError, match=r"'a'.*got a ndarray"):
        shadow.jit(lambda a: None)(a.numpy())
    with pytest.raises(TypeError, match=r"'a'.*got a list"):
        shadow.jit(lambda a: None)([a])
    with pytest.raises(ParamError, match="'static'"):
        shadow.jit(lambda a: None, static=["z"])
    with pytest.raises(ParamError, match="by position"):
        shadow.jit(lambda *, a: None)
    b[:] = a  # nothing is left behind
    with pytest.raises(TraceError):
        shadow.jit(lambda b: b)(b)


def test_tensors_in_a_tuple_and_a_seed_of_each_call_are_named():
    def add(pair, out):
        out[:] = pair[0] + pair[-1]

    a, b = tensors(2)
    for pair in ((a, b), (2.0, (a,))):
        with pytest.raises(
            TraceError, match=r"add: argument 'pair'.* own, got a tuple|got \(2\.0,"
        ):
            shadow.jit(add)(pair, b)
    add((a, b), b)

    def fill(out, k):
        out[:] = shadow.Random(seed=k).uniform(out.shape)

    with pytest.raises(TraceError, match=r"fill: k is not known.*name its argument in `static`"):
        shadow.jit(fill)(a, 3)
    shadow.jit(fill, static=["k"])(a, 3)
    fill(b, 3)
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    with pytest.raises(TypeError, match=r"'seed': expected a whole number, got 'x'"):
        shadow.Random(seed="x")


def test_tensors_are_copied_into_new_memory():
    @shadow.jit
    def double(x, out):
        room = shadow.copy(shadow.alloc_space(x.shape), x)
        shadow.copy(out, room + room)

    for a, out in (tensors(2), tensors(2, n=5)):
        double(a, out)
        np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())


def test_what_is_kept_outside_goes_on_where_no_statement_begins_it():
    """Each call does the statements of the traced one: `init` is one, what NumPy did is not."""
    ones, out = (Tensor(np.ones(3, np.float32)) for _ in range(2))

    def totals(make):
        kept = []

        @shadow.jit
        def add(x, out):
            if not kept:
                kept.append(make())
            kept[0][:] += x
            out[:] = kept[0]

        return [(add(ones, out), out.numpy()[0])[1] for _ in range(3)]

    assert totals(lambda: Tensor(np.zeros(3, np.float32))) == [1, 2, 3]
    assert totals(lambda: shadow.TensorContainer((3,), init=0.0)) == [1, 1, 1]


@pytest.mark.parametrize(
    "function", [None, 3, "x", [1], iter("x"), np.ones(3)], ids=lambda x: type(x).__name__
)
def test_what_is_no_function(function):
    with pytest.raises(TypeError, match="'function'"):
        shadow.jit(function)
    with pytest.raises(TypeError, match="'function'"):
        shadow.jit(static=["a"])(function)


def test_what_python_does_not_know_the_arguments_of():
    with pytest.raises(TypeError, match="written in Python"):
        shadow.jit(dict.fromkeys if not hasattr(dict.fromkeys, "__text_signature__") else min)


@pytest.mark.parametrize("static", [None, 3, "a", b"a", [1], [None]], ids=repr)
def test_static_is_a_sequence_of_names(static):
    with pytest.raises(TypeError, match="'static'"):
        shadow.jit(lambda a: None, static=static)


def test_an_error_in_the_function_leaves_nothing_done():
    a, b = tensors(2)
    before, fail = a.numpy().copy(), [True]

    @shadow.jit
    def step(a, b, x):
        a[:] = b * x
        if fail[0]:
            raise KeyError("of its own")
        b[1:] += a[:-1]

    for _ in range(2):
        with pytest.raises(KeyError, match="of its own"):
            step(a, b, 2.0)
        np.testing.assert_array_equal(a.numpy(), before)
    fail[0] = False
    wanted = b.numpy() * 2
    step(a, b, 2.0)
    np.testing.assert_array_equal(a.numpy(), wanted)
    fail[0] = True
    step(a, b, 0.0)  # it was traced; its lines do not run again
    assert not a.numpy().any()
    with pytest.raises(KeyError):
        step(a[1:], b[1:], 2.0)
    a[:] = 1.0
    assert a.numpy().all()


def test_an_error_of_the_function_tells_what_it_was_traced_with():
    @shadow.jit
    def double(x, y, note):
        x[:] = y * 2

    x = Tensor(np.ones(3, np.float32))
    with pytest.raises(TypeError) as told:
        double("here", 2, None)
    assert told.value.__notes__ == [
        "in double, traced with x='here', note=None; "
        "not known then: y (`static` names those whose values it needs)"
    ]
    double(x, 2, None)
    assert x.numpy().tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "asks",
    [
        np.sqrt,
        lambda k: np.maximum(1.0, k),
        lambda k: fn.exp(k) * 1.0,
        lambda k: float(f"{k:.2f}"),
        lambda k: float(f"{k}"),
        lambda k: float(str(k)),
        lambda k: (np.full(1, 2.0) * k).item(),
    ],
)
def test_what_asks_for_a_number_tells_which(asks):
    x = Tensor(np.ones(3, np.float32))
    with pytest.raises(GnomonError, match=r"k is not known.*name its argument in `static`"):
        shadow.jit(lambda x, k: done(x.assign(x * asks(k))))(x, 2)
    shadow.jit(lambda x, k: done(x.assign(x * asks(k))), static=["k"])(x, 2)
    np.testing.assert_allclose(x.numpy(), asks(2), rtol=1e-6)


def test_where_a_number_has_to_be_known_the_error_names_static():
    x = Tensor(np.ones(3, np.float32))
    for pick in (lambda x, k: x[k], lambda x, k: x[:k], lambda x, k: {1: x}[k]):
        with pytest.raises((TypeError, KeyError)) as told:
            shadow.jit(lambda x, k, pick=pick: done(pick(x, k).assign(0.0)))(x, 1)
        (note,) = told.value.__notes__
        assert "not known then: k (`static` names" in note


def test_what_needs_the_values_of_a_tensor_names_it():
    keys, values = tensors(2)
    for sort in (shadow.sort_by_key, shadow.vectorized_sort):
        with pytest.raises(TraceError, match=r"^<lambda>: keys: the values of .*in [a-z_]*sort"):
            shadow.jit(lambda keys, values, sort=sort: sort(keys, values))(keys, values)
    with pytest.raises(TraceError, match="<lambda>: b: the values of"):
        shadow.jit(lambda a, b: done(a.assign(float(b[1].numpy()))))(keys, values)


def test_streams_whose_state_differs_at_each_call_are_refused():
    rnd, kept = shadow.Random(seed=3), []
    (a,) = tensors(1)
    for asks in (lambda: rnd.seed(5), lambda: rnd.split(2), lambda: rnd.state):
        with pytest.raises(TraceError, match=r"<lambda>: Random: where a stream stands is not"):
            shadow.jit(lambda a, asks=asks: done(asks(), a.assign(rnd.uniform(a.shape))))(a)
    assert rnd.state == (3, 0)

    def keeps(a):
        kept.append(shadow.Random(seed=4))
        a[:] = kept[-1].uniform(a.shape)

    with pytest.raises(TraceError, match=r"keeps: argument 'function'.*outlives the call"):
        shadow.jit(keeps)(a)


def test_a_function_that_stores_nothing_is_refused():
    @shadow.jit
    def forgets(a, k):
        a * k

    (a,) = tensors(1)
    with pytest.raises(TraceError, match=r"forgets: argument 'function'.*stored nowhere"):
        forgets(a, 2.0)

    def times(a, count, *others):
        for _ in range(count):
            a[:] = a + 1.0
        for b in others:
            b[:] = a

    before = a.numpy().copy()
    shadow.jit(times, static=["count"])(a, 0)  # what is static may say that there is nothing to do
    np.testing.assert_array_equal(a.numpy(), before)

"""Index rules of other people: they never read outside, and are told what they do wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.expr.arguments import explained
from gnomon.expr.composite import Call, Chainer, Scatter, Size
from gnomon.expr.diff import vjp
from gnomon.expr.node import Expr
from gnomon.expr.oracle import evaluate
from gnomon.expr.reducer import SUM
from gnomon.shadow import Tensor, TensorContainer

TEN = np.arange(10, 20).astype(np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class Plain(Chainer):
    """As `src`; what tests derive from."""

    src: Expr

    def infer(self):
        return self.src.shape, self.src.dtype

    def at(self, i):
        return i.elem(self.src, i)


@dataclass(frozen=True, eq=False, repr=False)
class Shifted(Plain):
    """Element i is i + by of `src`."""

    by: Size

    def at(self, i):
        return i.elem(self.src, (i[0] + self.by,))


@dataclass(frozen=True, eq=False, repr=False)
class Through(Shifted):
    """The same, without asking for it through the index."""

    def at(self, i):
        return self.src.at(i.put(0, i[0] + self.by))


@dataclass(frozen=True, eq=False, repr=False)
class Padded(Shifted):
    """`src` with zeros behind it, behind a guard."""

    def infer(self):
        return (self.by,), self.src.dtype

    def at(self, i):
        return i.guard(i[0] < self.src.shape[0], i.elem(self.src, (i[0],)), 0)


class Mirrored(Plain):
    """From the end."""

    def at(self, i):
        return i.elem(self.src, (self.src.shape[0] - 1 - i[0],))


@dataclass(frozen=True, eq=False, repr=False)
class Chosen(Chainer):
    """What `index` names."""

    src: Expr
    index: Expr

    def infer(self):
        return self.index.shape, self.src.dtype

    def at(self, i):
        return i.elem(self.src, (i.elem(self.index, i),))


@dataclass(frozen=True, eq=False, repr=False)
class Summed(Shifted):
    """Sums of `by` neighbours."""

    def at(self, i):
        return i.fold(SUM, [self.by], lambda k: i.elem(self.src, (i[0] + k[0],)))


@dataclass(frozen=True, eq=False, repr=False)
class Thrown(Scatter):
    """Every element of `src` added `by` places further."""

    src: Expr
    by: Size

    def infer(self):
        return self.src.shape, self.src.dtype

    @property
    def source(self):
        return self.src, 1

    def at(self, i):
        return i.elem(self.src, (i[0] - self.by,))

    def onto(self, i):
        return (i[0] + self.by,)

    def over(self, source):
        return Thrown(source, self.by)


def computed(e) -> np.ndarray:
    """`e` beside guard values that nobody may read or write."""
    n = e.shape[0]
    memory = np.full(n + 200, -99, e.dtype.numpy)
    Tensor(memory[100 : 100 + n]).assign(e)
    assert (memory[:100] == -99).all()
    assert (memory[100 + n :] == -99).all()
    return memory[100 : 100 + n]


def ten() -> Tensor:
    """Ten numbers between others that must not be seen."""
    memory = np.full(210, np.nan, np.float32)
    memory[100:110] = TEN
    return Tensor(memory[100:110])


def clipped(by: int) -> np.ndarray:
    return TEN[np.clip(np.arange(10) + by, 0, 9)]


@pytest.mark.parametrize("kind", [Shifted, Through])
@pytest.mark.parametrize("by", [0, 1, -1, 9, 10, -37, 10**12, 2**62, -(2**62)])
def test_an_index_outside_is_the_nearest_inside(kind, by):
    e = kind(ten(), by)
    np.testing.assert_array_equal(computed(e), clipped(by))
    np.testing.assert_array_equal(evaluate(e), clipped(by))
    assert e.clips == (by != 0)


def test_what_is_seen_to_stay_inside_is_not_clipped():
    for e, wanted in (
        (Mirrored(ten()), TEN[::-1]),
        (Padded(ten(), 13), np.pad(TEN, (0, 3))),
        (Padded(ten(), 4), TEN[:4]),
        (Padded(TensorContainer((0,)), 4), np.zeros(4)),
        (Plain(ten()), TEN),
    ):
        np.testing.assert_array_equal(computed(e), wanted)
        assert not e.clips
        assert "min(" not in e.loop()


def test_kernels_for_sizes_that_clip_and_that_do_not_are_two():
    for by in (0, 3, 0, 5):
        np.testing.assert_array_equal(computed(Shifted(ten(), by) * 2.0), clipped(by) * 2)


def test_indices_that_are_data_are_clipped():
    index = Tensor(np.array([3, -1, 10, 2**62, -(2**63), 9]))
    np.testing.assert_array_equal(computed(Chosen(ten(), index)), TEN[[3, 0, 9, 9, 0, 9]])


def test_a_rule_of_other_sizes_is_refused_where_it_would_read_outside():
    class Column(Shifted):
        def infer(self):
            return (self.by,), self.src.dtype

        def at(self, i):
            return i.elem(self.src, (i[0], i.arena.const(0)))

    x = TensorContainer((20_000, 1), init=1.0)
    e = Column(x, 20_000)
    assert not e.clips
    np.testing.assert_array_equal(computed(e), np.ones(20_000))
    x.resize((2, 20_000))
    with pytest.raises(ShapeError, match="operands as they were when it was made"):
        computed(e)
    x.resize((30_000, 1))[:] = 2.0
    np.testing.assert_array_equal(computed(e), np.full(20_000, 2.0))


@pytest.mark.parametrize("places", [(), (0, 0)])
def test_a_scatter_to_a_place_of_another_rank_is_told(places):
    class Lost(Thrown):
        def onto(self, i):
            return places

    with pytest.raises(TypeError, match=r"Lost.onto: argument 'result': expected 1 components"):
        Lost(ten(), 0)


def test_a_fold_is_clipped():
    wanted = [TEN[np.clip(np.arange(i, i + 4), 0, 9)].sum() for i in range(10)]
    np.testing.assert_array_equal(computed(Summed(ten(), 4)), wanted)


def test_an_operand_without_elements_reads_as_0():
    class Some(Shifted):
        def infer(self):
            return (5,), self.src.dtype

    np.testing.assert_array_equal(computed(Some(TensorContainer((0,)), 2)), np.zeros(5))


@pytest.mark.parametrize("by", [0, 2, -3, 50, 10**12])
def test_a_scatter_never_adds_outside(by):
    memory = np.full(210, 1.0, np.float32)
    wanted = np.ones(10, np.float32)
    np.add.at(wanted, np.clip(np.arange(10) + by, 0, 9), TEN)
    dest = Tensor(memory[100:110])
    dest += Thrown(ten(), by)
    np.testing.assert_array_equal(memory[100:110], wanted)
    assert (memory[:100] == 1).all()
    assert (memory[110:] == 1).all()


def test_nodes_made_by_native_code_are_clipped_too():
    x, make = ten(), explained(Shifted)
    make.__name__ = "shifted"
    for k in range(200):
        out = TensorContainer((10,))
        out[:] = make(x, 3) + float(k)
        np.testing.assert_array_equal(out.numpy(), clipped(3) + k)


def asks(condition):
    class Asking(Plain):
        def at(self, i):
            return i.elem(self.src, i) if condition(self, i) else i.elem(self.src, (0,))

    return Asking


@pytest.mark.parametrize(
    "condition",
    [
        lambda e, i: i[0],
        lambda e, i: i[0] < 3,
        lambda e, i: i[0] == 3,
        lambda e, i: i[0] != 3,
        lambda e, i: 3 == i[0],  # noqa: SIM300
        lambda e, i: i[0] in (1, 2),
        lambda e, i: not i[0].eq(2),
        lambda e, i: i.elem(e.src, i) > 0.0,
        lambda e, i: i[0] > 2 and i[0] < 5,
    ],
)
def test_an_if_on_an_index_is_told(condition):
    with pytest.raises(TypeError, match=r"runs once, not for every element"):
        asks(condition)(ten())


def test_an_if_on_a_size_is_python():
    np.testing.assert_array_equal(computed(asks(lambda e, i: e.src.ndim == 1)(ten())), TEN)
    np.testing.assert_array_equal(computed(asks(lambda e, i: e.src.shape[0] != 1)(ten())), TEN)
    with pytest.raises(TypeError, match=r"write a.eq"):
        computed(asks(lambda e, i: e.src.shape[0] == 10)(ten()))


def test_an_index_is_not_divided_by_what_may_be_0():
    class Halved(Shifted):
        def at(self, i):
            return i.elem(self.src, (i[0] // self.by,))

    class Rest(Shifted):
        def at(self, i):
            return i.elem(self.src, (i[0] % i.arena.cast(i.elem(self.src, i), dt.int64),))

    np.testing.assert_array_equal(computed(Halved(ten(), 3)), TEN[np.arange(10) // 3])
    for wrong in (lambda: Halved(ten(), 0), lambda: Rest(ten(), 0)):
        with pytest.raises(ParamError, match=r"at: argument 'divisor': .*never 0"):
            wrong()


def test_a_rule_that_gives_no_term_or_an_index_of_another_rank_is_told():
    class Nothing(Plain):
        def at(self, i):
            return None

    class Flat(Plain):
        def at(self, i):
            return i.elem(self.src, (i[0],))

    with pytest.raises(TypeError, match=r"Nothing.at: argument 'result': expected a Term.*None"):
        Nothing(ten())
    with pytest.raises(TypeError, match=r"Flat.at: argument 'index': expected 2 components"):
        Flat(TensorContainer((2, 3)))


@pytest.mark.parametrize(
    "found",
    [None, 5, ((2.5,), dt.float32), ((4,), "nonsense"), ("ab", dt.float32), ((4,),), (None, None)],
)
def test_what_infer_must_give_is_told(found):
    class Wrong(Plain):
        def infer(self):
            return found

    with pytest.raises(TypeError, match=r"Wrong.infer: argument 'result': expected a shape"):
        Wrong(ten())


def test_infer_may_name_its_dtype_and_use_numpys_integers():
    class Named(Plain):
        def infer(self):
            return (np.int64(10),), "float32"

    e = Named(ten())
    assert e.shape == (10,)
    assert type(e.shape[0]) is int
    assert e.dtype is dt.float32
    np.testing.assert_array_equal(computed(e), TEN)


def test_negative_sizes_are_told():
    class Negative(Plain):
        def infer(self):
            return (-1, -4), self.src.dtype

    with pytest.raises(ShapeError, match="none of them negative"):
        Negative(ten())


def test_a_gradient_without_adjoint_is_told_when_it_is_asked_for():
    x, y = ten(), TensorContainer((10,))
    e = Plain(x)
    np.testing.assert_array_equal(computed(e), TEN)
    with pytest.raises(GnomonError, match=r"Plain: argument 'gradient': expected adjoint"):
        vjp([e * 2.0], [y], [x])
    assert vjp([e], [y], [y]) == [None]  # nothing of it is asked
    whole = Tensor(np.arange(10))
    assert vjp([shadow.tcast("float32", Plain(whole))], [y], [whole])[0] is None


def test_calls_of_others_have_no_rule():
    @dataclass(frozen=True, eq=False, repr=False)
    class Sorted(Call):
        src: Expr

        def infer(self):
            return self.src.shape, self.src.dtype

        def reference(self, src):
            return np.sort(src)

    x = Tensor(TEN[::-1].copy())
    np.testing.assert_array_equal(evaluate(Sorted(x) * 2.0), TEN * 2)
    with pytest.raises(GnomonError, match=r"Sorted: argument 'gradient'"):
        vjp([Sorted(x)], [x], [x])


def test_an_adjoint_that_gives_nothing_declares_a_constant():
    class Constant(Plain):
        def adjoint(self, g):
            return ()

    x = ten()
    assert vjp([Constant(x)], [x], [x]) == [None]


def test_classes_that_cannot_be_nodes_are_told():
    class Undecorated(Chainer):
        src: Expr

    @dataclass(frozen=True, repr=False)
    class Comparing(Plain):
        pass

    @dataclass(frozen=True, eq=False, repr=False)
    class Ruleless(Chainer):
        src: Expr

        def infer(self):
            return self.src.shape, self.src.dtype

    with pytest.raises(TypeError, match=r"Undecorated.*@dataclass"):
        Undecorated(ten())
    with pytest.raises(TypeError, match=r"Comparing.*eq=False"):
        Comparing(ten())
    with pytest.raises(TypeError, match=r"Ruleless must define at"):
        Ruleless(ten())


@pytest.mark.parametrize("name", ["at", "adjoint", "outline", "children"])
def test_data_has_no_rule_of_its_own(name):
    with pytest.raises(TypeError, match=rf"Odd: argument '{name}': expected no rule of its own"):
        type("Odd", (Tensor,), {name: lambda self, *_: None})

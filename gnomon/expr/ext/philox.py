"""philox: random numbers as a function of a seed and a counter.

The function is Philox2x32-10 of Salmon et al. (SC 2011). An element depends on the state and its
own position alone: the same for any number of threads and any vector width, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon import dtype as dt
from gnomon.base import DTypeError, GnomonError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.term import Term, compute_dtype

MULTIPLIER, WEYL, ROUNDS = 0xD256D193, 0x9E3779B9, 10
LOW = 0xFFFFFFFF
Words = tuple[Term, Term]


def rounds(counter: Words, key: Term) -> Words:
    """Two random words of 32 bits, of a counter of two words and a key, all held in uint64."""
    left, right = counter
    for number in range(ROUNDS):
        product = left * MULTIPLIER
        mixed = (key + number * WEYL) & LOW
        left = left.arena.op("xor", left.arena.op("xor", shifted(product, 32), mixed), right)
        right = product & LOW
    return left, right


def shifted(word: Term, count: int) -> Term:
    """`word` shifted down."""
    return word.arena.op("lshr", word, word.like(count))


def uniform(word: Term) -> Term:
    """A number in [0, 1) of float32: 24 random bits."""
    return word.arena.cast(word.arena.cast(shifted(word, 8), dt.int32), dt.float32) * 2.0**-24


def uniforms(words: Words) -> Words:
    """Two numbers in [0, 1) of float32."""
    return uniform(words[0]), uniform(words[1])


def precise(words: Words) -> Term:
    """A number in [0, 1) of float64: 52 random bits."""
    high, low = words
    arena = high.arena
    mantissa = arena.op("shl", high, high.like(20)) | shifted(low, 12)
    return arena.bitcast(mantissa | 0x3FF0000000000000, dt.float64) - 1.0


def normals(words: Words, dtype: DType) -> Words:
    """Two normal numbers of mean 0 and variance 1, by Box and Muller."""
    high, low = words
    arena = high.arena
    share = unit(high, dtype) + (0.5 if dtype is dt.float64 else 2.0**-25) * 2.0**-32
    radius = arena.op("sqrt", arena.op("log", share) * -2.0)
    angle = unit(low, dtype) * 2.0
    return radius * arena.op("cospi", angle), radius * arena.op("sinpi", angle)


def unit(word: Term, dtype: DType) -> Term:
    """A word as a number in [0, 1]."""
    half = word.arena.cast(word.arena.cast(shifted(word, 1), dt.int32), dtype)
    return half * 2.0**-31


KINDS = ("uniform", "normal", "normal alone")


@composite
class Philox(Chainer):
    """Element n is made of the pair of words `state[1] + n // 2` of the seed `state[0]`.

    Uniform numbers of float64 take a pair each, `state[1] + n`, and so do normal ones 'alone': for
    trials, of which each is computed by itself.
    """

    state: Expr
    to: Sizes
    kind_of: str
    of: DType

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if self.state.shape != (2,) or self.state.dtype is not dt.int64:
            expected = "two numbers of int64: seed and position"
            raise DTypeError(complaint("philox", "state", expected, f"{self.state!r}"))
        if self.of.kind != "f":
            raise DTypeError(complaint("philox", "dtype", "a floating type", self.of.name))
        return self.to, self.of

    def at(self, i: Index) -> Term:
        position = i.arena.const(0)
        for x, n in zip(i, self.shape, strict=True):
            position = position * n + x
        of = compute_dtype(self.of)
        if self.kind_of == "uniform" and of is dt.float64:
            return precise(self.words(i, position))
        if self.kind_of == "normal alone":
            return normals(self.words(i, position), of)[0]
        words = self.words(i, position // 2)
        first, second = normals(words, of) if self.kind_of == "normal" else uniforms(words)
        return i.select((position % 2).eq(0), first, second)

    def words(self, i: Index, position: Term) -> Words:
        """The words at a position of the sequence."""
        seed, count = (i.arena.cast(i.elem(self.state, (k,)), dt.uint64) for k in (0, 1))
        count = count + i.arena.cast(position, dt.uint64)
        # the seed's upper half has no room in the key: it tells apart counters instead
        high = i.arena.op("xor", shifted(count, 32), shifted(seed, 32))
        return rounds((count & LOW, high), seed & LOW)


@explained
def philox(state: Expr, shape: Sequence[int], kind: str, dtype: DType = dt.float32) -> Expr:
    """Random numbers, 'uniform', 'normal' or 'normal alone'; `state` is (seed, position) in int64.

    The code that draws advances the position by the number of elements.

    >>> philox(Buffer((2,), dt.int64), (3, 4), "uniform").shape
    (3, 4)

    Raises:
        DTypeError: `state` or `dtype` is not as said.
        GnomonError: no such kind.
    """
    if kind not in KINDS:
        raise GnomonError(complaint("philox", "kind", f"one of {', '.join(KINDS)}", repr(kind)))
    return Philox(state, checked_sizes("philox", shape), kind, dtype)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield philox(Buffer((2,), dt.int64), (3, 4), "uniform")
    yield philox(Buffer((2,), dt.int64), (5,), "normal", dt.float64)

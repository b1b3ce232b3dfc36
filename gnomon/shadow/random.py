"""Random: numbers of many distributions, as expressions that fuse, or drawn into tensors.

State: a seed and a position. An expression takes its positions when it is built, so it has one
value however often it is stored; the numbers depend on seed and position alone, not on threads,
vectors or what they are fused with. `state` and `split` save a stream and make others.

Where a distribution needs trials that may fail (gamma, Poisson from a mean of 10), each element has
a fixed number of them and the first that succeeds counts; kernels make no more. Should all fail, as
never happens in 10^20 elements, the mean, or what lies next to it, is given.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, Later, ParamError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import ext, fn
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, whole
from gnomon.expr.deferred import TraceError
from gnomon.expr.ext.philox import Philox
from gnomon.expr.node import Buffer, Expr, Scalar, cast
from gnomon.expr.pattern import pattern_of
from gnomon.ground.lock import exclusive, in_child
from gnomon.runtime.devices import device as devices
from gnomon.runtime.statements.dispatch import TRACERS, Tracer, tracer
from gnomon.shadow.tensor import Tensor
from gnomon.shape import prod

if TYPE_CHECKING:
    from gnomon.runtime.statements import transfer
else:  # where kernels read the position in another memory
    transfer = Later("gnomon.runtime.statements.transfer")

TRIALS, INVERTED = 32, 44
MASK = (1 << 64) - 1


#: all there are: a forked child gives them new locks
_streams: weakref.WeakSet[Random] = weakref.WeakSet()


class Random:
    """A stream of random numbers on a device.

    >>> from gnomon.shadow.container import TensorContainer
    >>> rnd = Random(seed=7)
    >>> w = TensorContainer((2, 3))
    >>> w[:] = rnd.gaussian(w.shape) * 0.01
    >>> bool(abs(w.numpy()).max() < 0.1)
    True

    Raises:
        DeviceError: there is no such device.
    """

    def __init__(self, device: str = "cpu", seed: int = 0) -> None:
        self.device = devices.find(device).name
        self._lock = exclusive()
        _streams.add(self)
        if TRACERS and (taker := tracer()) is not None:
            taker.streams.add(self)
        self.seed(seed)

    def __reduce__(self) -> Any:
        """Pickled or copied: a stream of its own that goes on from here."""
        return type(self), (self.device,), self.state

    def __setstate__(self, state: tuple[int, int]) -> None:
        self.state = state

    def seed(self, seed: int) -> None:
        """Begin the stream of `seed`."""
        self.state = (seed, 0)

    @property
    def state(self) -> tuple[int, int]:
        """Seed and position: assign it to another stream, and that goes on from here."""
        self._check_known()
        with self._lock:
            return self._seed, self._position

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        self._check_known()
        seed, position = state
        try:
            seed = operator.index(seed)
        except TypeError:
            expected, got = "a whole number", f"a {type(seed).__name__}"
            raise TypeError(complaint("Random", "seed", expected, got)) from None
        if whole("Random", "state", position) < 0:
            raise ParamError(complaint("Random", "state", "a position of at least 0", position))
        with self._lock:
            self._seed, self._position = seed & MASK, position

    @explained
    def split(self, count: int) -> list[Random]:
        """`count` streams of their own, always the same ones at one place of this stream.

        Raises:
            ParamError: more than a million.
        """
        seed, position = self.state
        if whole("split", "count", count, 0) > 1 << 20:
            raise ParamError(complaint("split", "count", f"at most {1 << 20}", count))
        self.reserve(count)
        start = mixed(seed) + position
        return [Random(self.device, mixed(start + k)) for k in range(count)]

    def _check_known(self) -> None:
        """A TraceError where each call of the function that is traced finds another state."""
        if self._taker() is not None:
            raise TraceError(
                "Random: where a stream stands is not known while a function is traced: seed and "
                "split it outside of the function, or make a Random inside"
            )

    def _taker(self) -> Tracer | None:
        """Who has each call draw: where the function that is traced did not make this stream."""
        taker = tracer() if TRACERS else None
        return None if taker is None or self in taker.streams else taker

    @explained
    def reserve(self, count: int) -> Buffer:
        """Take the next `count` numbers: their seed and position."""
        whole("reserve", "count", count, 0)
        taker = self._taker()
        return taken(self, count) if taker is None else taker.draw(self, count)

    @explained
    def give_back(self, taken: Buffer, count: int) -> None:
        """Numbers that were taken and not used come again, unless others were taken since.

        Raises:
            ParamError: `taken` is not what `reserve` gave.
        """
        if taken.shape != (2,) or taken.dtype is not dt.int64:
            expected = "what reserve gave"
            raise ParamError(complaint("give_back", "taken", expected, f"{taken!r}"))
        whole("give_back", "count", count, 0)
        with self._lock:
            start = int(taken.numpy()[1]) & MASK
            if self._position == start + count & MASK:
                self._position = start

    def _draw(self, shape: Sequence[int], kind: str, dtype: Any) -> Expr:
        sizes, of = checked_sizes("Random", shape), dt.of(dtype)
        if of.kind != "f":
            raise DTypeError(complaint("Random", "dtype", "a floating type", of.name))
        drawn = Philox(self.reserve(prod(sizes)), sizes, kind, of)
        pattern_of(drawn)  # what is made of it, and was before, is found by that
        return drawn

    # -- expressions ----------------------------------------------------------------------------

    @explained
    def uniform(self, shape: Sequence[int], dtype: Any = dt.default_real) -> Expr:
        """Numbers in [0, 1); raises DTypeError for integers."""
        return self._draw(shape, "uniform", dtype)

    @explained
    def gaussian(self, shape: Sequence[int], dtype: Any = dt.default_real) -> Expr:
        """Normal numbers of mean 0 and variance 1; raises DTypeError for integers."""
        return self._draw(shape, "normal", dtype)

    @explained
    def exponential(
        self, shape: Sequence[int], lam: float = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Numbers of an exponential distribution of rate `lam`; ParamError unless that is > 0."""
        positive("exponential", lam=lam)
        return -fn.log1p(-self.uniform(shape, dtype)) / lam

    @explained
    def gamma(
        self,
        shape: Sequence[int],
        alpha: float | Expr = 1.0,
        beta: float | Expr = 1.0,
        dtype: Any = dt.default_real,
    ) -> Expr:
        """Numbers of a gamma distribution of shape `alpha` and scale `beta`, both > 0: numbers, or
        expressions of `shape` in float64.

        The trials are those of Marsaglia and Tsang (ACM TOMS 26, 2000).

        Raises:
            ParamError: a parameter that is not above 0.
        """
        if isinstance(alpha, Expr) or isinstance(beta, Expr):
            form = alpha if isinstance(alpha, Expr) else constant(alpha, shape, dt.float64)
            return cast(self._gammas(shape, cast(form, dt.float64)) * beta, dt.of(dtype))
        positive("gamma", alpha=alpha, beta=beta)
        if alpha < 1:
            share = fn.power(1.0 - self.uniform(shape, dtype), 1.0 / alpha)
            return self.gamma(shape, alpha + 1.0, beta, dtype) * share
        d = alpha - 1.0 / 3.0
        return self._cubes(shape, d, 1.0 / (9.0 * d) ** 0.5, dtype) * (d * beta)

    def _gammas(self, shape: Sequence[int], alpha: Expr) -> Expr:
        """Numbers of gamma distributions of scale 1, one for each shape in `alpha`."""
        small = alpha < 1.0
        share = fn.power(1.0 - self.uniform(shape, alpha.dtype), 1.0 / alpha)
        d = fn.where(small, alpha + 1.0, alpha) - 1.0 / 3.0
        wide = ext.broadcast_with_axis(d, len(shape) - 1, TRIALS)
        v = self._cubes(shape, wide, fn.rsqrt(wide * 9.0), alpha.dtype)
        return v * d * fn.where(small, share, 1.0)

    def _cubes(self, shape: Sequence[int], d: Any, width: Any, dtype: Any) -> Expr:
        """Cubes of normal numbers around 1, by trials; times `d` they are gamma distributed."""
        trials = (*shape, TRIALS)
        x, u = self._draw(trials, "normal alone", dtype), 1.0 - self.uniform(trials, dtype)
        root = x * width + 1.0
        v = root * root * root
        bound = x * x * 0.5 + d * (1.0 - v + fn.log(fn.maximum(v, 1e-30)))
        good = (v > 0.0) * (fn.log(u) < bound)
        return ext.first(good, v, constant(1.0, shape, v.dtype))

    @explained
    def poisson(
        self, shape: Sequence[int], lam: float | Expr = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Whole numbers of a Poisson distribution of mean `lam`, a number or an expression.

        Means below 10 by inversion, others by the trials of Hoermann (PTRS, 1993). Elements of an
        expression that are no mean, below 0 or NaN, give NaN.

        Raises:
            ParamError: a mean that is not a number of at least 0.
            ShapeError: an expression of another shape.
        """
        if isinstance(lam, Expr):
            sizes, mean = checked_sizes("Random", shape), cast(lam, dt.float64)
            if mean.shape != sizes:
                raise ShapeError(complaint("poisson", "lam", f"shape {sizes}", f"{lam!r}"))
            small = self._inverted(shape, fn.minimum(mean, 10.0))
            large = self._trials(shape, fn.maximum(mean, 10.0))
            drawn = fn.where(mean < 10.0, small, large)
            return cast(fn.where(mean >= 0.0, drawn, float("nan")), dt.of(dtype))
        if not 0 <= lam < float("inf"):
            raise ParamError(complaint("poisson", "lam", "a number of at least 0", lam))
        wide = constant(lam, shape, dt.float64)
        method = self._inverted if lam < 10 else self._trials
        return cast(method(shape, wide), dt.of(dtype))

    def _inverted(self, shape: Sequence[int], mean: Expr) -> Expr:
        """The number of k whose distribution function a uniform number exceeds."""
        u = self.uniform(shape, dt.float64)
        p: Expr = fn.exp(-mean)
        below: Expr = p
        count: Expr = u >= below
        for k in range(1, INVERTED):
            p = p * mean * (1.0 / k)
            below = below + p
            count = count + (u >= below)
        return count

    def _trials(self, shape: Sequence[int], mean: Expr) -> Expr:
        trials = (*shape, TRIALS)
        mu = ext.broadcast_with_axis(mean, len(shape) - 1, TRIALS)
        u = self.uniform(trials, dt.float64) - 0.5
        v = 1.0 - self.uniform(trials, dt.float64)
        b = fn.sqrt(mu) * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        us = 0.5 - fn.abs(u)
        k = fn.floor((2.0 * a / us + b) * u + mu + 0.43)
        sure = (us >= 0.07) * (v <= 0.9277 - 3.6224 / (b - 2.0))
        scale = fn.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
        likely = scale <= k * fn.log(mu) - mu - fn.gammaln(fn.maximum(k, 0.0) + 1.0)
        possible = (k >= 0.0) * fn.maximum(us >= 0.013, v <= us)
        good = fn.maximum(sure, possible * likely)
        return ext.first(good, k, fn.floor(mean))

    @explained
    def negative_binomial(
        self, shape: Sequence[int], k: float = 1.0, p: float = 1.0, dtype: Any = dt.default_real
    ) -> Expr:
        """Failures before `k` successes of probability `p`; ParamError unless k > 0, 0 < p <= 1."""
        positive("negative_binomial", k=k, p=p)
        if p > 1:
            raise ParamError(complaint("negative_binomial", "p", "a number of at most 1", p))
        if p == 1:
            return self.poisson(shape, 0.0, dtype)
        return self.poisson(shape, self.gamma(shape, k, (1.0 - p) / p, dt.float64), dtype)

    @explained
    def generalized_negative_binomial(
        self,
        shape: Sequence[int],
        mu: float = 1.0,
        alpha: float = 1.0,
        dtype: Any = dt.default_real,
    ) -> Expr:
        """Whole numbers of mean `mu` and variance `mu + alpha * mu**2`; ParamError below 0."""
        if alpha == 0 or mu == 0:
            return self.poisson(shape, mu, dtype)
        positive("generalized_negative_binomial", mu=mu, alpha=alpha)
        rate = self.gamma(shape, 1.0 / alpha, mu * alpha, dt.float64)
        return self.poisson(shape, rate, dtype)

    @explained
    def integers(self, shape: Sequence[int], dtype: Any = dt.int64) -> Expr:
        """Integers from 0 to before 2**32; of narrower types, from all they hold."""
        kind = dt.of(dtype)
        if kind.kind not in "iu":
            raise DTypeError(complaint("integers", "dtype", "an integer type", kind.name))
        low, high = kind.limits if kind.size <= 4 else (0, 2**32 - 1)
        share = self.uniform(shape, dt.float64) * float(high - low + 1)
        return cast(fn.floor(share) + float(low), kind)

    # -- into tensors ---------------------------------------------------------------------------

    @explained
    def sample_uniform(self, dst: Tensor, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Fill `dst` with numbers in [low, high); ParamError where high is below low."""
        if not low <= high:
            raise ParamError(complaint("sample_uniform", "high", f"at least low, {low}", high))
        return self._fill(dst, lambda kind: self.uniform(dst.shape, kind) * (high - low) + low)

    @explained
    def sample_gaussian(self, dst: Tensor, mu: float = 0.0, sigma: float = 1.0) -> Tensor:
        """Fill `dst` with normal numbers; ParamError where `sigma` is below 0."""
        if not sigma >= 0:
            raise ParamError(complaint("sample_gaussian", "sigma", "at least 0", sigma))
        return self._fill(dst, lambda kind: self.gaussian(dst.shape, kind) * sigma + mu)

    @explained
    def sample_gamma(self, dst: Tensor, alpha: float = 1.0, beta: float = 1.0) -> Tensor:
        """Fill `dst` as `gamma` says."""
        return self._fill(dst, lambda kind: self.gamma(dst.shape, alpha, beta, kind))

    @explained
    def sample_exponential(self, dst: Tensor, lam: float = 1.0) -> Tensor:
        """Fill `dst` as `exponential` says."""
        return self._fill(dst, lambda kind: self.exponential(dst.shape, lam, kind))

    @explained
    def sample_poisson(self, dst: Tensor, lam: float = 1.0) -> Tensor:
        """Fill `dst` as `poisson` says."""
        return dst.assign(self.poisson(dst.shape, lam, dst.dtype))

    @explained
    def sample_negative_binomial(self, dst: Tensor, k: float = 1.0, p: float = 1.0) -> Tensor:
        """Fill `dst` as `negative_binomial` says."""
        return dst.assign(self.negative_binomial(dst.shape, k, p, dst.dtype))

    @explained
    def sample_generalized_negative_binomial(
        self, dst: Tensor, mu: float = 1.0, alpha: float = 1.0
    ) -> Tensor:
        """Fill `dst` as `generalized_negative_binomial` says."""
        return dst.assign(self.generalized_negative_binomial(dst.shape, mu, alpha, dst.dtype))

    @explained
    def get_rand_int(self, dst: Tensor) -> Tensor:
        """Fill `dst` as `integers` says; DTypeError where it holds no integers."""
        return dst.assign(self.integers(dst.shape, dst.dtype))

    def _fill(self, dst: Tensor, make: Callable[[DType], Expr]) -> Tensor:
        if dst.dtype.kind != "f":
            raise DTypeError(complaint("Random", "dst", "a floating type", f"{dst!r}"))
        return dst.assign(make(dst.dtype))


def taken(source: Random, count: int) -> Buffer:
    """What `reserve` gives where no function is traced, of a count that is known to be one."""
    with source._lock:
        held = np.array([source._seed, source._position], np.uint64).view(np.int64)
        source._position = source._position + count & MASK
    place = Buffer((2,), dt.int64, None, held.ctypes.data, held)
    return place if source.device == "cpu" else transfer.sent(place, source.device)


def constant(number: float, shape: Sequence[int], dtype: DType) -> Expr:
    """An expression of `shape` that is `number` everywhere."""
    return ext.broadcast_to(Scalar(number, dtype), shape)


def positive(where: str, **numbers: float) -> None:
    """A ParamError unless all numbers are finite and above 0."""
    for name, value in numbers.items():
        if not 0 < value < float("inf"):
            raise ParamError(complaint(where, name, "a finite number above 0", value))


def mixed(number: int) -> int:
    """64 bits that look unlike those of any other number (the finaliser of SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held a stream's lock."""
    for stream in _streams:
        stream._lock = exclusive()


in_child(_in_child)

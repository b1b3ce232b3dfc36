"""Random: numbers of many distributions, as expressions that fuse, or drawn into tensors.

State: a seed and a position. An expression takes its positions when it is built, so it has one
value however often it is stored; the numbers depend on seed and position alone, not on threads,
vectors or what they are fused with. `state` and `split` save a stream and make others.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, Later, ParamError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, whole
from gnomon.expr.deferred import TraceError
from gnomon.expr.ext.philox import Philox
from gnomon.expr.functions.distributions import Distributions
from gnomon.expr.node import Buffer, Expr
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

MASK = (1 << 64) - 1


#: all there are: a forked child gives them new locks
_streams: weakref.WeakSet[Random] = weakref.WeakSet()


class Random(Distributions):
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
        except TraceError:  # a number that each call brings
            raise
        except TypeError:
            expected, got = "a whole number", shown(seed)
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

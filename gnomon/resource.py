"""Resources: scratch memory that operators share, and random generators that a seed repeats.

State, per device: one block of scratch memory, which grows to the largest request and never costs
more, since every user of it declares its variable as written and the engine lets one function in at
a time; one generator, which is a seed and a position. A draw reserves its positions when it is
*called*, whichever thread computes it later, so a seed gives the same numbers for any number of
threads. Unseeded, a generator begins at seed 0, as MXNet's do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from gnomon import dtype as dtypes
from gnomon import engine
from gnomon.base import ParamError, ShapeError, complaint
from gnomon.context import Context, current_context
from gnomon.dtype import DType
from gnomon.expr.ext import philox
from gnomon.expr.node import Buffer, Expr
from gnomon.ground.lock import in_child, reentrant
from gnomon.runtime.devices import pool
from gnomon.shape import prod

T = TypeVar("T")
Position = tuple[int, int]  # a seed, and the place of a number in its sequence

_DEVICE_STEP = 0x9E3779B97F4A7C15  # an odd number far from 2**64's small fractions


class ResourceRequest:
    """What an operator asks for by its `forward_resource`: `kTempSpace` or `kRandom`.

    >>> ResourceRequest(ResourceRequest.kTempSpace)
    ResourceRequest(kTempSpace)

    Raises:
        ParamError: there is no such type.
    """

    kRandom: ClassVar[int] = 0
    kTempSpace: ClassVar[int] = 1
    _names: ClassVar[tuple[str, ...]] = ("kRandom", "kTempSpace")

    def __init__(self, type: int | str) -> None:
        number = self._names.index(type) if type in self._names else type
        if number not in (0, 1):
            expected = "kRandom or kTempSpace"
            raise ParamError(complaint("ResourceRequest", "type", expected, repr(type)))
        self.type = int(number)

    def __repr__(self) -> str:
        return f"ResourceRequest({self._names[self.type]})"


class TempSpace:
    """The scratch memory of a device; `var` orders who uses it."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.var = engine.Var(f"scratch of {ctx}")
        self._storage: pool.Storage | None = None

    def get_space(
        self, shape: Sequence[int], stream: object = None, dtype: object = dtypes.float32
    ) -> Buffer:
        """Dense memory of `shape` with any contents; a later call gives the same memory again.

        >>> request(ResourceRequest("kTempSpace")).get_space((2, 3)).shape
        (2, 3)

        Raises:
            ShapeError: a size is negative.
        """
        if any(n < 0 for n in shape):
            raise ShapeError(complaint("get_space", "shape", "no negative size", tuple(shape)))
        kind = dtypes.of(dtype)
        size = max(1, prod(shape) * kind.size)
        if self._storage is None or self._storage.nbytes < size:
            self._storage = None  # to the pool first: the larger block may then reuse it
            self._storage = pool.allocate(size, self.ctx)
        held = self._storage
        return Buffer(tuple(shape), kind, None, held.address, held, held.device)


class Generator:
    """The random numbers of a device, as expressions; `var` is there for operators to declare.

    >>> g = Generator(current_context())
    >>> g.uniform((2, 3)).shape, g.reserve(1)
    ((2, 3), (0, 6))
    """

    def __init__(self, ctx: Context, seed: int = 0) -> None:
        self.ctx = ctx
        self.var = engine.Var(f"random numbers of {ctx}")
        self._lock = reentrant()
        self.seed(seed)

    def renew_lock(self) -> None:
        """In a forked child: another thread of the parent may have held it."""
        self._lock = reentrant()

    def seed(self, seed: int) -> None:
        """Begin again with the numbers of `seed`: others for each `device_id`."""
        with self._lock:
            self._seed = _signed(seed + self.ctx.device_id * _DEVICE_STEP)
            self._position = 0

    def reserve(self, count: int) -> tuple[int, int]:
        """Seed and position of the next `count` numbers, which no other run gets."""
        with self._lock:
            position = self._position
            self._position += count
            return self._seed, position

    def state(self, count: int) -> Buffer:
        """The same as `philox` reads it."""
        return at(self.reserve(count))

    def uniform(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Numbers in [0, 1)."""
        return philox(self.state(prod(shape)), shape, "uniform", dtype)

    def normal(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Normal numbers of mean 0 and variance 1."""
        return philox(self.state(prod(shape)), shape, "normal", dtype)

    def get_random(self, stream: object = None) -> Generator:
        """The generator itself, as an operator asks for it: `ctx.requested[i].get_random()`."""
        return self


def at(position: Position) -> Buffer:
    """A seed and a position as `philox` reads them: two int64 in memory of its own."""
    held = np.array(position, np.int64)
    address = held.__array_interface__["data"][0]
    return Buffer((2,), dtypes.int64, None, address, held)


def _signed(number: int) -> int:
    """The lower 64 bits of an integer, as int64 holds them."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class _PerDevice:
    """One thing of each kind for each device, made when it is first asked for."""

    def __init__(self) -> None:
        self.lock = reentrant()
        self.spaces: dict[Context, TempSpace] = {}
        self.generators: dict[Context, Generator] = {}
        self.start = 0  # the seed of generators that are yet to be made

    def get(self, made: dict[Context, T], ctx: Context, make: Callable[[], T]) -> T:
        """The thing of `ctx` in `made`."""
        found = made.get(ctx)
        if found is None:
            with self.lock:
                found = made.get(ctx) or made.setdefault(ctx, make())
        return found

    def renew_locks(self) -> None:
        """In a forked child: another thread of the parent may have held one."""
        self.lock = reentrant()
        for made in self.generators.values():
            made.renew_lock()


_devices = _PerDevice()
in_child(_devices.renew_locks)


def temp_space(ctx: Context | None = None) -> TempSpace:
    """The scratch memory of a device; the current context's where none is named."""
    at = ctx or current_context()
    return _devices.get(_devices.spaces, at, lambda: TempSpace(at))


def generator(ctx: Context | None = None) -> Generator:
    """The random generator of a device; the current context's where none is named."""
    at = ctx or current_context()
    return _devices.get(_devices.generators, at, lambda: Generator(at, _devices.start))


def request(wanted: ResourceRequest, ctx: Context | None = None) -> TempSpace | Generator:
    """The resource that an operator asked for: what it finds in `ctx.requested`."""
    return generator(ctx) if wanted.type == ResourceRequest.kRandom else temp_space(ctx)


def seed(number: int, ctx: Context | str = "all") -> None:
    """Make what is drawn from now on repeatable, on one device or on all.

    Raises:
        ParamError: `number` is no integer, or `ctx` no context.
    """
    if not isinstance(number, (int, np.integer)):
        raise ParamError(complaint("seed", "seed_state", "an integer", repr(number)))
    if isinstance(ctx, Context):
        generator(ctx).seed(int(number))
        return
    if ctx != "all":
        raise ParamError(complaint("seed", "ctx", "a context or 'all'", repr(ctx)))
    with _devices.lock:
        _devices.start = int(number)
        for made in _devices.generators.values():
            made.seed(int(number))

"""One row for each data type: its name, its number in files, its size and NumPy's type for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gnomon.base import DTypeError, Later
from gnomon.ground.record import cached_property, record

if TYPE_CHECKING:
    import ml_dtypes
else:  # 8 ms, and most programs have no bfloat16
    ml_dtypes = Later("ml_dtypes")

Kind = Literal["f", "i", "u", "b"]


@record(eq=False, slots=False)
class DType:
    """A data type; there is one object for each, so `is` compares."""

    name: str
    flag: int
    size: int
    kind: Kind

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's type for it."""
        return np.dtype(ml_dtypes.bfloat16 if self.name == "bfloat16" else self.name)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type or of bool.

        >>> int8.limits
        (-128, 127)

        Raises:
            DTypeError: a floating type, which has no such limits.
        """
        if self.kind == "f":
            raise DTypeError(f"dtype {self.name}: only integer types have limits")
        bits = 1 if self.kind == "b" else 8 * self.size
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.kind == "i" else (0, (1 << bits) - 1)

    def nearest(self, number: float, modular: bool = False) -> int:
        """What an integer type holds for `number`: fractions cut off, the ends kept, NaN as 0.

        `modular` is for sums and products, which count modulo a power of two: there a number
        below 2^63 stands for the one of the type that gives the same sum.

        >>> uint8.nearest(300), uint8.nearest(-2.5), int8.nearest(float("nan"))
        (255, 0, 0)
        >>> uint8.nearest(-5, modular=True), int8.nearest(300, modular=True)
        (251, 44)
        """
        low, high = self.limits
        if number != number:
            return 0
        if modular and abs(number) < 2.0**63:
            return (int(number) - low) % (high - low + 1) + low
        return int(number) if low <= number <= high else high if number > 0 else low

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return of, (self.name,)


_TABLE: dict[Any, DType] = {}
_BY_FLAG: dict[int, DType] = {}
_NAMES: list[str] = []


def _row(name: str, flag: int, kind: Kind, size: int) -> DType:
    """Enter one type under its name and its number."""
    dtype = _TABLE[name] = _BY_FLAG[flag] = DType(name, flag, size, kind)
    _NAMES.append(name)
    return dtype


def _enter(dtype: DType) -> None:
    """Let a type be found by NumPy's type for it, and by the type of its scalars."""
    _TABLE[dtype.numpy] = _TABLE[dtype.numpy.type] = dtype


float32 = _row("float32", 0, "f", 4)
float64 = _row("float64", 1, "f", 8)
float16 = _row("float16", 2, "f", 2)
uint8 = _row("uint8", 3, "u", 1)
int32 = _row("int32", 4, "i", 4)
int8 = _row("int8", 5, "i", 1)
int64 = _row("int64", 6, "i", 8)
bool_ = _row("bool", 7, "b", 1)
int16 = _row("int16", 8, "i", 2)
uint16 = _row("uint16", 9, "u", 2)
uint32 = _row("uint32", 10, "u", 4)
uint64 = _row("uint64", 11, "u", 8)
bfloat16 = _row("bfloat16", 12, "f", 2)

default_real = float32
PLAIN = [d for d in _BY_FLAG.values() if d is not bfloat16]  # which NumPy has itself
for _d in PLAIN:  # `of` enters the other when it knows no better
    _enter(_d)
_TABLE.update({float: float64, int: int64, bool: bool_, "bool_": bool_})
for _c in (np.intc, np.uintc, np.longlong, np.ulonglong):  # some are second names of a row's type
    _TABLE.setdefault(_c, _TABLE[np.dtype(np.dtype(_c).str)])


def of(x: Any) -> DType:
    """The data type that `x` names: a name, a NumPy dtype, a scalar type or a `DType`; or an array.

    >>> of("float32") is of(float32.numpy) is float32
    True
    >>> of(float), of(int), of(bool)
    (float64, int64, bool)

    Raises:
        DTypeError: `x` names no data type, or one gnomon does not compute with.
    """
    if type(x) is DType:
        return x
    try:
        return _TABLE[x]
    except (KeyError, TypeError):  # TypeError: not hashable
        _enter(bfloat16)
    try:
        return _TABLE[_meant(x) if isinstance(x, str) else x]
    except (KeyError, TypeError):
        if hasattr(x, "dtype") and not isinstance(x, type):  # as NumPy takes it
            return of(x.dtype)
        known = ", ".join(_NAMES)
        if isinstance(x, np.dtype) and not x.isnative:
            known += ", in this machine's byte order: array.astype(array.dtype.newbyteorder('='))"
        raise DTypeError(f"dtype {x!r:.200} is unknown; gnomon has {known}") from None


def wanted(x: Any) -> DType:
    """The data type that an array is to have: float32 where None is said.

    >>> wanted(None), wanted("int8")
    (float32, int8)

    Raises:
        DTypeError: as `of`.
    """
    return default_real if x is None else of(x)


def _meant(name: str) -> Any:
    """The type that NumPy calls by a name such as `half`, or the name itself."""
    try:
        return np.dtype(name) if name.isidentifier() else name
    except TypeError:
        return name


def from_flag(flag: int) -> DType:
    """The data type with MXNet's number `flag`, as files and parameters carry it.

    >>> from_flag(0), from_flag(12)
    (float32, bfloat16)

    Raises:
        DTypeError: no type has this number.
    """
    try:
        return _BY_FLAG[flag]
    except (KeyError, TypeError):
        known = ", ".join(f"{n} {d.name}" for n, d in _BY_FLAG.items())
        raise DTypeError(f"dtype flag {flag!r} is unknown; known are {known}") from None

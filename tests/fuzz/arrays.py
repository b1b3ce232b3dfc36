"""Random programs of array statements whose operands are equal, and whose forms can be simplified.

`a += b; r = where(b > 0, a, a)`: one array in every position, and forms such as `x * 1`, `x - x`,
`maximum(x, x)`. A program runs three times on arrays as they are: lazily, and as one kernel from
where it is known. Then it runs on copies: every operand of every operator has memory of its own,
and nothing waits. The numbers must be equal, the sign of zero and where there is no number too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gnomon import config, nd
from gnomon.base import GnomonError

NAMES = ("a", "b", "c", "d")
SHAPES = ((6,), (2, 3), (1,), (2, 1, 3))
DTYPES = ("float32", "float32", "float32", "float64", "int32", "float16")
NUMBERS = ("0", "1", "1", "2", "-1", "0.5", "3")
VALUES = (0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -4.0, 0.5, float("nan"), float("inf"), -float("inf"))
# `x` is the operand that most positions share, `y` another one or the same, `n` a number
FORMS = """
    f.where({y}>{n},{x},{x}) f.where({x},{x},{x}) f.where({x},{y},{x}) f.where({x},{x},{y})
    f.where({x}=={x},{x},{y}) f.where(f.ones_like({y}),{x},{y}*{n})
    f.where({y}!={n},{x}+{n},{x}+{n}) f.where(f.zeros_like({y}),{x},{y}) f.maximum({x},{x})
    f.minimum({x},{x}) f.maximum({x},{n}) f.minimum({x}*{n},({x}*{n})*1)
    f.maximum({x}+{n},{x}+{n}) f.minimum({n},{x}) {x}-{x} {x}/{x} {x}+{x} {x}*{x} {x}*1 1*{x}
    {x}+0 {x}-0 0-{x} {x}/1 {x}**1 {x}**2 {x}*0 {x}**0 ({x}*{n})-({x}*{n}) {x}=={x} {x}!={x}
    {x}>{x} {x}>={x} {x}<{x} {x}<={n} -(-{x}) f.abs(f.abs({x})) f.abs(-{x}) f.sign({x}*{x})
    f.square({x}) ({x}+{y})-{y} ({x}+{y})*({x}+{y}) ({x}-{y})+({y}-{x}) ({x}>{y})*({x}>{y})
    ({x}==1)+({x}==1) f.broadcast_add({x},{x}) f.broadcast_maximum({x},{x})
    f.broadcast_equal({x},{y}) f.elemwise_mul({x},{x}) f.elemwise_sub({x},{x})
    f.broadcast_mul({x},{y}) f.add_n({x},{x}) f.add_n({x},{x},{y}) f.clip({x},0,0)
    f.clip({x},-1,1) f.relu({x})+f.relu({x}) f.zeros_like({x})+{x} f.ones_like({x})*{x}
    f.identity({x}) f.where({x}>{n},{x},{n}*{x}) f.logical_and({x},{x}) f.logical_or({x},{x})
    f.broadcast_logical_xor({x},{x}) f.logical_not({x}) ({x}*{n}+{y})/({x}*{n}+{y})
    f.stack({x},{x},num_args=2).sum(axis=0) f.concat({x},{x},dim=0).max()+{x} {x}.sum()*{x}
    f.broadcast_minimum({x},{x}.max()) f.where({x}>{n},f.maximum({x},{x}),f.minimum({x},{x}))
    f.square({x}-{x}) f.floor({x})-f.floor({x}) f.cast(f.cast({x},'float32'),{t!r})
    f.hypot({x},{x}) f.broadcast_hypot({x},{x}) {x}%{x} {x}%1
    f.reverse(f.reverse({x},axis=0),axis=0) f.where(({x}>0)*({x}<0),{x},{x}*{n})
    f.broadcast_greater({x},{x}) f.where({x}>{y},{y},{y}) f.softsign({x}-{x})
""".split()
STATEMENTS = """
    {r} = {e} | {r} = {e} | {r} = {e} | {r} += {x} | {r} -= {x} | {r} *= {x} | {r} += {e}
    | {r} *= 1 | {r} += 0 | {r}[:] = {e} | {r}[:] = {x} | {r} = {x} | {r} = {x}[1:]; {r} = {x}*{n}
    | {r} -= {r} | {r} += {r} | {x} += {y}; {r} = {e} | {x} *= {n}; {r} = {e}; {x} += {r}
    | {r} = {e}; {y} = {e} | f.sgd_update({r}, {x}, lr=0.5, out={r})
    | f.broadcast_add({x}, {x}, out={r}) | f.where({x}, {r}, {r}, out={r})
    | {r} = {x}.copy(); {r} -= {x} | {r} = {e}; read({r}) | read({x})
    | {r} = f.sgd_update({x}, {x}, lr=1, wd=0) | {r}[0:1] = {x}[0:1]
    | v = {x}[:]; v += {x}; {r} = v*1
""".replace("\n", " ").split("|")


def program(seed: int) -> tuple[str, tuple[int, ...], str]:
    """The text of a program, the shape of its arrays, and their dtype."""
    rng = random.Random(seed)
    shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES)
    numbers = [n for n in NUMBERS if dtype != "int32" or n != "0.5"]
    statements = [s for s in STATEMENTS if dtype != "int32" or "sgd" not in s]  # which takes floats

    def statement() -> str:
        x, r = rng.choice(NAMES), rng.choice(NAMES)
        y = x if rng.random() < 0.4 else rng.choice(NAMES)
        inner = rng.choice(FORMS).format(x=x, y=y, n=rng.choice(numbers), t=dtype)
        if rng.random() < 0.3:
            y = f"({inner})" if rng.random() < 0.5 else y
            z = f"({inner})" if rng.random() < 0.7 else x
            inner = rng.choice(FORMS).format(x=z, y=y, n=rng.choice(numbers), t=dtype)
        y = y if y in NAMES else x
        return rng.choice(statements).strip().format(r=r, x=x, y=y, e=inner, n=rng.choice(numbers))

    return "\n".join(statement() for _ in range(rng.randint(1, 4))), shape, dtype


class Apart:
    """An array whose operators take copies of their operands, each in memory of its own."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.array.copy(), name)
        return lambda *args, **named: wrapped(method(*args, **named))

    def __getitem__(self, key: Any) -> Apart:
        return Apart(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = copied(value)


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: Apart, *others: Any) -> Any:
        made = getattr(self.array.copy(), name)(*map(copied, others))
        return Apart(made)

    return apply


def _changing(name: str) -> Callable[..., Any]:
    def apply(self: Apart, other: Any) -> Apart:
        self.array[:] = getattr(self.array.copy(), f"__{name}__")(copied(other))
        return self

    return apply


for _name in "add sub mul truediv mod pow radd rsub rmul rtruediv neg eq ne lt le gt ge".split():
    setattr(Apart, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("add", "sub", "mul"):
    setattr(Apart, f"__i{_name}__", _changing(_name))


def copied(value: Any) -> Any:
    """What an operator is given for an operand."""
    return value.array.copy() if isinstance(value, Apart) else value


def wrapped(value: Any) -> Any:
    """An array as the program sees it."""
    return Apart(value) if isinstance(value, nd.NDArray) else value


class Functions:
    """The functions of `nd` over copies of their operands."""

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, out: Apart | None = None, **named: Any) -> Any:
            if out is None:
                return wrapped(getattr(nd, name)(*map(copied, args), **named))
            getattr(nd, name)(*map(copied, args), out=out.array, **named)
            return out

        return call


def arrays(seed: int, shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    """The values that a program begins with."""
    rng = np.random.default_rng(seed)
    choice = VALUES if dtype != "int32" else [v for v in VALUES if np.isfinite(v)]
    return {name: rng.choice(choice, size=shape).astype(dtype) for name in NAMES}


def results(names: dict[str, Any]) -> Iterator[np.ndarray]:
    """What the arrays of a program hold at its end."""
    for name in NAMES:
        yield copied(names[name]).asnumpy()


def alike(found: Any, expected: Any) -> bool:
    """Whether two outcomes are the same: equal arrays, or an error of one type."""
    if isinstance(found, list) and isinstance(expected, list):
        return all(map(same, found, expected))
    return bool(found == expected)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays are equal, the signs of zeros too."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    unlike = (a != b) | (np.signbit(a) != np.signbit(b))
    return not np.any(unlike & ~(np.isnan(a) & np.isnan(b)))


def run(seed: int) -> str:
    """Run a program in both ways; what is wrong about it, or nothing."""
    text, shape, dtype = program(seed)
    given = arrays(seed, shape, dtype)
    code = compile(text, "<program>", "exec")

    def ours() -> list[np.ndarray]:
        names: dict[str, Any] = {k: nd.array(v, dtype=dtype) for k, v in given.items()}
        exec(code, {"f": nd, "read": lambda x: x.asnumpy()}, names)
        return list(results(names))

    def apart() -> list[np.ndarray]:
        names: dict[str, Any] = {k: Apart(nd.array(v, dtype=dtype)) for k, v in given.items()}
        with config.using(lazy=False):
            exec(code, {"f": Functions(), "read": lambda x: x.array.asnumpy()}, names)
            return list(results(names))

    expected = outcome(apart)
    for turn in ("first", "second", "third"):
        found = outcome(ours)
        if not alike(found, expected):
            what = f"{found!r}, not {expected!r}"
            return f"seed {seed}, the {turn} time: {what}\n{dtype} {shape}\n{text}"
    return ""


def outcome(compute: Callable[[], list[np.ndarray]]) -> Any:
    """What a program computes, or the type of the error by which gnomon refuses it."""
    try:
        return compute()
    except GnomonError as error:
        return type(error)
    except Exception as error:  # such must not leave gnomon
        return error

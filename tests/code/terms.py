"""Evaluates Terms over NumPy arrays, and measures errors in units of the last place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gnomon import dtype as dt
from gnomon.code.math import RULES, expand
from gnomon.expr.functions.primitive import PRIMITIVES, convert
from gnomon.expr.term import Arena, Term


def evaluate(root: Term, values: dict[object, np.ndarray]) -> np.ndarray:
    """The value of `root` where arguments have these values."""
    memo: dict[int, np.ndarray] = {}
    stack = [root]
    while stack:
        term = stack[-1]
        waiting = [a for a in term.args if a.id not in memo]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        args = [memo[a.id] for a in term.args]
        if term.op == "const":
            value = np.asarray(term.payload, term.dtype.numpy)
        elif term.op == "arg":
            value = values[term.payload]
        elif term.op == "cast":
            value = convert(args[0], term.dtype.numpy)
        elif term.op == "bitcast":
            value = args[0].view(term.dtype.numpy)
        else:
            value = np.asarray(PRIMITIVES[term.op].numpy(*args))
        assert value.dtype == term.dtype.numpy, (term, value.dtype)
        memo[term.id] = value
    return memo[root.id]


def expanded(name: str, dtype: dt.DType) -> Term:
    """`name` of arguments 0, 1, ..., written out to the end."""
    arena = Arena()
    args = [arena.arg(k, dtype) for k in range(PRIMITIVES[name].arity)]
    root = expand(arena.op(name, *args))
    assert not {t.op for t in walk(root)} & set(RULES), name
    return root


def walk(root: Term) -> list[Term]:
    """Every Term below `root`, once."""
    seen, stack = {root.id: root}, [root]
    while stack:
        for arg in stack.pop().args:
            if arg.id not in seen:
                seen[arg.id] = arg
                stack.append(arg)
    return list(seen.values())


def compute(name: str, *args: np.ndarray) -> np.ndarray:
    """The value of an expanded function over arrays."""
    root = expanded(name, dt.of(args[0].dtype))
    with np.errstate(all="ignore"):
        return evaluate(root, dict(enumerate(args)))


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Errors in units of the last place of `got`'s dtype; NaN and infinities must agree exactly."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        unit = np.maximum(np.spacing(np.abs(rounded)), np.finfo(got.dtype).smallest_subnormal)
        unit = np.where(np.isfinite(unit), unit, np.spacing(np.finfo(got.dtype).max))
        error = np.abs(got.astype(np.longdouble) - want) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(same & ~np.isfinite(rounded), 0.0, np.where(np.isnan(error), np.inf, error))


def worst(name: str, reference: Callable[..., np.ndarray], args: Sequence[np.ndarray]) -> float:
    """The greatest error of a function at these points, in ulp; `reference` gets a wider type."""
    wide = [a.astype(np.float64 if a.dtype == np.float32 else np.longdouble) for a in args]
    with np.errstate(all="ignore"):
        want = np.asarray(reference(*wide))
    return float(np.max(ulps(compute(name, *args), want)))

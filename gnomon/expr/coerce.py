"""Coercion: how elements, indices and numbers are combined in the index rule of an extension.

Operands of one dtype meet as they are. An index (or a size) beside an element of floats is taken in
the element's dtype. Everything else that would change a value without a word is refused: a number
that the dtype beside it does not hold, elements of two dtypes, arithmetic on conditions.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from gnomon import dtype as dt
from gnomon.base import DTypeError, complaint, shown

if TYPE_CHECKING:
    from gnomon.dtype import DType
    from gnomon.expr.term import Arena, Term

CONVERT = "i.cast(value, dtype) converts"
CONDITIONS = ("and", "or", "eq", "ne")
INDICES = ("idiv", "imod")


def number(beside: Term, value: Any) -> Any:
    """`value` as a Python number that the dtype of the Term `beside` it holds."""
    arena, dtype = beside.arena, beside.dtype
    value = plain(arena, value, beside)
    if dtype.kind == "f" or (dtype.kind == "b" and value in (0, 1)):
        return value
    if dtype.kind == "b":
        raise refusal(
            arena, "operands", f"a condition beside a condition; {CONVERT}", (beside, value)
        )
    if value not in (float("inf"), -float("inf")) and value == dtype.nearest(value):
        return value
    expected = f"a whole number that {dtype.name} holds beside {named(beside)}; {CONVERT}"
    raise refusal(arena, "operands", expected, (beside, value))


def plain(arena: Arena, value: Any, *others: Any) -> Any:
    """`value` as a Python number."""
    value = value.item() if hasattr(value, "item") and getattr(value, "shape", 0) == () else value
    if isinstance(value, bool | int | float):
        return value
    raise refusal(arena, "operands", "what i gives, or numbers", (*others, value))


def component(arena: Arena, value: Any) -> Any:
    """A component of an index, or an extent: an index, an element of integers or a whole number."""
    if not hasattr(value, "arena"):
        try:
            return operator.index(value)
        except TypeError:
            expected = f"whole numbers, indices and elements of integers; {CONVERT}"
            raise refusal(arena, "index", expected, (value,)) from None
    if value.dtype.kind not in "iu":
        expected = f"elements of integers as an index; {CONVERT}, as to 'int64'"
        raise refusal(arena, "index", expected, (value,))
    return arena.cast(value, dt.int64)


def operands(name: str, a: Term, b: Term) -> None:
    """Refuse what an operator of Terms has no meaning for."""
    for term in (a, b):
        if term.dtype.kind == "b" and name not in CONDITIONS:
            expected = f"indices, elements and numbers for {name!r}, no condition; {CONVERT}"
            raise refusal(a.arena, "operands", expected, (a, b))
        if term.dtype not in (dt.int64, dt.int32) and name in INDICES:
            expected = f"indices for // and %; {CONVERT}, as to 'int64'"
            raise refusal(a.arena, "operands", expected, (a, b))
    if name == "div" and a.dtype is b.dtype is dt.int64 and not (reads(a) or reads(b)):
        expected = f"// between indices, or one of them as a float; {CONVERT}"
        raise refusal(a.arena, "operands", expected, (a, b))


def met(arena: Arena, args: tuple[Term, ...]) -> tuple[Term, ...]:
    """Terms that meet in one operation, in one dtype."""
    dtypes = {a.dtype for a in args}
    if len(dtypes) == 1:
        return args
    rest = dtypes - {dt.int64}
    (dtype,) = rest if len(rest) == 1 else (dt.int64,)
    if dtype.kind != "f" or any(a.dtype is dt.int64 and reads(a) for a in args):
        expected = f"one dtype, or an index beside an element of floats; {CONVERT}"
        raise refusal(arena, "operands", expected, args)
    return tuple([arena.cast(a, dtype) for a in args])


def chosen(cond: Any, yes: Any, no: Any) -> tuple[Term, Term]:
    """What `guard` and `select` choose between, in one dtype; one of them may be a number."""
    if not hasattr(cond, "arena"):
        expected = f"a condition, such as i[0] < 2, got {shown(cond)}"
        raise DTypeError(f"index rule: i.guard, i.select: expected {expected}")
    arena = cond.arena
    if cond.dtype.kind != "b":
        raise refusal(arena, "cond", "a condition, such as i[0] < 2", (cond,))
    known = yes if hasattr(yes, "arena") else no
    if not hasattr(known, "arena"):
        expected = "at least one that has a dtype, such as i.cast(0, 'float32')"
        raise refusal(arena, "value, other", expected, (yes, no))
    a, b = met(arena, (known.like(yes), known.like(no)))
    return a, b


def declared(found: Term, dtype: DType) -> Term:
    """The result of a rule as the dtype that its node declares, computed in `dtype`."""
    if found.dtype is dtype:
        return found
    if found.dtype is dt.int64 and dtype.kind == "f" and not reads(found):
        return found.arena.cast(found, dtype)
    expected = f"{dtype.name}, as infer says; {CONVERT}"
    raise refusal(found.arena, "result", expected, (found,))


def reads(root: Term) -> bool:
    """Whether a Term depends on an element: indices and sizes do not."""
    stack, seen = [root], {root}
    while stack:
        term = stack.pop()
        if term.op in ("elem", "load", "random"):
            return True
        new = [a for a in term.args if a not in seen]
        seen.update(new)
        stack += new
    return False


def named(value: Any) -> str:
    """A Term or a number in words."""
    if not hasattr(value, "arena"):
        return shown(value)
    if value.dtype.kind == "b":
        return "a condition"
    if value.dtype is dt.int64 and not reads(value):
        return "an index or size"
    return f"an element of {value.dtype.name}"


def refusal(arena: Arena, argument: str, expected: str, got: tuple[Any, ...]) -> DTypeError:
    """What is raised: it names the rule, what met, and how to convert it."""
    words = " and ".join(map(named, got))
    return DTypeError(complaint(f"{arena.watched or 'index rule'}.at", argument, expected, words))

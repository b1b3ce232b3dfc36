"""Walks over Terms that every pass uses: postorder, rebuilding, affine forms, host values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.expr.functions.primitive import FOLD_INT
from gnomon.expr.term import Arena, Term, mask_of


def postorder(roots: Iterable[Term]) -> list[Term]:
    """Every Term below `roots` once, arguments first."""
    entered: set[Term] = set()
    done: set[Term] = set()
    order: list[Term] = []
    stack = list(roots)[::-1]
    while stack:
        term = stack.pop()
        if term in done:
            continue
        args = term.args
        if args and term not in entered:
            entered.add(term)
            stack.append(term)
            stack.extend(args[::-1])
            continue
        done.add(term)
        order.append(term)
    return order


def with_args(term: Term, args: tuple[Term, ...]) -> Term:
    """`term` over other arguments, simplified anew where it is index arithmetic."""
    if all(a is b for a, b in zip(term.args, args, strict=True)):
        return term
    if term.payload is None and term.op not in ("cast", "bitcast", "guard"):
        return term.arena.op(term.op, *args)
    if term.op == "read" and len(args) == 2 and args[1].constant is not None:
        if not args[1].constant:
            return term.arena.const(0, term.dtype)
        args = args[:1]  # the mask always holds
    return term.arena.make(term.op, args, term.dtype, term.payload)


def rebuild(roots: Iterable[Term], change: Callable[[Term], Term | None]) -> list[Term]:
    """`roots` with Terms exchanged for what `change` gives, asked before their arguments are."""
    roots = list(roots)
    new: dict[int, Term] = {}
    stack = list(reversed(roots))
    while stack:
        term = stack[-1]
        if term.id in new:
            stack.pop()
            continue
        other = change(term)
        if other is not None:
            new[term.id] = other
            continue
        waiting = [a for a in term.args if a.id not in new]
        if waiting:
            stack.extend(waiting)
            continue
        new[term.id] = with_args(term, tuple([new[a.id] for a in term.args]))
        stack.pop()
    return [new[root.id] for root in roots]


def renamed(roots: Iterable[Term], new: Mapping[int, Term]) -> list[Term]:
    """`roots` with Terms in the place of variables; a fold's own variables are its own."""
    mask = mask_of(new)

    def change(term: Term) -> Term | None:
        if not term.free & mask:
            return term
        return new.get(term.payload) if term.op == "var" else None

    return rebuild(roots, change)


class Affine(NamedTuple):
    """`rest + sum(factor * variable)`; factors and rest are free of the variables asked about."""

    factors: dict[int, Term]
    rest: Term


def affine(root: Term, variables: int) -> Affine | None:
    """`root` as an affine form in the variables of the mask, or None where it is not one."""
    arena = root.arena
    forms: dict[int, Affine | None] = {}
    for term in postorder([root]):
        if not term.free & variables:
            forms[term.id] = Affine({}, term)
        elif term.op == "var":
            forms[term.id] = Affine({term.payload: arena.const(1)}, arena.const(0))
        else:
            forms[term.id] = _combine(term, [forms.get(a.id) for a in term.args])
    return forms[root.id]


def _combine(term: Term, parts: list[Affine | None]) -> Affine | None:
    if term.op not in ("add", "sub", "mul", "neg") or term.dtype is not dt.int64 or None in parts:
        return None
    a, b = parts[0], parts[-1]
    assert a is not None and b is not None
    if term.op == "neg":
        return Affine({v: -f for v, f in a.factors.items()}, -a.rest)
    if term.op == "mul":
        if a.factors and b.factors:
            return None
        many, one = (a, b.rest) if a.factors else (b, a.rest)
        return Affine({v: f * one for v, f in many.factors.items()}, many.rest * one)
    sign = term.op == "sub"
    factors = dict(a.factors)
    for v, f in b.factors.items():
        mine = factors.get(v)
        factors[v] = (-f if sign else f) if mine is None else (mine - f if sign else mine + f)
    rest = a.rest - b.rest if sign else a.rest + b.rest
    return Affine({v: f for v, f in factors.items() if f.constant != 0}, rest)


def from_affine(form: Affine, arena: Arena) -> Term:
    """The Term of an affine form, in one canonical order."""
    total = form.rest
    for v, factor in sorted(form.factors.items()):
        total = total + arena.make("var", (), dt.int64, v) * factor
    return total


def host_value(root: Term, env: Mapping[Hashable, int]) -> int:
    """The value of a Term of sizes, given its kernel arguments."""
    values: dict[int, int] = {}
    for term in postorder([root]):
        if term.op == "const":
            values[term.id] = term.payload
        elif term.op == "arg":
            values[term.id] = env[term.payload]
        else:
            values[term.id] = FOLD_INT[term.op](*[values[a.id] for a in term.args])
    return values[root.id]


def is_index(term: Term) -> bool:
    """Whether a Term is cheap arithmetic on variables, sizes and constants alone."""
    return term.op in ("const", "var") or (
        term.op == "arg" and isinstance(term.payload, tuple) and term.payload[0] != "scalar"
    )


def index_terms(order: Iterable[Term]) -> set[int]:
    """The ids of Terms (arguments first) that are arithmetic on variables, sizes and constants."""
    found: set[int] = set()
    for term in order:
        if is_index(term) or (
            term.args
            and term.op not in ("read", "load", "fold", "part", "elem")
            and all(a.id in found for a in term.args)
        ):
            found.add(term.id)
    return found

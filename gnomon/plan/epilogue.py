"""Epilogues: what a library can do to a product of matrices as it stores it, found in expressions.

A row that is added to all rows, and `relu`, cost no pass over memory then. Where nothing else is
done with the product: a kernel that must read it anyhow adds the row for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon.expr.call.dot import Affine, Dot
from gnomon.expr.composite import Call
from gnomon.expr.ext.reduce import Broadcast
from gnomon.expr.ext.reshape import Reshape, reshape
from gnomon.expr.node import Buffer, Expr, Map
from gnomon.expr.walk import postorder
from gnomon.shape import prod


def with_epilogue(
    call: Call, values: Sequence[Expr], supported: Callable[[Call], bool]
) -> tuple[Expr, Expr] | None:
    """A part of `values` that begins with `call`, and the same by a call that does more.

    None where `call` is no product, where others read what lies between, where what comes of it is
    neither stored nor read by a library, or where no library does it.
    """
    if not isinstance(call, Dot):
        return None
    readers = _readers(values)
    row: Expr | None = None
    relu = False
    part: Expr = call
    top: Expr = call
    while len(readers[top]) == 1:
        (above,) = readers[top]
        if isinstance(above, Reshape):
            top = above
            continue
        if relu or not isinstance(above, Map):
            break
        if above.fn.name == "relu":
            relu = True
        elif row is None and above.fn.name == "add":
            row = _row(above.args[above.args[0] is top], top.shape, call.shape[-1])
            if row is None:
                break
        else:
            break
        part = top = above
    if part is call or not all(r is None or isinstance(r, Call) for r in readers[top]):
        return None
    made = Affine(call.a, call.b, row, call.transpose_a, call.transpose_b, relu)
    return (part, reshape(made, part.shape)) if supported(made) else None


def _readers(values: Sequence[Expr]) -> dict[Expr, list[Expr | None]]:
    """What reads each node, as often as it does; None stands for a statement."""
    found: dict[Expr, list[Expr | None]] = {}
    for node in postorder(values):
        for child in node.children:
            found.setdefault(child, []).append(node)
    for value in values:
        found.setdefault(value, []).append(None)
    return found


def _row(e: Expr, shape: tuple[int, ...], n: int) -> Expr | None:
    """The vector of `n` elements that `e` adds to every row of an array of `shape`, if so."""
    if isinstance(e, Broadcast):
        e = e.src
    if not shape[-1:] == e.shape[-1:] == (n,):
        return None
    if prod(e.shape) == n:
        return reshape(e, (n,))
    if not isinstance(e, Buffer) or not e.address:
        return None
    apart = any(s for m, s in zip(e.shape[:-1], e.strides, strict=False) if m > 1)
    return None if apart else Buffer((n,), e.dtype, e.strides[-1:], e.address, e, e.device)

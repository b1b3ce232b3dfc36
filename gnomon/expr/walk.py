"""Walks over expressions: operands first, as a tree, in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnomon.expr.node import Expr

DEEP = 32  # levels of a tree that are indented


def postorder(roots: Sequence[Expr]) -> list[Expr]:
    """Every node below `roots` once, operands first; iterative."""
    seen: set[Expr] = set()
    order: list[Expr] = []
    stack: list[Expr | None] = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is None:  # the operands of the next one are done
            order.append(stack.pop())  # type: ignore[arg-type]
        elif node not in seen:
            seen.add(node)
            children = node.children
            if children:
                stack += (node, None, *children[::-1])
            else:
                order.append(node)
    return order


def fits_any(e: Expr) -> bool:
    """Whether `e` is made of numbers alone, and so of one value wherever it stands."""
    return not e.shape and all(node.kind for node in postorder([e]))  # data is of kind 0


def tree(root: Expr) -> str:
    """`root` as an indented tree; a part that occurs again is named by its number.

    What lies deeper than 32 levels is indented no further: its depth stands before it.

    >>> from gnomon.expr.node import Buffer
    >>> x = Buffer((3,))
    >>> print(tree(x * x + 1.0))
    #3 add 3 float32
      #1 mul 3 float32
        #0 Buffer 3 float32
        #0
      #2 Scalar float32 = 1.0
    """
    numbers = {id(node): k for k, node in enumerate(postorder([root]))}
    shown: set[int] = set()
    lines: list[str] = []
    stack: list[tuple[Expr, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        level = "  " * depth if depth <= DEEP else f"{'  ' * DEEP}{depth}: "
        head = f"{level}#{numbers[id(node)]}"
        if id(node) in shown:
            lines.append(head)
            continue
        shown.add(id(node))
        lines.append(f"{head} {node.describe()}")
        stack.extend((child, depth + 1) for child in reversed(node.children))
    return "\n".join(lines)


def brief(e: Expr, depth: int = 3) -> str:
    """`e` in a line for errors: functions of operands, what lies deeper than `depth` left out.

    >>> from gnomon.expr.node import Buffer
    >>> print(brief(Buffer((3,)) * 2.0 + 1.0))
    add(mul(Buffer 3 float32, 2.0), 1.0)
    """
    if not e.children:
        return e.describe() if e.shape else e.label
    inside = ", ".join(brief(c, depth - 1) for c in e.children) if depth else "..."
    return f"{e.label}({inside})"


def shown(e: Expr) -> str:
    """What `e` is and what it is made of, for errors."""
    return f"{e!r}: {brief(e)}" if e.children else f"{e!r}"

"""Statements on GPUs that come again: launches kept by pattern, as `launch.py` does for processors.

A statement is known by the patterns of its value and destination, by which of its nodes are shared,
and by which of its leaves lie in the same memory. The first goes the whole way; for the second a
template is made, whose words the later ones fill in. What cannot be told by that (numbers that are
no words of the launches, memory that was given back) goes the whole way each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from gnomon.expr.layout import is_read_only
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.expr.pattern import Pattern, drop_older, holds
from gnomon.expr.rewrite import substitute
from gnomon.plan.statement import Store
from gnomon.runtime.kernels import stages
from gnomon.runtime.kernels.gpu_template import GpuTemplate
from gnomon.runtime.kernels.kernel import bits
from gnomon.runtime.statements.gpu import queue_of
from gnomon.runtime.statements.launch import NoLaunch, operands, template_of, tied
from gnomon.runtime.statements.prepare import prepare

KEPT = 2048

#: None: it came once; False: it goes the whole way
_known: dict[Hashable, GpuTemplate | Literal[False] | None] = {}


class Leaves(NamedTuple):
    """What differs between statements of one pattern.

    `shared` says of each node of the walk which one before it is the same; -1: none.
    """

    buffers: list[Buffer]
    numbers: list[Scalar]
    shared: list[int]


def store(statement: Store, patterns: tuple[Pattern, Pattern]) -> None:
    """Carry out a statement on a GPU, now.

    Raises:
        ShapeError, DTypeError: the value does not fit; the destination is untouched.
    """
    dest, saver, value = statement.dest, statement.saver, statement.value
    found = leaves_of(dest, value)
    if not all(map(holds, patterns)):
        drop_older(dest, value)
    elif _is_plain(found.buffers):
        regions = tied(found.buffers, {0})
        queue = queue_of(dest)
        key = (queue.gpu, saver, patterns, tuple(found.shared), tuple(regions))
        known = _known.get(key, False)
        if key not in _known:
            if len(_known) >= KEPT:
                _known.clear()
            _known[key] = None
        elif known is None:
            known = _known[key] = _template(statement, found, regions)
        owners = dict.fromkeys(owner for owner, _ in regions)
        given = [found.buffers[o].address for o in owners]
        given += [bits(number) for number in found.numbers]
        if known and all(map(holds, patterns)):  # no tensor changed while its address was read
            for step in known.bound(given, None, queue):
                step.run()
            return
    stages.run(prepare([statement], "assignment"))


def leaves_of(dest: Buffer, value: Expr) -> Leaves:
    """The leaves of a statement, the destination first, and how its nodes are shared."""
    found = Leaves([dest], [], [])
    seen: dict[int, int] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        again = seen.get(id(node), -1)
        found.shared.append(again)
        if again >= 0:
            continue
        seen[id(node)] = len(seen)
        if isinstance(node, Buffer):
            found.buffers.append(node)
        elif isinstance(node, Scalar):
            found.numbers.append(node)
        else:
            stack.extend(child for _, _, child in operands(node))
    return found


def _is_plain(buffers: Sequence[Buffer]) -> bool:
    """Whether all have elements in memory, and the first may be written."""
    return all(b.address and 0 not in b.shape for b in buffers) and not is_read_only(
        buffers[0].owner
    )


def _template(
    statement: Store, leaves: Leaves, regions: Sequence[tuple[int, int]]
) -> GpuTemplate | Literal[False]:
    """The launches for stand-ins of memory and numbers; False where numbers are not all words."""

    def steps(buffers: Sequence[Buffer], numbers: Sequence[Scalar]) -> list[Any]:
        old: list[Expr] = [*leaves.buffers[1:], *leaves.numbers]
        new: list[Expr] = [*buffers[1:], *numbers]
        (value,) = substitute([statement.value], dict(zip(old, new, strict=True)))
        return prepare([Store(buffers[0], statement.saver, value)], "assignment")

    made = partial(GpuTemplate, device=statement.dest.device)
    try:
        found: GpuTemplate = template_of(leaves.buffers, leaves.numbers, regions, steps, made)
    except NoLaunch:
        return False
    return found

"""The pipeline: from statements to loop nests, one named step after the other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from gnomon.expr.term import Arena
from gnomon.plan.carry import carry, is_carried
from gnomon.plan.collapse import collapse
from gnomon.plan.hoist import hoist
from gnomon.plan.ir import Kernel
from gnomon.plan.lower import Nest, lower, own_nest
from gnomon.plan.operand import Abstract
from gnomon.plan.scatter import push
from gnomon.plan.schedule import join, order_by_store, schedule
from gnomon.plan.scratch import TASK, Scratch
from gnomon.plan.share import share
from gnomon.plan.split import split
from gnomon.plan.statement import Store, Structure
from gnomon.plan.terms import postorder


def plan(stores: Sequence[Store], structure: Structure) -> Kernel:
    """The loop nests of a group of statements; it depends on nothing but `structure.key`."""
    arena = Arena()
    scratch = Scratch(arena)
    statements = Abstract(stores, structure, arena)  # sizes, strides and numbers become arguments
    # index rules vanish into index arithmetic; what is scattered goes where it belongs, what is
    # scanned is carried along
    found = push(statements, arena) or carry(statements, arena) or own_nest(statements, arena)
    *fills, nest = found or [lower(statements, arena)]
    nest = order_by_store(nest)  # lanes along the destination's dense axis
    nest = collapse(nest, arena)  # fewer, longer loops
    nest = share(nest, arena, scratch)  # what several loops compute is kept
    nests = hoist(nest, arena, scratch)  # nothing is reduced more often than needed
    *before, last = nests
    before.extend(collapse(order_by_store(n), arena) for n in fills)
    pieces = split(last, arena)  # one nest for each part of what is put together
    if len(pieces) > 1:
        pieces = [collapse(piece, arena) for piece in pieces]
    nests = [*before, *pieces]
    phases = [schedule(n, arena) for n in nests]
    if fills:
        join(phases)
    kernel = Kernel(arena, phases, statements.operands, scratch.buffers)
    kernel.args = arguments(kernel)
    kernel.scattered = scattered(last)
    return kernel


def scattered(nest: Nest) -> frozenset[Hashable]:
    """The slots that `nest` reads at other offsets than those at which it stores into them.

    Where it stores in turns, every read is one, for it may have been stored before, unless that is
    just what is meant.
    """
    stored = {(root.dest.slot, root.offset.id) for root in nest.roots if not nest.turns}
    order = postorder(nest.values)
    reads = (t for t in order if t.op == "read" and not is_carried(t))
    return frozenset(t.payload.slot for t in reads if (t.payload.slot, t.args[0].id) not in stored)


def arguments(kernel: Kernel) -> list[Hashable]:
    """Every kernel argument that the nests use, in a fixed order: pointers first."""
    found: dict[Hashable, None] = {o.slot: None for o in kernel.operands}
    found.update((o.slot, None) for o, _ in kernel.scratch)
    for term in kernel.arena.table.values():
        if term.op == "arg" and term.payload != TASK:
            found[term.payload] = None
    return list(found)

"""Forwarded: what was noted and whose values were asked for, as one node of the tape.

Programs print a loss, or update a metric, between `record` and `backward`. What was noted until
then becomes one node: its inputs are the operands, its outputs the results that other code holds.
Where the same was read often, and gradients of the same outputs were asked for the last time, a
program computes the values, and the gradients when it is their turn: the two passes of one bound
graph (`executor/recorded_step.py`).

States of a node. *Closed*: a program has computed the values, and the operators are known but not
on the tape. *Open*: they are, by themselves, and the node passes gradients on to them; or the tape
was followed, and it passes on to where nothing is kept. What is read for the first times is open
from the start. A closed one is opened where anybody could tell: before an operand or a
value is written, or its program runs again; if gradients are asked for in another way than before
(other outputs, `grad`, `create_graph`, `retain_graph`, another thread), or their arrays have moved.
States that its backward pass changes may be written at any time: nothing has read them yet.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any

from gnomon.base import GnomonError
from gnomon.graph.gradient import Flow
from gnomon.ground.lock import load_module
from gnomon.ground.record import put
from gnomon.ndarray.core.array import of_zeros
from gnomon.ndarray.core.bounded_cache import STEPS
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import BESIDE, FOLLOWED, Node, Output, Place, leads, reserved
from gnomon.ndarray.lazy.fusion_group import FusionGroup
from gnomon.ndarray.lazy.marks import (
    PREDICTED,
    Mark,
    Operand,
    Structure,
    needed,
    structure_of,
)
from gnomon.ndarray.lazy.recorded import Recorded

PATIENCE = 8  # nodes in a row that were opened, before no more programs are tried
FEWEST = 8  # operators that predict, of which a program takes less time than they by themselves
PREDICTING = -1  # the depth of programs that no gradients are asked of
Asked = tuple[tuple[int, ...], tuple[bool, ...]]  # outputs, and whether their gradients were given
Noted = tuple[Mark, list[Operand], tuple[int, ...], bool]  # of a record, with places and train mode
Shares = list[tuple[Place, Any]]


class Alike(Structure):
    """What is known of reads that differ in sizes alone.

    `asked` is what gradients were asked of the last one, and `opened` how many of their nodes in a
    row were opened. Of predictions `seen` are the operands of the last one, `loose` the numbers of
    those that were other arrays the time before.
    """

    __slots__ = ("asked", "loose", "opened", "seen")

    def __init__(self, operators: int) -> None:
        super().__init__(operators)
        self.asked: Asked | None = None
        self.loose: set[int] = set()
        self.seen: list[weakref.ref[Any]] = []
        self.opened = 0


class Reads:
    """What is known of records that were read like this.

    `count` is how often they were, `planned` the programs by what gradients are asked for. Of
    predictions none are.
    """

    __slots__ = ("alike", "count", "planned", "predicts")

    def __init__(self, alike: Alike, predicts: bool) -> None:
        self.alike, self.predicts = alike, predicts
        if predicts:
            alike.asked = ((), ())
        self.count = 0
        self.planned: dict[Asked, Any] = {}

    @property
    def is_short(self) -> bool:
        """Whether a program is of use where the same sizes come alone."""
        return self.predicts and self.alike.operators < FEWEST

    @property
    def is_first(self) -> bool:
        """Whether no others were alike that a program pays for."""
        return self.count == 1 if self.is_short else self.alike.count == 1

    @property
    def is_vain(self) -> bool:
        """Whether programs were of no use."""
        return self.alike.opened > PATIENCE

    def program(self, held: tuple[int, ...], noted: Noted) -> Any:
        """The program for what is noted; None where there is none."""
        alike = self.alike
        asked = alike.asked
        if asked is None:
            return None
        if asked not in self.planned:
            mark, operands, places, train = noted
            key = tuple(held[k] for k in asked[0]), asked[1], held, places

            def forget(*gone: object) -> None:
                self.planned.pop(asked, None)

            planned = load_module("gnomon.executor.recorded_step").planned
            where = (PREDICTING, alike.loose) if self.predicts else (_depth(operands),)
            structure = structure_of(mark, key, Structure)
            made = planned(structure, mark.path(), key, train, operands, forget, *where)
            alike.trust = structure.trust
            STEPS.put(self.planned, asked, made)
        found = self.planned.get(asked)
        if found is None:
            alike.opened += 1
        return found

    def come(self, operands: Sequence[Operand], often: int, is_new: bool) -> bool:
        """They were read once more: whether a program pays."""
        alike = self.alike
        self.count += 1
        alike.count += 1
        if self.predicts:
            seen = [ref() for ref in alike.seen] + [None] * len(operands)
            alike.loose = {k for k, x in enumerate(operands) if seen[k] is not x.array}
            alike.seen = [weakref.ref(x.array) for x in operands]
        return self.count > often or (alike.is_due(often, is_new) and not self.is_short)


def _depth(operands: Sequence[Operand]) -> int:
    """How many closed nodes what is noted on these would stand behind, with its own."""
    nodes = [x.place.node for x in operands if type(x.place) is Output]
    return 1 + max([node.depth for node in nodes if type(node) is Forwarded], default=0)


class Reader:
    """Opens a node before what it is of is written; it keeps nothing itself."""

    __slots__ = ("_node",)

    def __init__(self, node: Forwarded) -> None:
        self._node = weakref.ref(node)

    def __call__(self) -> None:
        node = self._node()
        if node is not None:
            node.open()


class Forwarded(Node):
    """What a record has noted up to a read of the results `held`, their gradients by `plan`.

    Without a plan it is open, and `values`, those of `held`, are on the tape. While it is closed,
    the plan says how gradients flow.
    """

    __slots__ = (
        "__weakref__", "_asked", "_drawn", "_held", "_is_asked", "_lock", "_moved", "_numbers",
        "_operands", "_owner", "_path", "_places", "_plan", "_reader", "_reads", "_train", "_turn",
        "_values",
    )  # fmt: skip

    def __init__(
        self,
        record: Recorded,
        held: tuple[int, ...],
        reads: Reads,
        values: Sequence[Any],
        plan: Any = None,
    ) -> None:
        path = [] if plan is None else record.mark.path()
        self._numbers = reserved(len(path))
        kinds = [(x._layout, record.ctx) for x in values]
        if plan is None:
            places = [x._tape for x in values]
            flow = Flow((True,) * len(places))
        else:
            places = [x.place if k in plan.read else None for k, x in enumerate(record.operands)]
            flow = plan.flow
        super().__init__(None, places, flow, (), kinds)
        self._reads, self._plan, self._path, self._held = reads, plan, path, held
        self._lock, self._owner, self._train = record.own.lock, record.own.ident, record.train
        self._asked, self._is_asked = reads.alike.asked, False
        self._reader, self._turn = None, 0
        self._places: Sequence[Place | None] = places  # of the values, where it is open
        self._values, self._operands = [], []
        self._moved: frozenset[int] = frozenset()
        if plan is not None:
            self._turn = plan.turn
            self._drawn, self._operands = record.drawn, record.operands
            self._moved = plan.moving
            self._values = [x._detached() for x in values]
            self._reader = reader = Reader(self)
            for chunk in self._chunks():
                chunk.pending_readers.append(reader)

    def __del__(self) -> None:  # perhaps amidst whatever a thread does: without the lock
        if hasattr(self, "_reader"):  # or an interrupt came before it was there
            self._release()

    def _chunks(self) -> list[Any]:
        """The memory of operands, but for states that the backward pass changes, and of values."""
        moved = self._moved
        found = [x.chunk for k, x in enumerate(self._operands) if k not in moved]
        return found + [x._chunk for x in self._values]

    def _release(self) -> None:
        """Keep nothing but the place on the tape."""
        reader, self._reader, self._plan = self._reader, None, None
        if reader is not None:
            for chunk in self._chunks():
                with suppress(ValueError):
                    chunk.pending_readers.remove(reader)
            self._operands, self._values, self._path = [], [], []

    @property
    def depth(self) -> int:
        """How many closed nodes it stands behind, with itself."""
        return 0 if self._plan is None else self._plan.depth

    @property
    def is_closed(self) -> bool:
        """Whether its operators are not on the tape, and it was not followed either."""
        return self._plan is not None

    def is_over(self, index: int) -> bool:
        """Whether the tape was followed beyond an output."""
        place = None if self.is_closed else self._places[index]
        return type(place) is Output and place.node.is_over(place.index)

    def output_leads(self, index: int) -> bool:
        """Whether anything is to be done behind an output."""
        plan = self._plan  # another thread may open the node
        return leads(self._places[index]) if plan is None else plan.leads[index]

    def let_go(self) -> None:
        """The tape was followed: an open node's operators know that themselves."""
        with self._lock:
            if self._plan is not None:
                self._end()

    def _end(self) -> None:
        """The tape was followed, and nothing is kept."""
        self._reads.alike.opened = 0
        self._places = [FOLLOWED if x else BESIDE for x in self._plan.constants]
        self._release()

    # --- gradients ------------------------------------------------------------------------------

    def meet(self, asked: Asked) -> None:
        """Note what gradients are asked for, the first time."""
        if not self._is_asked:
            self._is_asked, self._reads.alike.asked = True, asked

    def takes(self, outputs: tuple[int, ...], direct: Collection[Place]) -> bool:
        """Whether the program gives what gradients are asked for, given those of `outputs`.

        The variables whose gradients it stores have to be among `direct`, which get no others.
        """
        asked = outputs, (True,) * len(outputs)
        is_same = self._asked == asked
        self.meet(asked)
        with self._lock:
            if not is_same or not self._is_able():
                return False
            return all(self._operands[k].place in direct for k, _, _ in self._plan.stores)

    def _is_able(self) -> bool:
        """Whether the program may compute the gradients now, in this thread."""
        plan = self._plan
        if plan is None or self._owner != get_ident() or plan.turn != self._turn:
            return False
        return plan.may_go_back and not plan.moved(self._operands)

    def follow(self, heads: Sequence[Any], grads: Sequence[Any]) -> Shares | None:
        """Have the program compute the gradients of `heads`, given theirs or None for ones.

        As `Record.follow`; None where nothing was done.
        """
        places = [x._tape for x in heads]
        if any(type(p) is not Output or p.node is not self for p in places):
            return None
        asked = tuple([p.index for p in places]), tuple([g is not None for g in grads])
        with self._lock:
            is_same = self._asked == asked
            self.meet(asked)
            return self._followed(grads) if is_same and self._is_able() else None

    def _followed(self, grads: Sequence[Any]) -> Shares:
        """Have the program compute the gradients."""
        plan, operands = self._plan, self._operands
        self._end()
        shares: Shares = plan.backward(operands, grads)
        return shares

    def gradients(self, grads: Sequence[Any], dests: Sequence[Any], store: Any) -> list[Any] | None:
        """The gradients of the inputs given those of the outputs, None where nothing came.

        One goes to its entry of `dests` by `store`, if that is not None. None where the node is
        open by now, since another thread has written what the program reads, or has run it, or
        since a gradient that the program reads, and that leads to variables, did not come.
        """
        with self._lock:
            plan, given = self._plan, list(grads)
            for k in self._asked[0]:
                if given[k] is None and not self.output_leads(k):  # it may be anything
                    layout, ctx = self.outputs[k]
                    given[k] = of_zeros(layout.shape, layout.dtype, ctx)
            heads = [given[k] for k in self._asked[0]]
            if not self._is_able() or any(x is None for x in heads):
                self.open()
                return None
            shares = self._followed(heads)
        found: list[Any] = [None] * len(self.inputs)
        for k, _, _ in plan.stores:
            found[k] = dests[k][0]
        for k, (_, share) in zip(plan.shares, shares, strict=True):
            found[k] = share
            if share is not None and dests[k] is not None:
                store(share, *dests[k])
        return found

    # --- opening --------------------------------------------------------------------------------

    def open(self) -> None:
        """Put the operators on the tape themselves, if they are not there."""
        with self._lock:
            if self._plan is None:
                return
            before = mode.recording, mode.training
            try:
                mode.recording, mode.training = True, self._train
                places = self._applied()
            finally:
                mode.recording, mode.training = before
            self._reads.alike.opened += 1
            self._places = places  # another thread may be reading `inputs`
            self._release()

    def _applied(self) -> list[Place | None]:
        """Apply the operators; the places of the results that are held."""
        given = dict(zip(self._held, self._values, strict=True))
        results: dict[int, Any] = {}
        nodes: dict[Node, None] = {}
        for number in needed(self._path, self._held):
            mark = self._path[number]
            operands = self._operands
            inputs = [results[k] if k >= 0 else operands[~k].remade() for k in mark.operands]
            made = Recorded.apply(mark.op, inputs, drawn=self._drawn.get(number))
            for k, x in enumerate([made] if mark.is_single else made, mark.first):
                results[k] = x if k not in given else _kept(x, given[k])
                if x._tape is not None:
                    nodes[x._tape.node] = None
        for node, number in zip(nodes, self._numbers, strict=False):
            node.number = number
        return [results[k]._tape for k in self._held]


Met = dict[Forwarded, set[int]]


def behind(place: Place | None, met: Met | None = None) -> Place | None:
    """The place that gradients go to instead of an open node's; `met` gets its outputs' numbers."""
    while type(place) is Output and type(place.node) is Forwarded and not place.node.is_closed:
        if met is not None:
            met.setdefault(place.node, set()).add(place.index)
        place = place.node._places[place.index]
    return place


def _kept(made: Any, value: Any) -> Any:
    """What the tape has of a result, of its value that was given away."""
    found, place = value._detached(), made._tape
    put(found, "_tape", place)
    if place is not None and place.node.saved:
        chunk = made._chunk
        place.node.saved = [found._detached() if x._chunk is chunk else x for x in place.node.saved]
    return found


def forwarded(
    record: Recorded, mark: Mark, results: list[Any], held: tuple[int, ...], reads: Reads
) -> bool:
    """Whether a program has computed what is held, and will the gradients.

    It has not where the record is not any more what `held` was found in: `results`, up to `mark`.
    """
    noted = mark, record.operands, tuple(record.places), record.train

    def is_changed() -> bool:
        return record.mark is not mark or record.results is not results

    try:
        program = None if is_changed() else reads.program(held, noted)
        put(record, "working", True)  # from here on, no other code computes it, or notes more
        if is_changed():
            return False
        plan = None if program is None else program.ready(record.operands)
        if plan is None:
            return False
        values = plan.forward(record.operands, record.drawn)
        if record.way == PREDICTED:
            reads.alike.opened = 0
        else:
            enter_tape(Forwarded(record, held, reads, values, plan), values)
        for k, value in zip(held, values, strict=True):
            take_over(results[k], value)
        record.forget()  # before more can be noted
    except GnomonError:
        reads.alike.opened += 1
        return False
    finally:
        put(record, "working", False)
    record.found()
    return True


def enter_tape(node: Forwarded, arrays: Sequence[Any]) -> None:
    """Put arrays on the tape as the outputs of a node."""
    for k, x in enumerate(arrays):
        put(x, "_tape", Output(node, k))


def join_on_tape(record: Any, held: tuple[int, ...], reads: Reads, arrays: Sequence[Any]) -> None:
    """Make computed arrays the outputs of one node, if all of them are on the tape."""
    if all(type(x._tape) is Output for x in arrays):
        enter_tape(Forwarded(record, held, reads, arrays), arrays)


def take_over(noted: Any, made: Any) -> None:
    """Give a noted array the value, and the place on the tape, of one that no other code has."""
    put(noted, "_tape", made._tape)
    group = made._pending_in
    if type(group) is FusionGroup:
        with group.own.lock:
            if made._pending_in is group:
                group.results[made._index] = noted
                put(noted, "_index", made._index)
                put(noted, "_pending_in", group)
                return
    noted._materialize(made._chunk, made._offset)

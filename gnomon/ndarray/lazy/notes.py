"""Notes: what is recorded is noted and not computed, until its values or gradients are asked for.

While a thread records, an operator on arrays of the tape gives arrays without memory, pending in
the thread's `Record`. What the operators say, apart from the memory they are about, is a path of
*marks*, as statements outside of records are a path of stages (`trace.py`): the same statements on
the same kinds of arrays lead to the same mark, which keeps the programs that were made for them.

`backward` of noted arrays asks the last mark for a program of all that was noted, and of its
gradients: a bound graph, with a planned memory, in one native call. It writes the gradients where
they belong, and of the noted values those that the program still holds; all others are inside. A
mark has one for what came `OFTEN` times: the same heads, variables, and held values. Where what
came as often differs in sizes alone, it has one at once, as the programs of one structure are made
by each other. Nothing is predicted: the program is one of what did happen.

Where values are asked for before that, and those of the same results were `OFTEN`, the record
becomes one node of the tape, whose program does the same in two calls (`forwarded.py`).

Everything else has the record *computed*: each operator is applied as if it were called only now,
and goes on the tape. That is what happens where the mark has no program (yet), and when
- a place on the tape is asked for, or a value, in whatever way, that was not often before;
- memory that was noted as an operand is about to be written (the record is its pending reader);
- gradients are asked for otherwise: `grad`, `create_graph`, `retain_graph`, heads of two threads;
- the program holds a value that shares no operator with the heads;
- the train mode, the engine or a setting changes; `nd.waitall()`; more than `MOST` operators;
- `SCOPES` scopes that record have passed without gradients being asked for.
Where that goes on, noting is in vain: the thread rests from it for ever more records. Where all of
them were new, it rests no longer than new operands come: then the next ones may come again.

Random numbers take their places in the sequence when an operator is noted. States that a backward
pass changes, as moving averages, are read and written where they lie.

Not noted, and computed at once, are operators with data of their own, or refusals of values; those
that change states as they are called, or have `out`; on sparse arrays, on memory that others may
write, on several devices.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from gnomon import config
from gnomon.base import GnomonError, MidwayError
from gnomon.ground.lock import load_module
from gnomon.ground.record import put
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import STEPS
from gnomon.ndarray.core.layout import dense
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import BESIDE, FOLLOWED, NOTED, Output, Place, placed, source
from gnomon.ndarray.lazy.forwarded import Alike, Reads, forwarded, join_on_tape, take_over
from gnomon.ndarray.lazy.fused import Lost
from gnomon.ndarray.lazy.fusion_group import Own, here
from gnomon.ndarray.lazy.infer import infer
from gnomon.ndarray.lazy.marks import (
    EMPTY,
    PREDICTED,
    Mark,
    Operand,
    Structure,
    admit,
    canonical,
    draws_of,
    in_turn,
    known,
    may_be_noted,
    structure_of,
)
from gnomon.ndarray.lazy.recorded import MOST, Position, Recorded, index_of, serve, way, ways
from gnomon.ndarray.lazy.varying import MOST as MOST_NUMBERS
from gnomon.ndarray.lazy.varying import Called, Said, opened, varied
from gnomon.resource import generator

OFTEN = 16  # times that a step comes before it is compiled, which takes as long as some hundred do
SCOPES = 8  # that are noted without gradients being asked for
Shares = list[tuple[Place, Any]]
Positions = list[Position]

_changes = config.changes
_getrefcount = sys.getrefcount

(_UNHELD,) = [_getrefcount(x) for x in [object()]]  # of what a list alone refers to

_noting: dict[str, weakref.ref[Own]] = {}  # of the thread that notes, one at a time on each tree


class Record(Recorded):
    """What a thread has noted; it is the group of those arrays, and a pending reader of operands.

    Calling it has it computed.
    """

    __slots__ = ()

    def begin_in_child(self) -> None:
        """In a forked child: its thread, of the parent, may have been amidst anything."""
        put(self, "working", False)
        put(self, "noting", False)

    # --- noting -------------------------------------------------------------------------------

    def enter(self) -> None:
        """Another scope that records begins."""
        self.open()
        with self.own.lock:
            if self.results and not self.working and not self._held():
                self._compute()  # nothing: no caller holds any of it
            put(self, "scopes", self.scopes + 1 if self.results else 0)
            if self.scopes >= SCOPES:
                self()

    def note(self, op: Any, arrays: Sequence[Any]) -> Any:
        """The visible outputs of an operator, one or a list of them; None where it is not noted."""
        for x in arrays:
            pending = x._pending_in if x.__class__ is Array.main else None
            if type(pending) is Record and pending is not self:
                placed(x)  # another thread's: two that wait for each other hold no lock meanwhile
        with self.own.lock:
            if self.noting:  # a finaliser computes, or a handler
                return None
            put(self, "noting", True)
            try:
                if self.changes != _changes.count or self.way != way():
                    self._begin()
                return None if self.working or self.is_eager else self._noted(op, arrays)
            finally:
                put(self, "noting", False)

    def _noted(self, op: Any, arrays: Sequence[Any]) -> Any:
        """`note`, again where a finaliser asked for values in the midst of it."""
        drawn: Positions | None = None
        said: Said | None = None
        while True:
            results = self.results
            entry, fresh = self._entry(op, arrays)
            if entry is None:
                return None
            mark = self.mark.after.get(entry, EMPTY)
            if mark is EMPTY and not said and (found := self._varied(op, arrays, entry)):
                op, arrays, said = found
                continue
            if mark is EMPTY:
                mark = self._grown(op, arrays, entry, fresh)
            taken = mark is not None and (not fresh or self.take(fresh))
            if mark is not None and taken:
                if mark.draws and drawn is None:
                    source = generator(self.ctx)
                    drawn = [source.reserve(count) for count in mark.draws]
                first, noted = mark.first, Array._noted
                del results[first:]  # there are some after an interrupt
                for k, layout in enumerate(mark.layouts, first):
                    results.append(noted(self, k, layout, NOTED))
            if self.results is not results:
                self.undo(fresh)
                continue
            if mark is None or not taken:
                self.drop_beyond()
                return None
            if drawn is not None:
                self.drawn[mark.count - 1] = drawn
            if said is not None:
                self.said[mark.count - 1] = said
            made = results[first] if mark.is_single else results[first:]  # a handler may compute
            known_as = self.mark.opened
            put(self, "mark", mark)
            if said is not None and not mark.is_random:  # native code notes it from now on
                known_as[varied(said.op)] = op
            if mark.count >= MOST:
                self._compute()  # with what is held here
            return made

    def _begin(self) -> None:
        """Begin anew in another mode, or under other settings."""
        self._compute()
        if self.changes != _changes.count:
            self.own.look()
            put(self, "changes", _changes.count)
            put(self, "is_eager", self.own.eager or not config.get("programs"))
        put(self, "way", way())
        put(self, "mark", EMPTY[self.way])

    def _entry(self, op: Any, arrays: Sequence[Any]) -> tuple[Any, list[Any]]:
        """What the next mark is found by, and the arrays that are operands for the first time.

        None where no array is on the tape that is recorded, or one is of another class.
        """
        operands, numbers = self.operands, self.numbers
        if len(operands) != self.mark.leaves:
            self.drop_beyond()
        same = known(op)
        entry: list[Any] = [same and id(same)]
        fresh: list[Any] = []
        on_tape = self.way == PREDICTED and len(arrays) > 0
        for x in arrays:
            if x.__class__ is not Array.main:
                return None, fresh
            if x._pending_in is self:
                entry.append(x._index)
                on_tape = True
                continue
            number, place = numbers.get(id(x)), x._tape
            if type(place) is Output:
                place = source(x)
            on_tape = on_tape or place is not None
            if number is not None and operands[~number].place is place:
                entry.append(number)
            elif not fresh or (k := index_of(fresh, x)) is None:
                entry.append(x._layout)
                fresh.append(x)
            else:
                entry.append(~(len(operands) + k))
        return (tuple(entry) if on_tape else None), fresh

    def _varied(self, op: Any, arrays: Sequence[Any], entry: tuple[Any, ...]) -> Called | None:
        """An operator that came in this place with many numbers, with those as operands."""
        if not may_be_noted(op) or (what := varied(op)) is None:
            return None
        key = what, *entry[1:]
        count = self.mark.varied[key] = self.mark.varied.get(key, 0) + 1
        both = opened(op, arrays, what) if count > MOST_NUMBERS else None
        return None if both is None else both.called(op, arrays, ways.numbered)

    def _grown(
        self, op: Any, arrays: Sequence[Any], entry: tuple[Any, ...], fresh: list[Any]
    ) -> Mark | None:
        """A mark met for the first time; None where the operator is not noted."""
        admit()
        entry = (id(canonical(op)), *entry[1:])
        mark: Mark | None = None
        if may_be_noted(op) and len(arrays) == len(op.inputs()):
            layouts = [x._layout for x in arrays]
            outs = infer(op, layouts)
            shown = outs[: op.num_visible_outputs]
            if all(x.size for x in layouts) and all(0 not in shape for shape, _ in shown):
                count = len(self.operands)
                numbers = {id(x): ~k for k, x in enumerate(fresh, count)}
                pairs = zip(entry[1:], arrays, strict=True)
                operands = tuple(k if isinstance(k, int) else numbers[id(x)] for k, x in pairs)
                draws = draws_of(op, layouts, outs, self.train)
                states = [operands[k] for k in range(len(op.arguments()), len(operands))]
                if all(k < 0 and operands.count(k) == 1 for k in states):
                    made = [dense(*out) for out in shown]
                    mark = Mark(self.mark, canonical(op), operands, made, draws)
        self.mark.after[entry] = mark
        return mark

    # --- computing ----------------------------------------------------------------------------

    def __call__(self) -> None:
        """Compute what anybody can still ask for."""
        with self.own.lock:
            if self.mark.count and not self.working:
                self.missed()
                self._compute()

    def read(self) -> None:
        """Compute what other code holds, of which it asks for something."""
        with self.own.lock:
            mark, results = self.mark, self.results
            if not mark.count or self.working:
                return
            held = self._held()
            reads = self._reads(held)
            if reads is None:
                self._compute()
            elif not forwarded(self, mark, results, held, reads):
                arrays = list(map(results.__getitem__, held))
                self._compute()
                join_on_tape(self, held, reads, arrays)

    def _reads(self, held: tuple[int, ...]) -> Reads | None:
        """What is known of reads like this one; None where no program pays, or all were in vain."""
        plans, key = self.mark.plans, (held, tuple(self.places))
        if not held or self.noting:
            self.missed()
            return None
        reads, is_first, is_new = plans.get(key), not plans, self.is_new
        if reads is None:
            admit()
            alike = structure_of(self.mark, key, Alike)
            reads = plans[key] = Reads(alike, self.way == PREDICTED)
        if reads.is_vain:
            self.missed()
            return None
        if reads.planned:
            return reads
        is_due = reads.come(self.operands, OFTEN, is_new)
        if reads.is_first:
            self.missed(is_first and not reads.is_short)
        elif not reads.is_short:
            self.found()
        return reads if is_due else None

    def materialize(self, array: Any) -> bool:
        """Have an array of the record computed; whether its value is known to be there."""
        with self.own.lock:
            if self.working and array._pending_in is self:
                raise MidwayError("an array was asked for while it was being computed")
            self.read()
        if type(array._pending_in) is Lost:
            array._pending_in.materialize(array)
        return False

    def _held(self) -> tuple[int, ...]:
        """The numbers of the results that other code holds."""
        return tuple([x._index for x in self.results if _getrefcount(x) > _UNHELD])

    def _compute(self) -> None:
        """Apply the operators that held results depend on."""
        if not self.mark.count:
            self.forget()
            return
        put(self, "working", True)
        before = mode.recording, mode.training
        try:
            mode.recording, mode.training = self.way != PREDICTED, self.train
            path = self.mark.path()
            for number in in_turn(path, self._held(), self.results):
                self._apply(path[number], number)
            self.forget()  # before more can be noted
        finally:
            mode.recording, mode.training = before
            put(self, "working", False)

    def _apply(self, mark: Mark, number: int) -> None:
        """Apply an operator, if an interrupt did not come after that the last time."""
        mine = self.results[mark.first : mark.results]
        if all(x._pending_in is not self for x in mine):
            return
        op = mark.op
        inputs = [self.results[k] if k >= 0 else self.operands[~k].remade() for k in mark.operands]
        said = self.said.get(number)
        if said is not None and self._is_operand(said.number, mark):
            op, inputs = said.op, inputs[: said.count]
        try:
            made = Recorded.apply(op, inputs, drawn=self.drawn.get(number))
        except MidwayError:  # a finaliser's, which leaves all to the program that it runs amidst
            raise
        except (GnomonError, MemoryError) as error:  # the others can be computed
            lost = Lost(error, self.ctx)
            for x in mine:
                if x._pending_in is self:
                    put(x, "_pending_in", lost)
            return
        for x, value in zip(mine, [made] if len(mine) == 1 else made, strict=True):
            take_over(x, value)

    def _is_operand(self, array: Any, mark: Mark) -> bool:
        """Whether an operator was noted on an array; else an interrupt came when it was."""
        return any(k < 0 and self.operands[~k].array is array for k in mark.operands)

    # --- backward -----------------------------------------------------------------------------

    def follow(self, heads: Sequence[Any], grads: Sequence[Any]) -> Shares | None:
        """Have a program compute the record, and its gradients.

        They are stored where they belong, unless arrays that were noted as operands are results on
        the tape: then they are what is returned, with their places. `grads` are those of the heads,
        None for ones. None where nothing was done.
        """
        with self.own.lock:
            mark, results, operands = self.mark, self.results, self.operands
            if self.working or not {self}.issuperset(map(attrgetter("_pending_in"), heads)):
                return None
            before = self.noting  # a finaliser follows what is being noted
            put(self, "noting", True)  # nothing else is, till this is done
            try:
                return self._followed(mark, results, operands, heads, grads)
            finally:
                put(self, "noting", before)

    def _followed(
        self,
        mark: Mark,
        results: list[Any],
        operands: list[Operand],
        heads: Sequence[Any],
        grads: Sequence[Any],
    ) -> Shares | None:
        """`follow`; a finaliser may compute all of it at any line, but not what is given here."""
        heads_given = tuple([x is not None for x in grads])
        key = tuple([x._index for x in heads]), heads_given, self._held(), tuple(self.places)
        found = mark.plans.get(key, 0)
        if found.__class__ is int:
            found = self._met(mark, operands, key, found)
        elif found is None:
            self.missed()
        given = [x for x in grads if x is not None]
        shares = self._done(mark, results, key, found, given) if found else None
        if shares is not None:
            self.found()
        elif self.results is results:
            self._compute()
        return shares

    def _met(self, mark: Mark, operands: Sequence[Operand], key: Any, count: int) -> Any:
        """A program for a step that came `count` times before; None where it is none yet."""
        plans, is_new = mark.plans, self.is_new
        structure = structure_of(mark, key, Structure)
        structure.count += 1
        if structure.count == 1:
            self.missed(is_new=not plans)
        else:
            self.found()
        if not count:
            admit()
        plans[key] = count + 1
        if count < OFTEN and not structure.is_due(OFTEN, is_new):
            return None
        planned = load_module("gnomon.executor.recorded_step").planned
        forget = partial(plans.pop, key)
        found = planned(structure, mark.path(), key, self.train, operands, forget)
        plans.pop(key, None)
        STEPS.put(plans, key, found)
        return found

    def _done(
        self, mark: Mark, results: list[Any], key: Any, found: Any, grads: Sequence[Any]
    ) -> Shares | None:
        """Have a program do all that is noted: shares; None where it does not do it."""
        put(self, "working", True)  # from here on, no other code computes it
        try:
            done = found.run(self.operands, grads, self.drawn) if self.results is results else None
            if done is None:
                return None
            for k, (array, is_constant) in zip(key[2], done[0], strict=True):
                x = results[k]
                put(x, "_tape", FOLLOWED if is_constant else BESIDE)
                x._materialize(array._chunk, array._offset)
            self.forget()
            shares: Shares = done[1]
            return shares
        except GnomonError:
            mark.plans[key] = None
            return None
        finally:
            put(self, "working", False)


def note(op: Any, arrays: Sequence[Any]) -> Any:
    """The visible outputs of an operator that is noted; None where it is not.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    made = ways.note(here.own, op.__dict__.get("_number"), tuple(arrays))
    return _unusual(op, arrays) if made is None else made


def _unusual(op: Any, arrays: Sequence[Any]) -> Any:
    """`note` of what native code does not."""
    own = here.own
    record = own.noted if mode.recording else own.predicted
    if record is None:
        kind = "noted" if mode.recording else "predicted"
        found = _noting.setdefault(kind, weakref.ref(own))()
        if found is not own:
            if found is None:  # its thread has ended
                _noting.pop(kind, None)
            return None
        serve()
        record = Record(own)
        put(own, kind, record)
    if not record.is_open:
        return None
    made = record.note_opened(op, arrays) if record.mark.opened else None
    return record.note(op, arrays) if made is None else made


def end_predictions() -> None:
    """Let another thread note what it predicts."""
    put(here.own, "predicted", None)
    _noting.pop("predicted", None)


def enter() -> None:
    """A scope that records begins in this thread."""
    record = here.own.noted
    if record is not None:
        record.enter()


def _in_child() -> None:
    """In a forked child: the thread that notes is one of the parent's, or this one."""
    for kind, found in tuple(_noting.items()):
        if found() is not here.own:
            _noting.pop(kind)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)

"""Operators with their parameters, as functions of arrays that are quick where they came before.

A first call on arrays of some layouts goes the way of `invoke.py`; what it leaves there serves the
next one natively: an operator that waits joins a group (`native_pend.py`), any other whose kernel
is short is applied again as it was (`repeat.py`). Anything unusual goes the first call's way.
"""

from __future__ import annotations

import functools
from typing import Any

from gnomon.context import Context
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.invoke import invoke, recipe_of
from gnomon.ndarray.lazy.native_pend import NativePend, native_pend_by
from gnomon.ndarray.lazy.notes import note
from gnomon.ndarray.lazy.numbers import sharing_of, word
from gnomon.ndarray.lazy.repeat import LONG, Entry, Long, repeater
from gnomon.ndarray.lazy.trace import of_inputs_alone
from gnomon.ops import precision, registry


class Applied:
    """An operator with its parameters, as a function of arrays alone.

    Its result goes to `out` where that is given; `ctx` is the device where there are no arrays.
    """

    __slots__ = ("_known", "_long", "_native_pend", "_same", "_sharing", "op")

    def __init__(self, op: Any) -> None:
        self.op = op
        self._sharing = sharing_of(op)
        self._same = of_inputs_alone(type(op))  # whether equal inputs have equal outputs
        self._native_pend: NativePend | None = None  # its native form where it waits
        self._known: dict[Any, Entry] = {}  # what that may repeat
        self._long: dict[Any, None] = {}  # operands whose kernel is too long for that

    def __call__(self, arrays: tuple[Any, ...], out: Any = None, ctx: Context | None = None) -> Any:
        """The operator's outputs; None where an operand is no array, and nothing was done."""
        if (mode.recording or mode.predicting) and out is None and precision.current is None:
            noted = note(self.op, arrays)
            if noted is not None:
                return noted
        if self._native_pend is not None and out is None:
            made = self._native_pend(here.own, *arrays)
        else:
            made = repeater.way(self._known, arrays, out, ctx) if self._known else None
        if made is not None:
            return made
        if not all(isinstance(x, Array) for x in arrays):
            return None
        key = _key(arrays, out)  # afterwards `out` may wait
        made = invoke(self.op, arrays, out, ctx)
        if key is not None and all(x.__class__ is Array.main for x in (*arrays, *_listed(made))):
            self._learn(key, arrays, out)
        return made

    def _learn(self, key: tuple[Any, ...], arrays: tuple[Any, ...], out: Any) -> None:
        """Be quick from now on for operands like these, to which it was just applied."""
        if precision.current is not None:  # which casts them first
            return
        if out is None and self._sharing.kind.rules.get(tuple([x._layout for x in arrays])):
            if self._native_pend is None and len(arrays) <= 2 and not self._sharing.fields:
                rules = self._sharing.kind.rules
                self._native_pend = native_pend_by(rules, rules)
        elif self._same and not mode.recording and self.op.guard is None:
            if key in self._long:
                return
            known = self._known.get(key)
            behind = None if known is None or known[3].address is not None else known[4]
            if isinstance(behind, Long) and behind.is_current:
                repeater.calls += LONG
                return
            recipe, sharing = recipe_of(self.op, arrays, None if out is None else [out])
            if recipe.passes:
                return
            long = None if recipe.address is not None or out is not None else self._behind(recipe)
            if recipe.address is None and long is None:
                LEARNT.put(self._long, key, None)
                return
            numbers = tuple(word(sharing.values[n.place], n) for n in recipe.numbers)
            entry = recipe.address or 0, tuple(recipe.given[0]), numbers, recipe, long
            LEARNT.put(self._known, key, entry)

    def _behind(self, recipe: Any) -> Long | None:
        """How a kernel goes behind the program, if it did."""
        template = recipe.template
        integers = template.count + len(recipe.numbers)
        streamed = template.streamed
        return None if streamed is None else Long(template, streamed, integers, self.op.name)


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _key(arrays: tuple[Any, ...], out: Any) -> tuple[Any, ...] | None:
    """What `repeat` looks operands up by; None where it would not."""
    if out is None:
        return (*[x._layout for x in arrays], None)
    every = (*arrays, out)
    if any(x.__class__ is not Array.main or x._pending_in is not None for x in every):
        return None
    if any(x._chunk.shared for x in every):  # it may be the memory of `out` under another name
        return None
    place = out._chunk, out._offset, out._layout
    near = [x._chunk is place[0] for x in arrays]
    same = [(x._chunk, x._offset, x._layout) == place for x in arrays]
    if near != same:
        return None
    parts = zip(arrays, same, strict=True)
    return (*[None if itself else x._layout for x, itself in parts], out._layout)


@functools.lru_cache(maxsize=1024, typed=True)
def applying(name: str, **given: Any) -> Applied:
    """The operator called `name` with its parameters, as a function of arrays."""
    return Applied(registry.find(name).parse(given))

"""The function a key-value store calls on each gradient: an optimizer with its states by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Any

from gnomon.base import FormatError, Later, check_kind, complaint
from gnomon.executor.latest import latest
from gnomon.optimizer.base import Optimizer
from gnomon.optimizer.fused import Join
from gnomon.optimizer.states import dumps, loads

if TYPE_CHECKING:
    from gnomon.executor import later
else:
    later = Later("gnomon.executor.later")

_ABSENT = object()  # None is a state, too


class Updater:
    """`updater(index, grad, weight)` updates `weight` in place, keeping the states it needs.

    States are created when an index is first seen; states that were loaded move to the weight's
    device when first used. Lists of indices, gradients and weights are updated together, and in one
    native call with the backward pass before, if nothing was asked for in between.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}
        self._last: tuple[Any, ...] = ()  # states that were used last, on their weights' devices
        self._updates: later.Updates | None = None  # pushes them behind a backward pass

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"_last": (), "_updates": None} | state)  # MXNet's pickles lack both

    def __call__(self, index: Any, grad: Any, weight: Any, join: Join | None = None) -> None:
        """Update one weight, or lists of them; `join` as for `Optimizer.update_all`."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        states = self._last
        now = map(self.states.get, index, repeat(_ABSENT))
        if len(index) != len(states) or not all(map(is_, now, states)):
            states = tuple([self._state(i, w) for i, w in zip(index, weight, strict=True)])
            self._last = states
        if join is None and latest.pushed is not None and weight:
            join = self._behind(weight[0].context)
        self.optimizer.update_all(index, weight, grad, states, join)

    def _behind(self, ctx: Any) -> Join | None:
        """What pushes updates on a device behind a backward pass there."""
        if latest.pushed is None:
            return None
        there = latest.pushed.of.ctx
        if there is not ctx and there != ctx:
            return None
        if self._updates is None or (self._updates.ctx is not ctx and self._updates.ctx != ctx):
            self._updates = later.Updates(ctx)
        return self._updates

    def _state(self, index: Any, weight: Any) -> Any:
        """The weight's state, made or moved to its device when first asked for."""
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
        elif not self.states_synced[index]:
            self._check(self.optimizer, index, self.states[index], weight)
            self.states[index] = self.sync_state_context(self.states[index], weight.context)
        self.states_synced[index] = True
        return self.states[index]

    def sync_state_context(self, state: Any, context: Any) -> Any:
        """`state` with its arrays on the device `context`."""
        if isinstance(state, (list, tuple)):
            return type(state)(self.sync_state_context(each, context) for each in state)
        return state.as_in_context(context) if hasattr(state, "as_in_context") else state

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """The states, and the optimizer with its counts where asked, as bytes."""
        return dumps((self.states, self.optimizer) if dump_optimizer else self.states)

    def set_states(self, states: bytes, weights: Mapping[Any, Any] | None = None) -> None:
        """Take over what `get_states` gave, here or in MXNet.

        Whether states fit weights and the optimizer is seen when they are used first; with
        `weights`, by index, now.

        Raises:
            FormatError: they are something else; nothing is changed then, and no code of it run.
        """
        content = loads(states)
        optimizer = self.optimizer
        if isinstance(content, tuple) and len(content) == 2:
            content, optimizer = content
        if not isinstance(content, dict) or not isinstance(optimizer, Optimizer):
            got = type(content).__name__
            raise FormatError(complaint("Updater.set_states", "states", "saved states", got))
        for index, weight in (weights or {}).items():
            if index in content:
                self._check(optimizer, index, content[index], weight)
        self.states = content
        self.optimizer = optimizer
        self.states_synced = dict.fromkeys(content, False)
        self._last = ()

    def _check(self, optimizer: Optimizer, index: Any, state: Any, weight: Any) -> None:
        """Raises FormatError where a state is of another optimizer, or for another weight.

        Where an optimizer has an optional momentum, it may be there or not.
        """
        if not type(optimizer).__module__.startswith(f"{__name__.partition('.')[0]}."):
            return  # what states of a user's optimizer are, it alone knows
        known = list(_parts(optimizer._made_state(index, weight)))
        found, free = list(_parts(state)), hasattr(optimizer, "momentum")
        pairs = zip(found, known, strict=False)
        fits = all(a == b or (free and None in (a, b)) for a, b in pairs)
        if not fits or len(found) != len(known):
            own = self.optimizer
            name = own.idx2name.get(index) or getattr(own.param_dict.get(index), "name", None)
            what = f"states[{index!r}]" + (f", of {name!r}" if name else "")
            kind = f"{type(optimizer).__name__} of a weight of shape {tuple(weight.shape)}"
            expected = f"{_shown(known)}, as {kind} has"
            got = f"{_shown(found)}: are they another optimizer's, or another network's?"
            raise FormatError(complaint("set_states", what, expected, got))


def _parts(state: Any) -> Iterator[Any]:
    """The shapes of the arrays of a state in order; of anything else its kind, or None."""
    if isinstance(state, (list, tuple)):
        for each in state:
            yield from _parts(each)
    elif state is None or hasattr(state, "shape"):
        yield None if state is None else tuple(state.shape)
    else:
        yield type(state)


def _shown(parts: Sequence[Any]) -> str:
    """The parts of a state in words."""
    arrays = [f"of shape {part}" for part in parts if isinstance(part, tuple)]
    count = f"{len(arrays)} array{'s' * (len(arrays) > 1)}"
    return f"{count} {', '.join(arrays)}" if arrays else "no array"


def get_updater(optimizer: Optimizer) -> Updater:
    """An updater for `optimizer`, with no states yet."""
    check_kind("get_updater", "optimizer", optimizer, Optimizer, "an Optimizer")
    return Updater(optimizer)

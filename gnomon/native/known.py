"""What holds of a function's variables at a place, and where several ways meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from gnomon.native.kinds import Kind

T = TypeVar("T")
Narrow = Mapping[str, Kind]  # variables' kinds, where they were compared


class Known(NamedTuple):
    """What holds of variables at a place, on whichever way the flow comes there."""

    values: frozenset[str]  # variables that have a value
    optional: frozenset[str]  # those set from slots that may hold None
    narrow: Narrow  # what comparisons with classes say of variables
    fresh: Mapping[str, frozenset[str]]  # new objects in variables: slots set so far

    def where(self, narrow: Narrow) -> Known:
        """What holds where comparisons say this as well."""
        return self._replace(narrow={**self.narrow, **narrow}) if narrow else self

    def after(self, name: str, optional: bool, fresh: bool) -> Known:
        """What holds when a variable was set."""
        values, rest = self.values | {name}, _but(self.fresh, {name})
        others = self.optional | {name} if optional else self.optional - {name}
        new = {**rest, name: frozenset[str]()} if fresh else rest
        return Known(values, others, _but(self.narrow, {name}), new)

    def in_loop(self, changed: Collection[str]) -> Known:
        """What holds in each round of a loop that sets these variables."""
        optional = self.optional.union(changed)
        return Known(self.values, optional, _but(self.narrow, changed), {})

    def without_fresh(self, name: str | None) -> Known:
        """What holds when other code may know of a variable's object."""
        return self._replace(fresh=_but(self.fresh, {name})) if name in self.fresh else self

    def joined(self, other: Known) -> Known:
        """What holds where two ways meet."""
        if self is other:
            return self
        narrow, fresh = _both(self.narrow, other.narrow), _both(self.fresh, other.fresh)
        return Known(self.values & other.values, self.optional | other.optional, narrow, fresh)


NOTHING = Known(frozenset(), frozenset(), {}, {})


def _but(facts: Mapping[str, T], names: Collection[str | None]) -> Mapping[str, T]:
    """Facts of all other variables."""
    return {name: fact for name, fact in facts.items() if name not in names}


def _both(facts: Mapping[str, T], others: Mapping[str, T]) -> Mapping[str, T]:
    """The facts that hold on both ways."""
    return {name: fact for name, fact in facts.items() if others.get(name) == fact}

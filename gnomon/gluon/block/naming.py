"""How blocks get their names, and their parameters with them: by kind, number and scope.

A block made outside of any scope is `dense0_` by the thread's `NameManager`; inside the scope of
another block it is `dense0_` behind that block's prefix, counted by that block. Files depend on it.

State: each thread has the scopes that it has entered; a scope counts the blocks made in it.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from gnomon.base import check_kind
from gnomon.gluon.parameter import ParameterDict
from gnomon.name import NameManager, Prefix


class _Scopes(threading.local):
    """The scopes this thread has entered, the current one last."""

    def __init__(self) -> None:
        self.stack: list[BlockScope] = []


_scopes = _Scopes()


class BlockScope:
    """`with block.name_scope():` names what is made inside after the block."""

    def __init__(self, block: Any) -> None:
        self._block = block
        self._counter: Counter[str] = Counter()
        self._managers: list[Prefix | None] = []

    def __enter__(self) -> BlockScope:
        named = None if self._block._empty_prefix else Prefix(self._block.prefix)
        self._managers.append(named)
        if named is not None:
            _scopes.stack.append(self)
            named.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        named = self._managers.pop()
        if named is not None:
            named.__exit__(*exc)
            _scopes.stack.pop()

    def number(self, hint: str) -> int:
        """How many blocks of a kind were made in here before."""
        self._counter[hint] += 1
        return self._counter[hint] - 1

    @staticmethod
    def create(
        prefix: str | None, params: ParameterDict | None, hint: str
    ) -> tuple[str, ParameterDict]:
        """The prefix of a new block, and the dictionary for its parameters.

        `params` is a dictionary that it shares parameters with.
        """
        if params is not None:
            expected = "a ParameterDict, as another block's"
            check_kind("Block", "params", params, ParameterDict, expected)
        if not _scopes.stack:
            prefix = NameManager.current.get(None, hint) + "_" if prefix is None else prefix
            made = ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
            return prefix, made
        scope = _scopes.stack[-1]
        own = f"{hint}{scope.number(hint)}_" if prefix is None else prefix
        parent = scope._block
        if params is None:
            made = ParameterDict(parent.params.prefix + own, parent.params._shared)
        else:
            made = ParameterDict(params.prefix, params)
        return parent.prefix + own, made

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A scope that nothing is within; MXNet's pickles have both of these too."""
        self._block, self._managers = state["_block"], []
        self._counter = Counter(state["_counter"])

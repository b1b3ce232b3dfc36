"""Optimizer states that lie in pieces on several ranks: put together, and taken apart again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.kvstore.shards import Shards
from gnomon.optimizer import Updater


def dumped(updater: Any) -> bytes:
    """A rank's own states, and how often it has updated each key."""
    counts = getattr(updater.optimizer, "_index_update_count", {})
    return pickle.dumps((_mapped(updater.states, lambda a: a.asnumpy()), dict(counts)))


def joined(
    updater: Any,
    parts: Sequence[bytes],
    shards: Shards,
    stored: Mapping[Any, Any],
    with_optimizer: bool,
) -> bytes:
    """What `Updater.get_states` would give for the states of all ranks."""
    ranks = [pickle.loads(part) for part in parts]
    found: dict[Any, Any] = {}
    for key in {k: None for table, _ in ranks for k in table}:
        have = [table[key] for table, _ in ranks if key in table]
        pieces = shards.known(key) or ()
        if len(pieces) > 1 and len(have) > 1:
            found[key] = _concatenated(have, stored[key].shape)
        else:
            found[key] = have[0]
    optimizer = updater.optimizer
    for _, counts in ranks:
        optimizer._index_update_count.update(counts)
    whole = Updater(optimizer)
    whole.states = _mapped(found, lambda a: nd.array(a, dtype=a.dtype))
    data: bytes = whole.get_states(with_optimizer)
    return data


def keep_own(updater: Any, shards: Shards, rank: int) -> None:
    """Of whole states that were loaded, keep the pieces that this rank owns."""
    kept = {}
    for key, state in updater.states.items():
        pieces = shards.known(key)
        if pieces is None:
            kept[key] = state
            continue
        for piece in pieces:
            if piece.owner == rank:
                kept[key] = state if len(pieces) == 1 else _cut(state, piece.start, piece.stop)
    updater.states = kept
    updater.states_synced = dict.fromkeys(kept, False)


def _mapped(state: Any, change: Callable[[Any], Any]) -> Any:
    """A state with another array for each of its arrays."""
    if isinstance(state, dict):
        return {k: _mapped(each, change) for k, each in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_mapped(each, change) for each in state)
    return change(state) if isinstance(state, (nd.NDArray, np.ndarray)) else state


def _concatenated(states: Sequence[Any], shape: tuple[int, ...]) -> Any:
    first = states[0]
    if isinstance(first, (list, tuple)):
        return type(first)(_concatenated(each, shape) for each in zip(*states, strict=True))
    if isinstance(first, np.ndarray):
        return np.concatenate(states).reshape(shape)
    return first


def _cut(state: Any, start: int, stop: int) -> Any:
    return _mapped(state, lambda a: a.reshape((-1,))[start:stop].copy())

"""Optimizer states that lie in pieces on several ranks: put together, and taken apart again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.kvstore.shards import Piece, Shards
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
    known = optimizer._index_update_count
    for _, counts in ranks:  # a rank counts its own keys alone, and may have old counts of others
        known.update({key: max(count, known.get(key, 0)) for key, count in counts.items()})
    whole = Updater(optimizer)
    whole.states = _mapped(found, lambda a: nd.array(a, dtype=a.dtype))
    data: bytes = whole.get_states(with_optimizer)
    return data


def keep_own(updater: Any, shards: Shards, rank: int) -> None:
    """Of whole states that were loaded, keep the pieces that this rank owns."""
    own: dict[Any, Piece | None] = {}
    for key in updater.states:
        pieces = shards.known(key)
        mine = [None] if pieces is None else [p for p in pieces if p.owner == rank]
        own.update((key, piece) for piece in mine)
    keep_pieces(updater, own)


def keep_pieces(updater: Any, own: Mapping[Any, Piece | None]) -> None:
    """Of whole states that were loaded, keep these pieces; None is all of a key."""
    found = {
        key: state if own[key] is None else _cut(state, own[key])
        for key, state in updater.states.items()
        if key in own
    }
    updater.states = found
    updater.states_synced = dict.fromkeys(found, False)


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


def _cut(state: Any, piece: Any) -> Any:
    """A piece of each array of a state; the array itself where the piece is all of it."""
    return _mapped(
        state,
        lambda a: a if a.size == piece.size else a.reshape((-1,))[piece.start : piece.stop].copy(),
    )

"""How parameters are updated: by the store itself, or by updaters beside it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gnomon import kvstore as kv
from gnomon.base import DTypeError, ParamError, complaint
from gnomon.context import Context
from gnomon.ndarray.core.elsewhere import together

# Larger parameters are updated where they are, not on the store, which has one device.
LARGEST_ON_STORE = 1 << 24


def choose_store(kvstore: Any, num_device: int, arg_params: Mapping[str, Any]) -> tuple[Any, bool]:
    """The store for training (None where one device needs none), and whether it updates."""
    if kvstore is None:
        return None, False
    wanted = os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") != "0"
    if isinstance(kvstore, kv.KVStoreBase):
        return kvstore, wanted and kvstore.is_capable("optimizer")
    if not isinstance(kvstore, str):
        expected = "a KVStore, its name, or None"
        raise DTypeError(complaint("Module.init_optimizer", "kvstore", expected, repr(kvstore)))
    if num_device == 1 and not kv.joins_processes(kvstore):
        return None, False
    store = kv.create(kvstore)
    if kvstore == "local":
        largest = max((math.prod(param.shape) for param in arg_params.values()), default=0)
        wanted = wanted and largest <= LARGEST_ON_STORE
    return store, wanted and store.is_capable("optimizer")


def start_store(
    kvstore: Any,
    param_arrays: Sequence[Sequence[Any]],
    arg_params: Mapping[str, Any],
    param_names: Sequence[str],
    update_on_kvstore: bool,
) -> None:
    """Put the parameters into the store, first layer first."""
    for index, (name, arrays) in enumerate(zip(param_names, param_arrays, strict=True)):
        if not hasattr(kvstore, "init"):
            kvstore.broadcast(name, arg_params.get(name, arrays[0]), out=list(arrays))
            continue
        if name in arg_params:
            kvstore.init(name, arg_params[name])
        if update_on_kvstore or kvstore.num_workers > 1:
            kvstore.pull(name, out=arrays, priority=-index, ignore_sparse=False)


class Replica(NamedTuple):
    """What has gradients in one memory: the updater's indices, gradients and parameters."""

    indices: tuple[int, ...]
    grads: tuple[Any, ...]
    params: tuple[Any, ...]


class Trained(NamedTuple):
    """What has gradients: names, arrays for each device, and the same memory by memory.

    Parameter number `i` on device `k` of `n` has the updater's index `i * n + k`.
    """

    names: list[str]
    params: list[Sequence[Any]]
    grads: list[Sequence[Any]]
    replicas: list[Replica]


def trained(
    names: Sequence[str],
    numbers: Sequence[int],
    param_arrays: Sequence[Sequence[Any]],
    grad_arrays: Sequence[Sequence[Any]],
) -> Trained:
    """Those of the parameters, with their numbers, that have gradients."""
    rows = [
        row
        for row in zip(names, numbers, param_arrays, grad_arrays, strict=True)
        if row[3][0] is not None
    ]
    if not rows:
        return Trained([], [], [], [])
    found, positions, params, grads = (list(column) for column in zip(*rows, strict=True))
    count = len(params[0])
    replicas = [
        replica
        for device in range(count)
        for replica in _by_memory(
            [p * count + device for p in positions],
            [g[device] for g in grads],
            [p[device] for p in params],
        )
    ]
    return Trained(found, params, grads, replicas)


def _by_memory(
    indices: Sequence[int], grads: Sequence[Any], params: Sequence[Any]
) -> list[Replica]:
    """A replica for each memory that parameters are in: several where `group2ctxs` says so."""
    homes: dict[Context, list[tuple[int, Any, Any]]] = {}
    for row in zip(indices, grads, params, strict=True):
        ctx = row[2].context
        home = next((c for c in homes if together(c, ctx)), ctx)
        homes.setdefault(home, []).append(row)
    return [Replica(*zip(*rows, strict=True)) for rows in homes.values()]


def push(store: Any, keys: Sequence[Any], grads: Sequence[Any]) -> None:
    """Push gradients of layers in order.

    Those of the last layers, which are there first, leave first for other processes. A store of
    this process alone updates in the order of the layers: optimizers may count on it, as `Nadam`.
    """
    step = -1 if store.num_workers > 1 else 1
    store.push(keys[::step], grads[::step])


def update_on_store(store: Any, what: Trained) -> None:
    """Push all gradients to the store, which updates, and pull the parameters back."""
    _exchange(store, what, what.params)


def _exchange(store: Any, what: Trained, outs: Sequence[Sequence[Any]] | None = None) -> None:
    """Push all gradients, and pull into `outs`, or back into the gradients."""
    if not hasattr(store, "push"):
        kv.pushpull_each(store, range(len(what.names)), what.names, what.grads, outs)
        return
    push(store, what.names, what.grads)
    store.pull(what.names, out=what.grads if outs is None else outs, ignore_sparse=False)


def update_beside_store(store: Any, updater: Any, what: Trained, join: Any = None) -> None:
    """Sum gradients over the devices through the store, if any, and update on each device.

    `join` may take the update over where there is one device and no store, as for
    `Optimizer.update_all`.
    """
    if store is not None:
        _exchange(store, what)
        join = None
    for replica in what.replicas:
        updater(*replica, join if len(what.replicas) == 1 else None)


def update_params_on_store(
    param_arrays: Sequence[Sequence[Any]],
    grad_arrays: Sequence[Sequence[Any]],
    kvstore: Any,
    param_names: Sequence[str],
) -> None:
    """`update_on_store` of parameters that are given one by one: `mx.model` has it for modules of
    programs."""
    rows = range(len(param_arrays))
    update_on_store(kvstore, trained(param_names, rows, param_arrays, grad_arrays))


def update_params(
    param_arrays: Sequence[Sequence[Any]],
    grad_arrays: Sequence[Sequence[Any]],
    updater: Any,
    num_device: int,
    kvstore: Any = None,
    param_names: Sequence[str] | None = None,
) -> None:
    """`update_beside_store` of parameters that are given one by one, each on `num_device` devices.

    `updater` may be any function of indices, gradients and parameters; `mx.model` has it for
    modules of programs.

    Raises:
        ParamError: the parameters are on another number of devices.
    """
    counts = {len(arrays) for arrays in param_arrays}
    if counts - {num_device}:
        expected = f"arrays on {num_device} devices for each parameter"
        raise ParamError(complaint("update_params", "param_arrays", expected, sorted(counts)))
    rows = range(len(param_arrays))
    names = [str(k) for k in rows] if param_names is None else param_names
    what = trained(names, rows, param_arrays, grad_arrays)
    update_beside_store(
        kvstore, lambda indices, grads, params, _: updater(indices, grads, params), what
    )

"""The store of one process: sums over its devices, and updates weights if told how.

State: `_stored` maps a key to its array, which is on the device it was first seen on. Updaters get
it; no other code does, only copies. `push` sums the values of a key and gives the sum to the
updater, or makes it the new content where there is none; `pull` copies the content. However many
keys a call has, its sums are one operation of the engine, and so are its copies; they return at
once. What a pull writes is ordered after the pushes before it by the arrays' variables, and
`priority` says which goes first of what is ready. Everything is checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, UnknownNameError, complaint
from gnomon.context import Context, cpu
from gnomon.ground.files import naming, read_bytes, replacing
from gnomon.kvstore.base import STORES, KVStoreBase
from gnomon.kvstore.compression import Compression
from gnomon.kvstore.transfer import add_up
from gnomon.ndarray.core.elsewhere import together
from gnomon.optimizer import Optimizer, Updater, get_updater

Key = int | str
UpdateFunction = Callable[[Key, Any, Any], None]
KINDS = (
    "local",
    "device",
    "local_update_cpu",
    "local_allreduce_cpu",
    "local_allreduce_device",
)
ON_DEVICES = ("device", "local_allreduce_device")


class KVStore(KVStoreBase):
    """Arrays by key (int or str): `init` once, `push` values to be summed, `pull` copies.

    Keys may be lists, with a list of values; a value may be a list of arrays, one per device.

    >>> import gnomon as mx
    >>> store, out = mx.kv.create("local"), mx.nd.zeros((2,))
    >>> store.init(3, mx.nd.ones((2,)))
    >>> store.push(3, [mx.nd.ones((2,)), mx.nd.ones((2,)) * 4])
    >>> store.pull(3, out=out)
    >>> out.asnumpy().tolist()
    [5.0, 5.0]
    """

    def __init__(self, kind: str = "local") -> None:
        self._kind = kind
        self._stored: dict[Key, Any] = {}
        self._updater: UpdateFunction | None = None
        self._compression: Compression | None = None

    @staticmethod
    def is_capable(capability: str) -> bool:
        KVStoreBase.is_capable(capability)
        return True

    @property
    def type(self) -> str:
        return self._kind

    @property
    def rank(self) -> int:
        return 0

    @property
    def num_workers(self) -> int:
        return 1

    def barrier(self) -> None:
        """Wait for all workers: this process is the only one."""

    _barrier = barrier

    def num_dead_node(self, node_id: int = 0, timeout: int = 60) -> int:
        """How many workers do not answer: none where there are no others."""
        return 0

    def send_command_to_servers(self, head: int, body: str | bytes) -> None:
        """Give a command to the servers: there are none in one process."""
        command_bytes(head, body)

    _send_command_to_servers = send_command_to_servers

    def init(self, key: Any, value: Any) -> None:
        """Store copies of the values under new keys; ParamError where a key exists already."""
        pairs = [
            (each, array)
            for each, arrays in grouped("init", key, value).items()
            for array in arrays
        ]
        seen = set(self._stored)
        for each, _ in pairs:
            if each in seen:
                raise ParamError(complaint("KVStore.init", "key", "a new key", repr(each)))
            seen.add(each)
        self._stored.update({each: self._kept(array) for each, array in pairs})

    def _kept(self, array: Any) -> Any:
        """A copy; of a GPU's array one on the processor, unless the store sums on devices."""
        if self._kind in ON_DEVICES or together(array.context, cpu()):
            return array.copy()
        return array.as_in_context(cpu())

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum each key's values; update the stored array by the sum, or replace it."""
        groups = {k: v for k, v in grouped("push", key, value).items() if v}
        self._check("push", groups, same_dtype=True)
        if self._compression is not None:
            groups = self._compressed(self._compression, groups)
        if self._updater is None:
            add_up([(self._stored[k], values) for k, values in groups.items()], priority)
            return
        self._apply(self._sums(groups, priority))

    def _apply(self, totals: dict[Key, Any]) -> None:
        """Have the updater change the stored arrays by the sum of each key."""
        if isinstance(self._updater, Updater):
            self._updater(list(totals), list(totals.values()), [self._stored[k] for k in totals])
            return
        for k, total in totals.items():
            self._updater(k, total, self._stored[k])

    def _compressed(
        self, compression: Compression, groups: dict[Key, list[Any]]
    ) -> dict[Key, list[Any]]:
        """The values quantized, each device's with a residual of its own."""
        return {
            k: [
                compression.quantized((k, n), v) if compression.applies_to(k, v) else v
                for n, v in enumerate(values)
            ]
            for k, values in groups.items()
        }

    def _sums(self, groups: dict[Key, list[Any]], priority: int) -> dict[Key, Any]:
        """The sum of each key's values beside what is stored; a single value there itself."""
        places = {k: self._stored[k].context for k in groups}
        ready = {
            k: len(values) == 1 and together(values[0].context, places[k])
            for k, values in groups.items()
        }
        totals = {
            k: values[0] if ready[k] else _like(values, places[k]) for k, values in groups.items()
        }
        jobs = [(totals[k], values) for k, values in groups.items() if not ready[k]]
        add_up(jobs, priority)
        return totals

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Copy the stored arrays into `out`: an array per key, or a list of arrays per key.

        Row-sparse `out` is left as it is, for `row_sparse_pull`, unless `ignore_sparse` is off.
        """
        if out is None:
            raise ParamError(complaint("KVStore.pull", "out", "arrays to copy into", out))
        groups = grouped("pull", key, out)
        self._check("pull", groups, same_dtype=False)
        wanted = {
            k: [a for a in arrays if not (ignore_sparse and a.stype == "row_sparse")]
            for k, arrays in groups.items()
        }
        self._copy({k: arrays for k, arrays in wanted.items() if arrays}, priority)

    def _copy(self, wanted: dict[Key, list[Any]], priority: int) -> None:
        """Copy stored arrays into those that are wanted of each key."""
        stored = self._stored
        add_up([(a, [stored[k]]) for k, arrays in wanted.items() for a in arrays], priority)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, ignore_sparse=False)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        self.init(key, value)
        self.pull(key, out, priority, ignore_sparse=False)

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Copy chosen rows of the stored arrays into row-sparse `out`.

        `row_ids` are the numbers of rows, an array for each of `out` or one for all of a key.

        Raises:
            ParamError: `out` or what is stored is not row-sparse, or there are no `row_ids`.
        """
        groups = grouped("row_sparse_pull", key, out)
        self._check("row_sparse_pull", groups, same_dtype=False)
        rows = grouped("row_sparse_pull", key, row_ids)
        for each, arrays in groups.items():
            numbers = rows[each] * len(arrays) if len(rows[each]) == 1 else rows[each]
            if len(numbers) != len(arrays):
                expected = f"one array, or {len(arrays)}"
                raise ParamError(
                    complaint("KVStore.row_sparse_pull", "row_ids", expected, len(numbers))
                )
            stored = self._stored[each]
            for argument, array in (("key", stored), *(("out", array) for array in arrays)):
                if array.stype != "row_sparse":
                    expected, where = "a row_sparse array", "KVStore.row_sparse_pull"
                    raise ParamError(complaint(where, argument, expected, array.stype))
            for array, wanted in zip(arrays, numbers, strict=True):
                self._pull_rows(each, array, np.unique(wanted.asnumpy().astype(np.int64)))

    def _pull_rows(self, key: Key, out: Any, rows: Any) -> None:
        """Copy the rows of these numbers."""
        stored = self._stored[key]
        out[:] = nd.sparse.retain(stored, nd.array(rows, stored.context, "int64"))

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Quantize gradients to one or two bits an element, with error feedback.

        `compression_params` has the `type`, '1bit' or '2bit', and may have a `threshold`. What a
        gradient loses is added to the next one of the same key and device.

        Raises:
            ParamError: another type or threshold.
            GnomonError: the store sums on the processor, as `local` does, and sends nothing.
        """
        if "device" not in self._kind and "dist" not in self._kind:
            raise GnomonError(
                f"kvstore {self.type!r} sends nothing that could be compressed; 'device' and the "
                "kinds that join processes do"
            )
        self._compression = Compression(compression_params)

    def set_updater(self, updater: UpdateFunction) -> None:
        """Let `updater(key, sum, stored)` change the stored array at every push."""
        self._updater = updater

    _set_updater = set_updater

    def set_optimizer(self, optimizer: Any) -> None:
        """Update the stored arrays by `optimizer` at every push."""
        if not isinstance(optimizer, Optimizer):
            got = type(optimizer).__name__
            raise ParamError(complaint("KVStore.set_optimizer", "optimizer", "an Optimizer", got))
        self._updater = get_updater(optimizer)

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        states = self._states("save").get_states(dump_optimizer)
        with replacing("KVStore.save_optimizer_states", fname) as stream:
            stream.write(states)

    def load_optimizer_states(self, fname: str) -> None:
        updater = self._states("load")
        states = read_bytes("KVStore.load_optimizer_states", fname)
        with naming(fname):
            updater.set_states(states)

    def _states(self, verb: str) -> Any:
        if not hasattr(self._updater, "get_states"):
            raise GnomonError(
                f"KVStore.{verb}_optimizer_states: there is no optimizer; call set_optimizer first"
            )
        return self._updater

    def _check(self, where: str, groups: dict[Key, list[Any]], same_dtype: bool) -> None:
        stored = self._stored
        for key, arrays in groups.items():
            if key not in stored:
                known = ", ".join(sorted(map(repr, stored))[:8]) or "none so far"
                expected = f"one of those in init, {known}"
                raise UnknownNameError(complaint(f"KVStore.{where}", "key", expected, repr(key)))
            layout = stored[key]._layout
            for array in arrays:
                if array._layout is not layout:
                    self._check_array(where, key, array, same_dtype)

    def _check_array(self, where: str, key: Key, array: Any, same_dtype: bool) -> None:
        stored = self._stored[key]
        argument = f"value of key {key!r}" if where == "push" else f"out of key {key!r}"
        if tuple(array.shape) != tuple(stored.shape):
            raise ShapeError(complaint(f"KVStore.{where}", argument, stored.shape, array.shape))
        if same_dtype and array.dtype != stored.dtype:
            raise DTypeError(complaint(f"KVStore.{where}", argument, stored.dtype, array.dtype))


def _like(values: list[Any], ctx: Context) -> Any:
    """An array for the sum of several: row-sparse where all of them are."""
    first = values[0]
    alike = all(x.stype == "row_sparse" for x in values)
    return nd.zeros(first.shape, ctx, first.dtype, "row_sparse" if alike else "default")


def command_bytes(head: Any, body: Any) -> bytes:
    """The bytes of a command's body; ParamError unless it and the head are what they should be."""
    where = "KVStore.send_command_to_servers"
    if not isinstance(head, int):
        raise ParamError(complaint(where, "head", "an int", repr(head)))
    if not isinstance(body, (bytes, str)):
        raise ParamError(complaint(where, "body", "a string", type(body).__name__))
    if isinstance(body, bytes):
        return body
    return body.encode("latin1" if head == 0 else "utf-8")  # of a pickle: as it was decoded


def grouped(where: str, keys: Any, values: Any) -> dict[Key, list[Any]]:
    """Each key with all arrays that belong to it, in order; the three ways of writing them.

    Raises:
        ParamError: keys of another type, or not as many values as keys.
        DTypeError: a value that is no NDArray.
    """
    where = f"KVStore.{where}"
    if not isinstance(keys, (list, tuple)):
        keys, values = [keys], [values]
    if not isinstance(values, (list, tuple)) or len(values) != len(keys):
        got = len(values) if isinstance(values, (list, tuple)) else type(values).__name__
        raise ParamError(complaint(where, "values", f"{len(keys)} values, one per key", got))
    groups: dict[Key, list[Any]] = {}
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, (int, str)) or isinstance(key, bool):
            raise ParamError(complaint(where, "key", "an int or a string", type(key).__name__))
        arrays = value if isinstance(value, (list, tuple)) else (value,)
        for array in arrays:
            if not isinstance(array, nd.NDArray):
                got = type(array).__name__
                raise DTypeError(complaint(where, f"value of key {key!r}", "an NDArray", got))
        groups[key] = [*groups[key], *arrays] if key in groups else [*arrays]
    return groups


for _kind in KINDS:
    STORES.register(_kind, KVStore)

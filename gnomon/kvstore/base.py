"""What every key-value store does, and how one is chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.base import DTypeError, GnomonError, ParamError, check_kind, complaint, nearest
from gnomon.registry import Registry, class_name

STORES: Registry[Any] = Registry("kvstore", ignore_case=True)


class KVStoreBase:
    """Base of stores: what training loops call, whatever is behind it.

    Subclasses registered by `KVStoreBase.register` are found by `create` under their own name. They
    need what of this is called; what they lack is an error then. `Trainer` and `Module` call
    `broadcast` and `pushpull` with one key and its arrays on all contexts.
    """

    OPTIMIZER = "optimizer"

    @staticmethod
    def register(klass: type[KVStoreBase]) -> type[KVStoreBase]:
        """Make a store class known to `create` by its lower-case name; a decorator."""
        name = class_name("KVStoreBase.register", klass)
        STORES.register(name, lambda _: klass(), replace=True)
        return klass

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store can do `capability`: `optimizer` is to update weights itself."""
        if capability.lower() != KVStoreBase.OPTIMIZER:
            raise ParamError(
                complaint("KVStore.is_capable", "capability", "'optimizer'", repr(capability))
            )
        return False

    @property
    def type(self) -> str:
        """The name the store was created by."""
        raise self._lacks("type")

    @property
    def rank(self) -> int:
        """This worker's number, from 0."""
        raise self._lacks("rank")

    @property
    def num_workers(self) -> int:
        """How many workers share the store."""
        raise self._lacks("num_workers")

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Store `value` under the new `key`, and copy it into `out`."""
        raise self._lacks("broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Push `value`, then pull into `out`, or into `value` where `out` is None."""
        raise self._lacks("pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Update the stored arrays by `optimizer` at every push."""
        raise self._updates_none()

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file."""
        raise self._updates_none()

    def load_optimizer_states(self, fname: str) -> None:
        """Read the optimizer's states from a file."""
        raise self._updates_none()

    def _updates_none(self) -> GnomonError:
        return GnomonError(f"{type(self).__name__} does not update weights")

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} must define {name}")


def pushpull_each(
    store: Any,
    numbers: Sequence[int],
    keys: Sequence[Any],
    values: Sequence[Any],
    outs: Sequence[Any] | None = None,
) -> None:
    """`pushpull` key by key, as stores of users are called: the lowest number is most urgent."""
    for k, (number, key) in enumerate(zip(numbers, keys, strict=True)):
        out = None if outs is None else outs[k]
        store.pushpull(key, values[k], out=out, priority=-number)


def joins_processes(name: str) -> bool:
    """Whether a store of that name joins processes, and is of use with one device in each.

    >>> [joins_processes(name) for name in ("local", "device", "dist_sync", "horovod")]
    [False, False, True, True]
    """
    check_kind("kvstore.create", "name", name, str, "a string")
    kind = name.lower()
    return "dist" in kind or kind in ("p3", "horovod", "byteps")


def create(name: str = "local") -> Any:
    """A store by its kind: `local` and `device` sum over the devices of this process.

    `dist_sync`, `dist_device_sync`, `dist_async` and `horovod` join processes by MPI.

    >>> store = create("local")
    >>> store.type, store.rank, store.num_workers
    ('local', 0, 1)

    Raises:
        DTypeError: `name` is no string.
        ParamError: there is no such kind.
        GnomonError: the kind needs what is not installed.
    """
    if not isinstance(name, str):
        raise DTypeError(complaint("kvstore.create", "name", "a string", type(name).__name__))
    kind = name.lower()
    if kind in STORES:
        return STORES.get(kind)(kind)
    if kind == "nccl":
        raise GnomonError(
            "kvstore.create: 'nccl' joins GPUs by NVIDIA's library, which this version does not "
            "call; 'local' and 'device' join the devices of one process"
        )
    expected = "one of " + ", ".join(STORES.names())
    raise ParamError(
        complaint("kvstore.create", "name", expected, repr(name) + nearest(kind, STORES.names()))
    )

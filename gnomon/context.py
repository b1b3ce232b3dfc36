"""Where data lives and work runs: a device's type and number.

State: each thread has a stack of contexts: `cpu(0)`, then those entered by `with`. Its top is the
current one, which `Context.default_ctx = ...` replaces until the `with` ends. A context is a value
that arrays share: its type and number stay. It never touches a device: naming `gpu(0)` on a machine
without one is no error, allocating there is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from operator import index
from typing import Any, ClassVar

from gnomon.base import (
    ArgumentError,
    Later,
    ParamError,
    UnknownNameError,
    check_kind,
    complaint,
    nearest,
    shown,
)
from gnomon.ground.record import Frozen, put


class _Entered(threading.local):
    """The contexts this thread has entered, the current one last."""

    def __init__(self) -> None:
        self.stack: list[Context] = [cpu(0)]

    @property
    def value(self) -> Context:
        """The current one."""
        return self.stack[-1]

    @value.setter
    def value(self, ctx: Context) -> None:
        check_kind("Context", "default_ctx", ctx, Context, "a Context")
        self.stack[-1] = ctx


class _Contexts(type):
    """The class of `Context`, whose `default_ctx` programs read and set."""

    default_ctx = property(
        lambda cls: cls._default_ctx.value,
        lambda cls, ctx: setattr(cls._default_ctx, "value", ctx),
        doc="The current context of this thread.",
    )


class Context(Frozen, metaclass=_Contexts):
    """A device: `device_type` is 'cpu', 'gpu', 'cpu_pinned', 'cpu_shared', or another context.

    >>> with gpu(1):
    ...     current_context()
    gpu(1)
    >>> current_context() == cpu() and Context("cpu", 0) == cpu(0)
    True

    Raises:
        UnknownNameError: no such device type.
        ParamError: a `device_id` below 0.
    """

    __slots__ = ("device_id", "device_typeid")

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {name: n for n, name in devtype2str.items()}
    _default_ctx: ClassVar[_Entered]

    device_typeid: int
    device_id: int

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if not isinstance(device_type, str) and isinstance(device_type, Context):
            put(self, "device_typeid", device_type.device_typeid)
            put(self, "device_id", device_type.device_id)
            return
        if not isinstance(device_type, str) or device_type not in self.devstr2type:
            known = "one of " + ", ".join(self.devstr2type)
            got = repr(device_type) + nearest(str(device_type), self.devstr2type)
            raise UnknownNameError(complaint("Context", "device_type", known, got))
        number = index(device_id) if hasattr(device_id, "__index__") else -1
        if number < 0:
            expected = "an integer of at least 0"
            raise ParamError(complaint("Context", "device_id", expected, repr(device_id)))
        put(self, "device_typeid", self.devstr2type[device_type])
        put(self, "device_id", number)

    def __setattr__(self, name: str, value: object) -> None:
        if name in Context.__slots__:
            super().__setattr__(name, value)  # refuses
        put(self, name, value)  # where a program's own class has others

    @property
    def default_ctx(self) -> Context:
        """The current context of this thread."""
        return current_context()

    @property
    def device_type(self) -> str:
        """The name of the device's type, 'cpu' or 'gpu' for most."""
        return self.devtype2str[self.device_typeid]

    def empty_cache(self) -> None:
        """Give memory of this device that lies idle back to the system.

        Memory that arrays have let go stays for later ones until then; it is the same for all
        kinds of memory of a processor.

        Raises:
            DeviceError: there is no such GPU.
        """
        if release is not None:
            release(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Context and not isinstance(other, Context):
            return NotImplemented
        return (self.device_typeid, self.device_id) == (other.device_typeid, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.device_type, self.device_id)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The state of a pickle that MXNet wrote."""
        put(self, "device_typeid", state["device_typeid"])
        put(self, "device_id", state["device_id"])

    def __enter__(self) -> Context:
        self._default_ctx.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._default_ctx.stack.pop()


def cpu(device_id: int = 0) -> Context:
    """The processor; every `device_id` is the same memory."""
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """The graphics processor number `device_id`."""
    return Context("gpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Processor memory that a GPU copies from without a detour."""
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id: int = 0) -> Context:
    """Processor memory that several processes share."""
    return Context("cpu_shared", device_id)


Context._default_ctx = _Entered()

release: Callable[[Context], int] | None = None  # gives idle memory back; entered by its pool


def current_context() -> Context:
    """The context that new data goes to in this thread: the innermost `with`, or `cpu(0)`."""
    return Context._default_ctx.stack[-1]


_gpus: Any = Later("gnomon.runtime.devices.cuda.gpu")
_pools: Any = Later("gnomon.runtime.devices.pool")


def num_gpus() -> int:
    """How many GPUs can be computed on: those that NVIDIA's driver or the simulated one shows."""
    count: int = _gpus.count()
    return count


def present(ctx: Context) -> Context:
    """A context, or `cpu(0)` where it is a GPU that is not there.

    >>> present(cpu(1)), present(gpu(1 << 20))
    (cpu(1), cpu(0))
    """
    missing = ctx.device_type == "gpu" and ctx.device_id >= num_gpus()
    return cpu(0) if missing else ctx


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total memory of a GPU, in bytes; no more than the setting `memory_limit` says.

    Raises:
        DeviceError: there is no such GPU.
    """
    free, total = _pools.memory(gpu(device_id))
    return free, total


def contexts(where: str, argument: str, ctx: Any) -> list[Context]:
    """One context, several, or the current one, as a list.

    Raises:
        TypeError: something else.
    """
    if ctx is None or isinstance(ctx, Context):
        return [ctx or current_context()]
    found = list(ctx) if isinstance(ctx, Iterable) else [ctx]
    if not all(isinstance(each, Context) for each in found):
        expected = "a context or a list of them"
        raise ArgumentError(complaint(where, argument, expected, shown(ctx)))
    return found

"""What the runtime asks of a device, and the devices by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from gnomon.base import DeviceError, Later, complaint
from gnomon.context import Context
from gnomon.runtime.devices import cpu, null

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda import gpu
else:  # a process without GPUs loads nothing of them
    gpu = Later("gnomon.runtime.devices.cuda.gpu")

_SAME_MEMORY = {"cpu_pinned": "cpu", "cpu_shared": "cpu"}


class Device(Protocol):
    """Memory and a place for kernels to run; a device's module has one as `DEVICE`."""

    @property
    def name(self) -> str:
        """What `find` calls it."""

    @property
    def host(self) -> bool:
        """Whether this process reads and writes its memory."""

    @property
    def runs(self) -> bool:
        """Whether kernels run there."""

    def allocate(self, nbytes: int) -> int:
        """The address of a new block of at least `nbytes`, aligned to 64 bytes; MemoryError."""

    def release(self, address: int, nbytes: int) -> None:
        """Gives a block of `allocate` back, with the size that was asked for."""

    def clear(self, address: int, nbytes: int, is_new: bool) -> None:
        """Makes bytes zero; of a block that `allocate` has just given they may be so already."""

    def copy(self, dest: int, source: int, nbytes: int) -> None:
        """Starts a copy between two blocks of this device."""

    def synchronise(self) -> None:
        """Returns when all work given to the device is done."""

    def queue(self) -> Any:
        """A new queue of work; None where work is done when it is given."""


def choose(device: str | Context) -> None:
    """Which GPU "gpu" means in this thread; DeviceError where there is no such device."""
    found = find(device)
    if found.runs and not found.host:
        gpu.choose(found)


def find(device: str | Context) -> Device:
    """The device that a name or a context means; "gpu" is the one that this thread has chosen.

    >>> find("cpu").name
    'cpu'

    Raises:
        DeviceError: there is no such device.
    """
    try:
        return _known.get(device) or _find(device)
    except TypeError:  # not hashable
        raise _none(f"a {type(device).__name__}") from None


def _find(device: str | Context) -> Device:
    if isinstance(device, Context):
        name = _SAME_MEMORY.get(device.device_type, device.device_type)
        if name == "gpu":
            return gpu.get(device.device_id)
    else:
        match = re.fullmatch(r"gpu(?:\((\d+)\))?", device) if isinstance(device, str) else None
        if match is not None:
            return gpu.get(None if match[1] is None else int(match[1]))
        name = _SAME_MEMORY.get(device, device)
    found = _known.get(name)
    if found is None:
        raise _none(repr(device))
    return _known.setdefault(device, found)


def _none(got: str) -> DeviceError:
    names = [name for name in _known if isinstance(name, str)]
    expected = f"one of {', '.join(dict.fromkeys(['cpu', 'null', 'gpu', *names]))}"
    return DeviceError(complaint("device", "name", expected, got))


_known: dict[str | Context, Device] = {device.name: device for device in (cpu.DEVICE, null.DEVICE)}

"""What the runtime asks of a device, and the devices by name."""

from __future__ import annotations

import functools
from typing import Protocol

from gnomon.base import DeviceError, complaint
from gnomon.context import Context
from gnomon.runtime.compiler.jit import HostInfo
from gnomon.runtime.devices import cpu, null

_SAME_MEMORY = {"cpu_pinned": "cpu", "cpu_shared": "cpu"}


class Device(Protocol):
    """Memory and a place for kernels to run; a device's module has one as `DEVICE`."""

    @property
    def name(self) -> str:
        """What `find` calls it."""

    @property
    def target(self) -> HostInfo | None:
        """The processor that kernels are compiled for; None: this device runs none."""

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


def find(device: str | Context) -> Device:
    """The device that a name or a context means.

    >>> find("cpu").name
    'cpu'

    Raises:
        DeviceError: this version of gnomon has no such device.
    """
    try:
        return _find(device)
    except TypeError:  # not hashable
        expected, got = f"one of {', '.join(_DEVICES)}", f"a {type(device).__name__}"
        raise DeviceError(complaint("device", "name", expected, got)) from None


@functools.cache
def _find(device: str | Context) -> Device:
    name = device.device_type if isinstance(device, Context) else device
    found = _DEVICES.get(_SAME_MEMORY.get(name, name))
    if name == "gpu":
        raise DeviceError(
            f"device {device!r}: this version of gnomon has no GPU back end; use cpu()"
        )
    if found is None:
        expected = f"one of {', '.join(_DEVICES)}"
        raise DeviceError(complaint("device", "name", expected, repr(name)))
    return found


_DEVICES: dict[str, Device] = {device.name: device for device in (cpu.DEVICE, null.DEVICE)}

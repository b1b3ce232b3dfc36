"""Stream: the order of work on a device; on a processor each statement ends before the next."""

from __future__ import annotations

from gnomon.expr.arguments import explained
from gnomon.record import Frozen, put
from gnomon.runtime.devices import device as devices

cpu, gpu = "cpu", "gpu"  # what tensors, streams and the functions below take for a device


class Stream(Frozen):
    """A queue of work on a device.

    >>> stream = new_stream()
    >>> stream.wait()
    >>> stream.check_idle()
    True
    """

    __slots__ = ("device",)
    device: str

    def __init__(self, device: str = "cpu") -> None:
        put(self, "device", devices.find(device).name)

    def wait(self) -> None:
        """Return when all work given so far is done."""
        devices.find(self.device).synchronise()

    def check_idle(self) -> bool:
        """Whether no work is left; the processor's statements end where they stand."""
        self.wait()
        return True


def new_stream(device: str = "cpu") -> Stream:
    """A new queue of work on `device`.

    Raises:
        DeviceError: there is no such device.
    """
    return Stream(device)


@explained
def delete_stream(stream: Stream) -> None:
    """Wait for the stream's work; it must not be used any more."""
    stream.wait()


def init_tensor_engine(device: str = "cpu") -> None:
    """Make `device` ready; needed before its first use on some machines, and harmless."""
    devices.find(device)


def shutdown_tensor_engine(device: str = "cpu") -> None:
    """Wait for the work of `device`."""
    devices.find(device).synchronise()


def set_device(device: str) -> None:
    """Choose the device of what follows; raises DeviceError where there is no such device."""
    devices.find(device)

"""Stream: the order of work on a device; on a processor each statement ends before the next.

On a GPU statements are given to a queue and go on behind the program. Work on the same memory is
done in the order of the program, whichever streams it is given to, and reading data waits for it:
streams let work on different memory go on at once, and never change a result.
"""

from __future__ import annotations

from typing import Any

from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.ground.record import Frozen, put
from gnomon.runtime.devices import device as devices


class DeviceType(str):
    """What tensors, streams and the functions below take for a device; called, one of its kind.

    >>> gpu, gpu(1), cpu(0)
    ('gpu', 'gpu(1)', 'cpu')
    """

    __slots__ = ()

    def __call__(self, device_id: int = 0) -> str:
        """The device of this number; all processors are one."""
        number = whole(f"{self}", "device_id", device_id)
        return str(self) if self == "cpu" else f"{self}({number})"


cpu, gpu = DeviceType("cpu"), DeviceType("gpu")


class Stream(Frozen):
    """A queue of work on a device.

    >>> stream = new_stream()
    >>> stream.wait()
    >>> stream.check_idle()
    True
    """

    __slots__ = ("device", "queue")
    device: str
    queue: Any  # of a GPU's; None on a processor

    def __init__(self, device: str = "cpu") -> None:
        found = devices.find(device)
        put(self, "device", found.name)
        put(self, "queue", found.queue())

    def wait(self) -> None:
        """Return when all work given so far is done.

        Raises:
            DeviceError: work on a GPU failed.
        """
        if self.queue is None:
            devices.find(self.device).synchronise()
        else:
            self.queue.wait()

    def check_idle(self) -> bool:
        """Whether no work is left; the processor's statements end where they stand."""
        return self.queue is None or self.queue.is_idle()

    def __reduce__(self) -> Any:
        return Stream, (self.device,)


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
    """Choose which GPU `gpu` means in this thread; DeviceError where there is no such device."""
    devices.choose(device)

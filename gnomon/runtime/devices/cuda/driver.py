"""The calls of CUDA's driver that gnomon makes: the surface that the real and the simulated share.

Handles and addresses are integers. Every call names itself in the `DeviceError` that it raises;
memory that is not there is a `MemoryError`, for the pool to complain about. A launch takes its
arguments as 8-byte words, by value where its entry does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from gnomon import config
from gnomon.base import DeviceError, Later
from gnomon.ground.lock import first_use
from gnomon.ground.record import record

if TYPE_CHECKING:
    from gnomon.plan.gpu.grid import Grid
    from gnomon.runtime.devices.cuda import library, simulated
    from gnomon.runtime.devices.cuda.blas import Blas
    from gnomon.runtime.devices.cuda.dnn import Dnn
else:
    library = Later("gnomon.runtime.devices.cuda.library")
    simulated = Later("gnomon.runtime.devices.cuda.simulated")


@record()
class Properties:
    """What a GPU is: its architecture as `sm_90`, its processors, the bytes of its memory."""

    name: str
    arch: str
    processors: int
    memory: int


@record()
class Image:
    """What a module is made of: the PTX for an architecture, when it is asked for, and the program
    that it is written from; the entries by their names."""

    program: Grid
    names: tuple[str, ...]
    by_value: bool
    ptx: Callable[[str], str]


class Driver(Protocol):
    """What a process asks of its GPUs; calls work on the context entered by the calling thread."""

    def count(self) -> int:
        """How many GPUs there are."""

    def properties(self, ordinal: int) -> Properties:
        """What GPU number `ordinal` is."""

    def context(self, ordinal: int) -> int:
        """The primary context of a GPU, retained."""

    def enter(self, context: int) -> None:
        """Later calls of this thread are meant for this context."""

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all there are."""

    def allocate(self, nbytes: int, stream: int) -> int:
        """A block's address, valid from this place of the stream on; MemoryError."""

    def free(self, address: int, stream: int) -> None:
        """Gives a block back when the stream comes to it."""

    def owner(self, address: int) -> int:
        """The number of the GPU whose memory lies there; DeviceError where it is no GPU's."""

    def copy(self, dest: int, source: int, nbytes: int, stream: int) -> None:
        """Copies when the stream comes to it, between any memories.

        Pageable memory of the processor is read before the call returns; it is written before the
        call returns as well.
        """

    def reach(self, ordinal: int, other: int) -> bool:
        """Have one GPU reach the memory of another; whether it can."""

    def copy_peer(
        self, ends: tuple[int, int], gpus: tuple[int, int], nbytes: int, stream: int
    ) -> None:
        """Copies to the first of two addresses from the second, each in the memory of its GPU.

        It is done when the stream comes to it, which is one of the first GPU.
        """

    def fill(self, dest: int, byte: int, nbytes: int, stream: int) -> None:
        """Fills bytes when the stream comes to it."""

    def create_stream(self) -> int:
        """A new queue of work of the current context."""

    def destroy_stream(self, stream: int) -> None:
        """Forgets a stream; its work is still done."""

    def wait_stream(self, stream: int) -> None:
        """Returns when all work of a stream is done."""

    def is_idle(self, stream: int) -> bool:
        """Whether all work of a stream is done."""

    def create_event(self) -> int:
        """A new mark that streams can be told to wait for."""

    def destroy_event(self, event: int) -> None:
        """Forgets an event."""

    def record(self, event: int, stream: int) -> None:
        """The event means all that the stream was given so far."""

    def wait_event(self, stream: int, event: int) -> None:
        """What the stream is given from now on waits for what the event means now."""

    def load(self, image: Image) -> int:
        """The module of an image."""

    def function(self, module: int, name: str) -> int:
        """An entry of a module."""

    def launch(
        self, function: int, shape: tuple[int, int, int], words: Sequence[int], stream: int
    ) -> None:
        """Runs an entry in `shape` blocks of threads x and y when the stream comes to it."""

    def begin_capture(self, stream: int) -> None:
        """What this thread gives the stream from now on is recorded, not done.

        Until the end nothing may wait for the stream, take memory or load a module.
        """

    def end_capture(self, stream: int) -> int:
        """What was recorded, as a graph ready to be launched; DeviceError where something that
        cannot be recorded came between."""

    def abandon_capture(self, stream: int) -> None:
        """Forgets what was recorded, if anything is; the stream takes work again."""

    def launch_graph(self, graph: int, stream: int) -> None:
        """Does all of a graph's work when the stream comes to it, and behind its launch before."""

    def destroy_graph(self, graph: int) -> None:
        """Forgets a graph; launches under way are still done."""

    def blas(self) -> Blas | None:
        """The library of matrix products; None where it is not installed."""

    def dnn(self) -> Dnn | None:
        """The library of convolutions and poolings; None where it is not installed."""


_found: dict[str, Driver] = {}


def find() -> Driver | None:
    """The driver that the setting `gpu` asks for; None where there is none, or none is wanted."""
    wanted = config.get("gpu")
    return None if wanted == "off" else _found.get(wanted) or _make(wanted)


def _make(wanted: str) -> Driver | None:
    with first_use:
        made = _found.get(wanted)
        if made is None:
            made = simulated.Simulated() if wanted == "simulated" else library.load()
        if made is not None:
            _found[wanted] = made
        return made


def is_begun() -> bool:
    """Whether the process has a driver, be it to count GPUs: a forked child cannot use that."""
    return bool(_found)


def needed(where: str) -> Driver:
    """The driver; DeviceError where there is none."""
    driver = find()
    if driver is None:
        off = config.get("gpu") == "off"
        tried = "GNOMON_GPU=nvidia uses NVIDIA's, on which nothing has run yet"
        why = f"the setting `gpu` is off ({tried})" if off else library.why()
        raise DeviceError(f"{where}: no GPU can be used: {why}; use cpu()")
    return driver

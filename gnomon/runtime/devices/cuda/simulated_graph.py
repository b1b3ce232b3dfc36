"""CUDA graphs simulated: what a stream was given while it was captured is done at each launch.

A launch gives its stream all of that work, in the order of the capture, so other streams may come
in between as they may with work that is given piece by piece, and races are found as there. It
comes behind the graph's launch before, on whichever stream that was.

While a stream is captured it takes kernels, libraries' work, fills and copies between GPUs'
memories. All else is refused, and ends the capture: waiting for the stream, launches of graphs,
and, by the thread that captures, modules. What the real driver would make a part
of the graph, and no program here means, is refused as well: events, taking and freeing memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gnomon.base import DeviceError
from gnomon.ground.record import record
from gnomon.runtime.devices.cuda.simulated_memory import Work
from gnomon.runtime.devices.cuda.simulated_stream import Event

if TYPE_CHECKING:
    from gnomon.runtime.devices.cuda.simulated import Simulated


class Piece(NamedTuple):
    """A piece of work of a graph."""

    name: str
    run: Callable[[Work], None]


@record(frozen=False, eq=False)
class Capture:
    """What a stream was given since its capture began; `broken` is the call that ended it."""

    thread: int
    pieces: list[Piece]
    broken: str = ""

    def refuse(self, call: str) -> None:
        """Refuse a call that cannot be captured, by which the capture is lost."""
        self.broken = self.broken or call
        raise DeviceError(
            f"{call}: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the stream is being captured"
        )

    def check(self, call: str) -> None:
        """Refuse work where the capture is lost."""
        if self.broken:
            raise _lost(call, self)


@record(frozen=False, eq=False)
class Graph:
    """Pieces of work of a context; `last` means the launch before."""

    context: int
    pieces: Sequence[Piece]
    last: Event


def _lost(call: str, capture: Capture) -> DeviceError:
    return DeviceError(
        f"{call}: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: {capture.broken} came amidst a capture"
    )


class Graphs:
    """The driver's calls for graphs; see `Driver`."""

    def __init__(self, driver: Simulated) -> None:
        self.driver = driver
        self.captures: list[Capture] = []  # that have not ended

    def begin(self, stream: int) -> None:
        """See `Driver.begin_capture`."""
        found = self.driver.plain_stream("cuStreamBeginCapture", stream)
        if found.capture is not None:
            raise DeviceError(
                "cuStreamBeginCapture: CUDA_ERROR_ILLEGAL_STATE: the stream is being captured"
            )
        found.capture = Capture(threading.get_ident(), [])
        self.captures.append(found.capture)

    def end(self, stream: int) -> int:
        """See `Driver.end_capture`."""
        capture = self._ended("cuStreamEndCapture", stream)
        if capture.broken:
            raise _lost("cuStreamEndCapture", capture)
        context = self.driver.here("cuGraphInstantiateWithFlags")
        return self.driver.add(Graph(context, tuple(capture.pieces), self.driver.new_event()))

    def abandon(self, stream: int) -> None:
        """See `Driver.abandon_capture`."""
        if self.driver.plain_stream("cuStreamEndCapture", stream).capture is not None:
            self._ended("cuStreamEndCapture", stream)

    def _ended(self, call: str, stream: int) -> Capture:
        found = self.driver.plain_stream(call, stream)
        capture = found.capture
        if capture is None:
            raise DeviceError(f"{call}: CUDA_ERROR_ILLEGAL_STATE: the stream is not captured")
        if capture.thread != threading.get_ident():
            raise DeviceError(
                f"{call}: CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: another thread began the capture"
            )
        found.capture = None
        self.captures.remove(capture)
        return capture

    def check_thread(self, call: str) -> None:
        """Refuse to a thread that captures what would disturb that."""
        for capture in self.captures:
            if capture.thread == threading.get_ident():
                capture.refuse(call)

    def launch(self, graph: int, stream: int) -> None:
        """See `Driver.launch_graph`."""
        queue = self.driver.uncaptured("cuGraphLaunch", stream)
        found: Graph = self.driver.get("cuGraphLaunch", Graph, graph)
        if found.context != queue.context:
            raise DeviceError(
                f"cuGraphLaunch: CUDA_ERROR_INVALID_HANDLE: graph {graph} is of another context"
            )
        self.driver.follow(queue, found.last)
        for piece in found.pieces:
            self.driver.give(queue, *piece)
        self.driver.mark(found.last, queue)

    def destroy(self, graph: int) -> None:
        """See `Driver.destroy_graph`."""
        self.driver.get("cuGraphExecDestroy", Graph, graph)
        self.driver.remove(graph)

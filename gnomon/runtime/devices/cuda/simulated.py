"""A simulated driver: GPUs on the processor that do what the real ones may do, at the worst.

States of a piece of work: *queued* in its stream; *done* at some later call, when it is the first
of its stream and the events it waits for have come. Which stream goes on next is chance, from a
seed; nothing is done before it has to be or chance wants it. So work that lacks an order is done in
any, and where it touches the same memory that is an error (`simulated_memory.py`), whichever order
came. What the real driver refuses is refused with its error's name: handles of another context,
memory that is freed, launches that are too large. After an error of a kernel the context is lost,
as there: every later call fails.

Kernels are the grid programs that the PTX is written from, run in lockstep (`code/lockstep.py`).
Only one GPU has so much memory as it says: blocks take memory of the processor when they are made.
"""

from __future__ import annotations

import ctypes
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from gnomon.base import DeviceError
from gnomon.code import lockstep
from gnomon.ground.lock import reentrant
from gnomon.ground.record import record
from gnomon.plan.gpu.grid import Entry, Grid
from gnomon.runtime.devices.cuda.driver import Image, Properties
from gnomon.runtime.devices.cuda.simulated_blas import SimulatedBlas
from gnomon.runtime.devices.cuda.simulated_dnn import SimulatedDnn
from gnomon.runtime.devices.cuda.simulated_graph import Graphs, Piece
from gnomon.runtime.devices.cuda.simulated_memory import LaunchMemory, Space, Work
from gnomon.runtime.devices.cuda.simulated_peer import Peers
from gnomon.runtime.devices.cuda.simulated_stream import Event, Stream, Task

GPUS = 2
MEMORY = 1 << 30
PROCESSORS = 4
ARCH = "sm_90"
THREADS = 1024  # of a block at most
WORD = (1 << 64) - 1


@record(frozen=False, eq=False)
class _Module:
    context: int
    image: Image


@record(frozen=False, eq=False)
class _Function:
    module: _Module
    program: Grid
    entry: Entry
    name: str


class Simulated:
    """The simulated driver; see `Driver`."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.lock = reentrant()
        self.spaces = [Space(k, MEMORY) for k in range(GPUS)]
        self.failed: DeviceError | None = None
        self.calls = 0
        self._things: dict[int, Any] = {}
        self._next = 0
        self._thread = threading.local()
        self._known: dict[int, int] = {}  # what the processor has waited for
        self.peers = Peers(self)
        self._graphs = Graphs(self)

    # -- handles --------------------------------------------------------------------------------

    def add(self, thing: Any) -> int:
        """A handle for a thing."""
        self._next += 1
        self._things[self._next] = thing
        return self._next

    def remove(self, handle: int) -> None:
        """Forget what a handle stands for."""
        del self._things[handle]

    def get(self, call: str, kind: type, handle: int) -> Any:
        """What a handle stands for; every call comes by here or by `here`."""
        self._alive(call)
        thing = self._things.get(handle)
        if not isinstance(thing, kind):
            raise DeviceError(f"{call}: CUDA_ERROR_INVALID_HANDLE: {handle!r}")
        return thing

    def _alive(self, call: str) -> None:
        self.calls += 1
        if self.failed is not None:
            raise DeviceError(f"{call}: an earlier error: {self.failed}")

    def here(self, call: str) -> int:
        """The context of the calling thread."""
        self._alive(call)
        context: int | None = getattr(self._thread, "context", None)
        if context is None:
            raise DeviceError(f"{call}: CUDA_ERROR_INVALID_CONTEXT: this thread has entered none")
        return context

    def stream_of(self, call: str, stream: int) -> Stream:
        """A stream of the calling thread's context, for work that may be captured."""
        found = self.plain_stream(call, stream)
        if found.capture is not None:
            found.capture.check(call)
        return found

    def uncaptured(self, call: str, stream: int) -> Stream:
        """A stream of the calling thread's context, for a call that cannot be captured."""
        return self._checked(call, self.plain_stream(call, stream))

    def _checked(self, call: str, stream: Stream) -> Stream:
        if stream.capture is not None:
            stream.capture.refuse(call)
        return stream

    def plain_stream(self, call: str, stream: int) -> Stream:
        """A stream of the calling thread's context, captured or not."""
        found: Stream = self.get(call, Stream, stream)
        if found.context != self.here(call):
            raise DeviceError(
                f"{call}: CUDA_ERROR_INVALID_HANDLE: stream {stream} is of another context"
            )
        return found

    # -- devices --------------------------------------------------------------------------------

    def count(self) -> int:
        return GPUS

    def properties(self, ordinal: int) -> Properties:
        if not 0 <= ordinal < GPUS:
            raise DeviceError(f"cuDeviceGet: CUDA_ERROR_INVALID_DEVICE: {ordinal}")
        return Properties("simulated GPU", ARCH, PROCESSORS, self.spaces[ordinal].total)

    def context(self, ordinal: int) -> int:
        self.properties(ordinal)
        return ordinal + 1

    def enter(self, context: int) -> None:
        self._thread.context = context

    def memory(self) -> tuple[int, int]:
        with self.lock:
            space = self.spaces[self.here("cuMemGetInfo") - 1]
            return space.total - space.used, space.total

    # -- work -----------------------------------------------------------------------------------

    def give(
        self,
        stream: Stream,
        name: str,
        run: Callable[[Work], None],
        ready: Callable[[], bool] = lambda: True,
    ) -> Task:
        """Give work to a stream; some of what waits anywhere is done, as chance wants."""
        if stream.capture is not None:
            stream.capture.pieces.append(Piece(name, run))
            return Task(Work(name, stream.number, 0, {}), lambda: None, ready)
        for known, number in self._known.items():
            stream.clock[known] = max(stream.clock.get(known, 0), number)
        number = stream.clock.get(stream.number, 0) + 1
        stream.clock[stream.number] = number
        work = Work(name, stream.number, number, dict(stream.clock))
        task = Task(work, lambda: run(work), ready)
        stream.tasks.append(task)
        while self.chance.random() < 0.5 and self._advance():
            pass
        return task

    def _advance(self) -> bool:
        """Do one piece of work that is ready, of any stream; False where there is none."""
        streams = [t for t in self._things.values() if isinstance(t, Stream)]
        ready = [s for s in streams if s.tasks and s.tasks[0].ready()]
        if not ready:
            return False
        task = self.chance.choice(ready).tasks.popleft()
        try:
            task.run()
        except DeviceError as error:
            self.failed = error
            raise
        return True

    def _finish(self, call: str, done: Callable[[], bool]) -> None:
        """Do work until `done` holds."""
        while not done():
            if not self._advance():
                raise DeviceError(f"{call}: streams wait for each other, or for no event at all")

    def _reached(self, clock: dict[int, int]) -> None:
        """The processor knows now what `clock` tells; so does what is given from now on.

        What is queued already was given without knowing it: it may still race with that.
        """
        for stream, number in clock.items():
            self._known[stream] = max(self._known.get(stream, 0), number)
        streams = [t for t in self._things.values() if isinstance(t, Stream)]
        waiting = [task.work.clock for s in streams for task in s.tasks]
        known = {
            stream: min([number, *(clock.get(stream, 0) for clock in waiting)])
            for stream, number in self._known.items()
        }
        for space in self.spaces:
            space.forget(known)

    # -- streams and events ---------------------------------------------------------------------

    def create_stream(self) -> int:
        with self.lock:
            stream = Stream(self.here("cuStreamCreate"), 0, deque(), {})
            stream.number = self.add(stream)
            return stream.number

    def destroy_stream(self, stream: int) -> None:
        with self.lock:
            found = self.uncaptured("cuStreamDestroy", stream)
            self._finish("cuStreamDestroy", lambda: not found.tasks)
            self.remove(stream)

    def wait_stream(self, stream: int) -> None:
        with self.lock:
            found = self._awaited("cuStreamSynchronize", stream)
            self._finish("cuStreamSynchronize", lambda: not found.tasks)
            self._reached(found.clock)

    def is_idle(self, stream: int) -> bool:
        with self.lock:
            found = self._awaited("cuStreamQuery", stream)
            if found.tasks and self.chance.random() < 0.5:
                self._advance()
            if not found.tasks:
                self._reached(found.clock)
            return not found.tasks

    def _awaited(self, call: str, stream: int) -> Stream:
        """A stream of any context, which the processor asks for or waits for."""
        return self._checked(call, self.get(call, Stream, stream))

    def create_event(self) -> int:
        with self.lock:
            self.here("cuEventCreate")
            return self.add(self.new_event())

    def new_event(self) -> Event:
        """A mark that stands for nothing yet."""
        return Event({}, [])

    def destroy_event(self, event: int) -> None:
        with self.lock:
            self.get("cuEventDestroy", Event, event)
            self.remove(event)

    def record(self, event: int, stream: int) -> None:
        with self.lock:
            found = self.get("cuEventRecord", Event, event)
            self.mark(found, self.uncaptured("cuEventRecord", stream))

    def mark(self, event: Event, queue: Stream) -> None:
        """The event means all that the stream was given so far."""
        pending: list[Task] = []
        task = self.give(queue, "event", lambda work: pending.clear())
        if task in queue.tasks:
            pending.append(task)
        event.pending, event.clock = pending, dict(task.work.clock)

    def wait_event(self, stream: int, event: int) -> None:
        with self.lock:
            found = self.get("cuStreamWaitEvent", Event, event)
            self.follow(self._awaited("cuStreamWaitEvent", stream), found)

    def follow(self, queue: Stream, event: Event) -> None:
        """What the stream is given from now on waits for what the event means now."""
        pending = event.pending
        for known, number in event.clock.items():
            queue.clock[known] = max(queue.clock.get(known, 0), number)
        self.give(queue, "wait", lambda work: None, lambda: not pending)

    # -- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int, stream: int) -> int:
        with self.lock:
            queue = self.uncaptured("cuMemAllocAsync", stream)
            block = self.spaces[queue.context - 1].reserve(nbytes)

            def run(work: Work) -> None:
                block.touch(block.start, block.end, True, work)

            self.give(queue, "cuMemAllocAsync", run)
            return block.start

    def free(self, address: int, stream: int) -> None:
        with self.lock:
            queue = self.uncaptured("cuMemFreeAsync", stream)
            space = self.spaces[queue.context - 1]

            def run(work: Work) -> None:
                block = space.at(address)
                if block is not None:
                    block.touch(block.start, block.end, True, work)
                space.release(address)

            self.give(queue, "cuMemFreeAsync", run)

    def owner(self, address: int) -> int:
        with self.lock:
            self.here("cuPointerGetAttribute")
            return self._ordinal(address)

    def _ordinal(self, address: int) -> int:
        for ordinal, space in enumerate(self.spaces):
            block = space.at(address)
            if block is not None and block.start <= address < block.end:
                return ordinal
        raise DeviceError(
            f"cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE: no memory of a GPU's at {address:#x}"
        )

    def _space(self, address: int) -> Space | None:
        """The GPU whose memory an address means; None: the processor's."""
        return next((s for s in self.spaces if s.low <= address < s.high), None)

    def copy(self, dest: int, source: int, nbytes: int, stream: int) -> None:
        with self.lock:
            queue = self.stream_of("cuMemcpyAsync", stream)
            into, out = self._space(dest), self._space(source)
            if queue.capture is not None and None in (into, out):
                queue.capture.refuse("cuMemcpyAsync of the processor's memory")
            staged = ctypes.string_at(source, nbytes) if out is None else b""

            def run(work: Work) -> None:
                data = staged
                if out is not None:
                    data = out.bytes_at(source, nbytes, False, work).tobytes()
                if into is None:
                    ctypes.memmove(dest, data, nbytes)
                else:
                    held = into.bytes_at(dest, nbytes, True, work)
                    held.data[:] = data

            self.give(queue, "cuMemcpyAsync", run)
            if into is None:
                self._finish("cuMemcpyAsync", lambda: not queue.tasks)
                self._reached(queue.clock)

    def reach(self, ordinal: int, other: int) -> bool:
        return self.peers.reach(ordinal, other)

    def copy_peer(
        self, ends: tuple[int, int], gpus: tuple[int, int], nbytes: int, stream: int
    ) -> None:
        self.peers.copy(ends, gpus, nbytes, stream)

    def fill(self, dest: int, byte: int, nbytes: int, stream: int) -> None:
        with self.lock:
            queue = self.stream_of("cuMemsetD8Async", stream)
            space = self._space(dest)
            if space is None:
                raise DeviceError("cuMemsetD8Async: CUDA_ERROR_INVALID_VALUE: no memory of a GPU's")

            def run(work: Work) -> None:
                space.bytes_at(dest, nbytes, True, work)[:] = byte

            self.give(queue, "cuMemsetD8Async", run)

    # -- kernels --------------------------------------------------------------------------------

    def load(self, image: Image) -> int:
        with self.lock:
            self._graphs.check_thread("cuModuleLoadDataEx")
            return self.add(_Module(self.here("cuModuleLoadDataEx"), image))

    def function(self, module: int, name: str) -> int:
        with self.lock:
            found: _Module = self.get("cuModuleGetFunction", _Module, module)
            if name not in found.image.names:
                raise DeviceError(f"cuModuleGetFunction: CUDA_ERROR_NOT_FOUND: {name}")
            program = found.image.program
            entry = program.entries[found.image.names.index(name)]
            return self.add(_Function(found, program, entry, name))

    def launch(
        self, function: int, shape: tuple[int, int, int], words: Sequence[int], stream: int
    ) -> None:
        with self.lock:
            queue = self.stream_of("cuLaunchKernel", stream)
            found: _Function = self.get("cuLaunchKernel", _Function, function)
            if found.module.context != queue.context:
                raise DeviceError(
                    f"cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE: {found.name} is of another context"
                )
            blocks, x, y = shape
            if not (blocks > 0 and x > 0 and y > 0 and x * y <= THREADS):
                raise DeviceError(f"cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: a grid of {shape}")
            given = list(words)
            self.give(queue, found.name, lambda work: self._run(found, shape, given, work))

    def _run(
        self, function: _Function, shape: tuple[int, int, int], words: list[int], work: Work
    ) -> None:
        space = self.spaces[function.module.context - 1]
        args = function.program.kernel.args
        if not function.module.image.by_value:  # the words lie where the only one says
            held = space.bytes_at(words[0], 8 * len(args), False, work)
            words = held.view("<i8").tolist()
        slots = dict(zip(args, words, strict=True))
        memory = LaunchMemory(space, work)
        lockstep.run(function.program, function.entry, slots, shape, memory)
        memory.end()

    # -- graphs ---------------------------------------------------------------------------------

    def begin_capture(self, stream: int) -> None:
        with self.lock:
            self._graphs.begin(stream)

    def end_capture(self, stream: int) -> int:
        with self.lock:
            return self._graphs.end(stream)

    def abandon_capture(self, stream: int) -> None:
        with self.lock:
            self._graphs.abandon(stream)

    def launch_graph(self, graph: int, stream: int) -> None:
        with self.lock:
            self._graphs.launch(graph, stream)

    def destroy_graph(self, graph: int) -> None:
        with self.lock:
            self._graphs.destroy(graph)

    # -- libraries ------------------------------------------------------------------------------

    def blas(self) -> SimulatedBlas:
        return SimulatedBlas(self)

    def dnn(self) -> SimulatedDnn:
        return SimulatedDnn(self)

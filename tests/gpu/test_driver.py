"""The simulated driver: it refuses what the real one refuses, and finds work that has no order."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

from gnomon.base import DeviceError
from gnomon.plan.gpu.spread import spread
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices.cuda import gpu, library
from gnomon.runtime.devices.cuda.driver import Driver, Image
from gnomon.runtime.devices.cuda.simulated import MEMORY, Simulated
from tests.plan.test_expressions import over


def bytes_at(memory: np.ndarray) -> int:
    return memory.ctypes.data


@pytest.fixture
def stream(simulated: Simulated) -> int:
    simulated.enter(simulated.context(0))
    return simulated.create_stream()


def scaling() -> tuple[Image, list]:
    """A module that doubles four floats, and its arguments but for the addresses."""
    x = over(np.zeros(4, np.float32))
    store = Store(over(np.zeros(4, np.float32)), "saveto", x * 2.0)
    program = spread(plan([store], Structure([store])))
    two = int(np.array([2.0, 0], np.float32).view(np.int64)[0])
    return Image(program, ("double",), True, lambda arch: ""), [None, None, 4, two]


def words(args: list, source: int, dest: int) -> list[int]:
    return [source, dest, *args[2:]]


def test_a_kernel_between_two_copies(simulated, stream):
    image, args = scaling()
    assert [slot[0] for slot in image.program.kernel.args] == ["leaf", "leaf", "dim", "scalar"]
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    source, dest = (simulated.allocate(16, stream) for _ in range(2))
    simulated.copy(source, bytes_at(x), 16, stream)
    x[:] = 77  # pageable memory was read when the call returned
    double = simulated.function(simulated.load(image), "double")
    simulated.launch(double, (1, 256, 1), words(args, source, dest), stream)
    simulated.copy(bytes_at(y), dest, 16, stream)
    np.testing.assert_array_equal(y, [0, 2, 4, 6])


@pytest.mark.parametrize("ordered", [True, False])
def test_streams_without_an_event_are_found(simulated, stream, ordered):
    other = simulated.create_stream()
    block = simulated.allocate(8, stream)
    simulated.fill(block, 1, 8, stream)
    if ordered:
        event = simulated.create_event()
        simulated.record(event, stream)
        simulated.wait_event(other, event)
        simulated.fill(block, 2, 8, other)
        found = np.zeros(8, np.uint8)
        simulated.copy(bytes_at(found), block, 8, other)
        np.testing.assert_array_equal(found, 2)
        return

    def both() -> None:
        simulated.fill(block, 2, 8, other)
        simulated.wait_stream(stream)
        simulated.wait_stream(other)

    with pytest.raises(
        DeviceError, match=r"race of streams: .* writes .* and no event orders them"
    ):
        both()
    with pytest.raises(DeviceError, match="cuMemsetD8Async: an earlier error: race"):
        simulated.fill(block, 3, 8, stream)


def test_waiting_on_the_processor_orders_streams(simulated, stream):
    other = simulated.create_stream()
    block = simulated.allocate(8, stream)
    simulated.wait_stream(stream)
    simulated.fill(block, 2, 8, other)
    simulated.wait_stream(other)
    assert simulated.is_idle(other)


def note(done: list[int], k: int, work: object) -> None:
    done.append(k)


def test_work_is_done_in_any_order_that_events_allow():
    """Two streams fill two blocks each; the order of what happened differs from seed to seed."""
    seen = set()
    for seed in range(20):
        driver = Simulated(seed)
        driver.enter(driver.context(0))
        streams = [driver.create_stream() for _ in range(2)]
        done: list[int] = []
        for k, stream in enumerate(streams):
            for _ in range(2):
                driver.give(driver._things[stream], "", partial(note, done, k))
        for stream in streams:
            driver.wait_stream(stream)
        assert sorted(done) == [0, 0, 1, 1]
        seen.add(tuple(done))
    assert len(seen) > 3


def test_freed_memory_is_refused(simulated, stream):
    block = simulated.allocate(8, stream)
    simulated.free(block, stream)
    simulated.wait_stream(stream)
    message = r"CUDA_ERROR_ILLEGAL_ADDRESS: cuMemsetD8Async writes of 8 bytes at 0x7"

    def fill() -> None:
        simulated.fill(block, 0, 8, stream)
        simulated.wait_stream(stream)

    with pytest.raises(DeviceError, match=message):
        fill()


def test_memory_has_an_end(simulated, stream):
    image, args = scaling()
    block = simulated.allocate(16, stream)
    small = simulated.allocate(12, stream)
    double = simulated.function(simulated.load(image), "double")

    def launch() -> None:
        simulated.launch(double, (1, 256, 1), words(args, block, small), stream)
        simulated.wait_stream(stream)

    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS: double .* of 12 bytes"):
        launch()


def test_there_is_so_much_memory(simulated, stream):
    assert simulated.memory() == (MEMORY, MEMORY)
    block = simulated.allocate(MEMORY // 64, stream)
    assert simulated.memory()[0] == MEMORY - MEMORY // 64
    with pytest.raises(MemoryError):
        simulated.allocate(MEMORY, stream)
    simulated.free(block, stream)
    simulated.wait_stream(stream)
    assert simulated.memory()[0] == MEMORY


def test_handles_of_other_contexts_are_refused(simulated, stream):
    image, _ = scaling()
    double = simulated.function(simulated.load(image), "double")
    simulated.enter(simulated.context(1))
    with pytest.raises(DeviceError, match=r"INVALID_HANDLE: stream .* of another context"):
        simulated.allocate(8, stream)
    mine = simulated.create_stream()
    with pytest.raises(DeviceError, match="INVALID_HANDLE: double is of another context"):
        simulated.launch(double, (1, 32, 1), [0] * 4, mine)


@pytest.mark.parametrize("shape", [(0, 32, 1), (1, 2048, 1), (1, 64, 32), (-1, 32, 1)])
def test_grids_that_cannot_be_are_refused(simulated, stream, shape):
    image, _ = scaling()
    double = simulated.function(simulated.load(image), "double")
    with pytest.raises(DeviceError, match="cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: a grid of"):
        simulated.launch(double, shape, [0] * 4, stream)


def test_what_is_no_handle_is_refused(simulated, stream):
    for call in (simulated.wait_stream, simulated.destroy_event):
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE: 999"):
            call(999)
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_DEVICE: 2"):
        simulated.context(2)
    image, _ = scaling()
    with pytest.raises(DeviceError, match="CUDA_ERROR_NOT_FOUND: triple"):
        simulated.function(simulated.load(image), "triple")


def test_a_wait_for_a_later_event_is_none(simulated, stream):
    """An event that was not recorded yet means nothing, as CUDA has it."""
    event = simulated.create_event()
    simulated.wait_event(stream, event)
    simulated.wait_stream(stream)


def test_the_real_driver_has_every_call():
    """Nothing of it can run here; that it is all there, and says why it is not, can be seen."""
    wanted = [name for name in vars(Driver) if not name.startswith("_")]
    for kind in (library.Library, Simulated):
        assert not [name for name in wanted if not callable(getattr(kind, name, None))]
    assert isinstance(library.why(), str) and library.why()


def test_an_interrupt_leaves_the_lock_of_a_gpu_free_wherever_it_falls():
    """Python looks for signals where functions begin; the error is kept, and its frames with it."""
    found = gpu.get(0)
    x = np.zeros(4, np.float32)
    works = [found.memory, found.synchronise, lambda: found.copy(bytes_at(x), bytes_at(x), 16)]

    def interrupted(*_: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise InterruptedError

    def is_free() -> bool:
        taken = found.lock.acquire(blocking=False)
        if taken:
            found.lock.release()
        return taken

    interrupts = 0
    for work in works:
        for number in range(1, 30):
            left, kept = number, None
            sys.settrace(interrupted)
            try:
                work()
            except InterruptedError as error:
                kept = error
                interrupts += 1
            finally:
                sys.settrace(None)
            with ThreadPoolExecutor(1) as other:
                assert other.submit(is_free).result(), (number, kept)
    assert interrupts > 20

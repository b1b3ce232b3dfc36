"""CUDA graphs: the simulated driver records and refuses as the real one, and programs use them."""

from __future__ import annotations

import ctypes
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gnomon.base import DeviceError
from gnomon.expr.node import Buffer
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import gpu, library
from gnomon.runtime.devices.cuda.blas import Gemm
from gnomon.runtime.devices.cuda.driver import Image
from gnomon.runtime.kernels.gpu_program import GpuProgram, joined
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.prepare import prepare
from tests.gpu.test_driver import bytes_at, scaling, words


@pytest.fixture
def stream(simulated):
    simulated.enter(simulated.context(0))
    return simulated.create_stream()


@pytest.fixture
def doubling(simulated, stream):
    """A captured stream that doubles four floats in place, and where these lie."""
    image, args = scaling()
    block = simulated.allocate(16, stream)
    double = simulated.function(simulated.load(image), "double")
    simulated.copy(block, bytes_at(np.arange(4, dtype=np.float32)), 16, stream)
    simulated.begin_capture(stream)
    simulated.launch(double, (1, 256, 1), words(args, block, block), stream)
    return block


def read(simulated, block, stream):
    found = np.zeros(4, np.float32)
    simulated.copy(bytes_at(found), block, 16, stream)
    return found.tolist()


def test_what_is_captured_is_done_at_each_launch(simulated, stream, doubling):
    graph = simulated.end_capture(stream)
    assert read(simulated, doubling, stream) == [0, 1, 2, 3]
    for _ in range(2):
        simulated.launch_graph(graph, stream)
    assert read(simulated, doubling, stream) == [0, 4, 8, 12]
    simulated.launch_graph(graph, stream)
    simulated.destroy_graph(graph)  # the launch under way is still done
    assert read(simulated, doubling, stream) == [0, 8, 16, 24]
    for call in (simulated.destroy_graph, lambda g: simulated.launch_graph(g, stream)):
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE"):
            call(graph)


REFUSED = {
    "cuStreamSynchronize": lambda d, s: d.wait_stream(s),
    "cuStreamQuery": lambda d, s: d.is_idle(s),
    "cuStreamDestroy": lambda d, s: d.destroy_stream(s),
    "cuEventRecord": lambda d, s: d.record(d.create_event(), s),
    "cuStreamWaitEvent": lambda d, s: d.wait_event(s, d.create_event()),
    "cuMemAllocAsync": lambda d, s: d.allocate(8, s),
    "cuMemFreeAsync": lambda d, s: d.free(next(iter(d.spaces[0])).start, s),
    "cuMemcpyAsync of the processor's memory": lambda d, s: read(
        d, next(iter(d.spaces[0])).start, s
    ),
    "cuModuleLoadDataEx": lambda d, s: d.load(scaling()[0]),
    "cublasSetStream": lambda d, s: d.blas().set_stream(d.blas().create(), s),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_cannot_be_captured_ends_it(simulated, stream, doubling, call):
    with pytest.raises(DeviceError, match=f"{call}: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        REFUSED[call](simulated, stream)
    with pytest.raises(DeviceError, match=r"INVALIDATED: .* came amidst a capture"):
        simulated.fill(doubling, 0, 16, stream)
    with pytest.raises(DeviceError, match=r"cuStreamEndCapture: .*INVALIDATED"):
        simulated.end_capture(stream)
    assert read(simulated, doubling, stream) == [0, 1, 2, 3]


def test_the_states_of_a_capture(simulated, stream, doubling):
    other = simulated.create_stream()
    with pytest.raises(DeviceError, match="cuStreamBeginCapture: CUDA_ERROR_ILLEGAL_STATE"):
        simulated.begin_capture(stream)
    with pytest.raises(DeviceError, match="cuStreamEndCapture: CUDA_ERROR_ILLEGAL_STATE"):
        simulated.end_capture(other)
    simulated.begin_capture(other)
    graph = simulated.end_capture(other)
    with pytest.raises(DeviceError, match=r"cuGraphLaunch: .*CAPTURE_UNSUPPORTED"):
        simulated.launch_graph(graph, stream)
    simulated.abandon_capture(stream)
    simulated.abandon_capture(stream)  # nothing is recorded: nothing is done
    assert read(simulated, doubling, stream) == [0, 1, 2, 3]


def test_a_capture_ends_in_its_thread_and_leaves_others_alone(simulated, stream, doubling):
    def elsewhere():
        simulated.enter(simulated.context(0))
        simulated.load(scaling()[0])
        simulated.end_capture(stream)

    with ThreadPoolExecutor(1) as other, pytest.raises(DeviceError, match="WRONG_THREAD"):
        other.submit(elsewhere).result()
    simulated.end_capture(stream)


def test_a_graph_is_of_one_context(simulated, stream, doubling):
    graph = simulated.end_capture(stream)
    simulated.enter(simulated.context(1))
    with pytest.raises(DeviceError, match=r"cuGraphLaunch: .*graph \d+ is of another context"):
        simulated.launch_graph(graph, simulated.create_stream())


@pytest.mark.parametrize("ordered", [True, False])
def test_a_graph_without_an_event_is_found(simulated, stream, doubling, ordered):
    graph, other = simulated.end_capture(stream), simulated.create_stream()

    def both():
        simulated.launch_graph(graph, stream)
        if ordered:
            event = simulated.create_event()
            simulated.record(event, stream)
            simulated.wait_event(other, event)
        simulated.fill(doubling, 0, 16, other)
        simulated.wait_stream(stream)
        simulated.wait_stream(other)

    simulated.wait_stream(stream)
    if ordered:
        both()
        return
    with pytest.raises(DeviceError, match="race of streams"):
        both()


def test_a_launch_comes_behind_the_one_before_on_any_stream(simulated, stream, doubling):
    graph, other = simulated.end_capture(stream), simulated.create_stream()
    for k in range(6):
        simulated.launch_graph(graph, (stream, other)[k % 2])
    assert read(simulated, doubling, other) == [0, 64, 128, 192]


# --- programs -------------------------------------------------------------------------------------


def there(values):
    made = temporary(Buffer(values.shape), "gpu(0)")
    gpu.get(0).copy(made.address, bytes_at(values), values.nbytes)
    return made


def test_a_program_and_other_queues_are_in_order():
    """Each step reads what another queue has just written there."""
    found = gpu.get(0)
    x, y = (there(np.arange(4, dtype=np.float32)) for _ in range(2))
    steps = prepare([Store(y, "saveto", x + 1.0)]) + prepare([Store(y, "saveto", y * 2.0)])
    program, other = GpuProgram(steps, found.default), found.queue()
    assert program.reads == [(x.address, x.address + 16)]
    assert program.writes == [(y.address, y.address + 16)]
    for k in range(1, 6):
        program.run()
        found.copy_on(other, x.address, y.address, 16)
        want = np.arange(4) * 2**k + 2 ** (k + 1) - 2
        np.testing.assert_array_equal(x.numpy(), want)


def test_ranges_that_meet_are_one():
    assert joined([(8, 12), (0, 4), (4, 6), (5, 8), (20, 20), (14, 16)]) == [(0, 12), (14, 16)]


def test_a_program_whose_capture_fails_is_tried_again(monkeypatch, simulated):
    found = gpu.get(0)
    x = there(np.ones(4, np.float32))
    steps = [s for _ in range(2) for s in prepare([Store(x, "saveto", x * 2.0)])]
    program = GpuProgram(steps, found.default)
    program.run()
    step = program._steps[1]

    def asks(driver, words, queue):
        queue.wait()

    program._steps[1] = step._replace(issue=asks)
    with pytest.raises(DeviceError, match=r"cuStreamSynchronize: .*UNSUPPORTED"):
        program.run()
    program._steps[1] = step
    program.run()
    assert x.numpy().tolist() == [16.0] * 4


def test_the_collector_frees_nothing_amidst_a_capture():
    """A dead array in a cycle would give its memory back, by a call that ends the capture."""
    found = gpu.get(0)
    x = there(np.ones(4, np.float32))
    seen = []

    def work(driver):
        seen.append(gc.isenabled())
        driver.fill(x.address, 0, 16, found.default.handle)

    with found.lock:
        found.enter()
        graph = found.captured(found.default, work)
        found.driver.launch_graph(graph, found.default.handle)
    for _ in range(2):  # it may be gone: a finaliser raises nothing
        found.drop(found.driver.destroy_graph, graph)
    assert seen == [False] and gc.isenabled()
    assert x.numpy().tolist() == [0.0] * 4


def test_what_dies_amidst_calls_for_another_gpu_leaves_them_to_it():
    """A finaliser runs anywhere, as the collector does: here while GPU 0 is given work."""
    first, second = gpu.get(0), gpu.get(1)
    graphs = []
    with second.lock:
        second.enter()
        graphs.append(second.captured(second.default, lambda driver: None))
    block = second.allocate(16)
    x = there(np.ones(4, np.float32))

    def work(driver):
        second.drop(second.driver.destroy_graph, graphs[0])
        second.release(block, 16)
        driver.fill(x.address, 0, 16, first.default.handle)

    first.give(first.default, (), [(x.address, x.address + 16)], work)
    assert x.numpy().tolist() == [0.0] * 4
    second.synchronise()
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE"):
        second.driver.destroy_graph(graphs[0])


def test_a_finaliser_waits_for_no_other_thread():
    """Of two threads that each have a GPU, either may release a block of the other one."""
    gpus, has_one = [gpu.get(0), gpu.get(1)], threading.Barrier(2)
    blocks = [found.allocate(16) for found in gpus]

    def collected(mine: int) -> None:
        with gpus[mine].lock:
            has_one.wait()
            gpus[1 - mine].release(blocks[1 - mine], 16)

    threads = [threading.Thread(target=collected, args=(k,), daemon=True) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    for found in gpus:
        found.synchronise()
        assert len(set(found.memory())) == 1  # all is free


def test_products_are_captured(simulated, stream):
    blas = simulated.blas()
    handle = blas.create()
    blas.set_stream(handle, stream)
    a, b, c = (simulated.allocate(16, stream) for _ in range(3))
    for block in (a, b):
        simulated.copy(block, bytes_at(np.eye(2, dtype=np.float32) * 3), 16, stream)
    what = Gemm(Buffer((1,)).dtype, 2, 2, 2, False, False, 1.0, 0.0, 2, 2, 2, 1, 0, 0, 0)
    simulated.begin_capture(stream)
    blas.gemm(handle, what, a, b, c)
    graph = simulated.end_capture(stream)
    simulated.launch_graph(graph, stream)
    assert read(simulated, c, stream) == [9, 0, 0, 9]


# --- the library itself ---------------------------------------------------------------------------


class Told:
    """A driver that notes what it is asked; what it gives is written where it is told to."""

    def __init__(self, statuses=()):
        self.statuses, self.asked = dict(statuses), []

    def __getattr__(self, name):
        if name not in library.CALLS:
            raise AttributeError(name)

        def call(*given):
            assert len(given) == len(library.CALLS[name])
            self.asked.append((name, [x for x in given if isinstance(x, int)]))
            for pointer in given:
                if isinstance(getattr(pointer, "_obj", None), ctypes.c_void_p):
                    pointer._obj.value = 70 + len(self.asked)
            return self.statuses.get(name, 0)

        return call


def test_what_the_driver_is_asked_for_graphs():
    told = Told()
    driver = library.Library(told)
    driver.begin_capture(11)
    graph = driver.end_capture(11)
    driver.launch_graph(graph, 11)
    driver.destroy_graph(graph)
    assert told.asked == [
        ("cuStreamBeginCapture_v2", [11, 1]),
        ("cuStreamEndCapture", [11]),
        ("cuGraphInstantiateWithFlags", [72, 0]),
        ("cuGraphDestroy", [72]),
        ("cuGraphLaunch", [73, 11]),
        ("cuGraphExecDestroy", [73]),
    ]


@pytest.mark.parametrize(("major", "minor", "arch"), [(8, 6, 86), (9, 0, 90), (13, 1, 100)])
def test_a_gpu_newer_than_llvm_gets_the_code_of_one_before(major, minor, arch):
    class Found(Told):
        def cuDeviceGetAttribute(self, value, which, device):
            value._obj.value = {library.MAJOR: major, library.MINOR: minor}[which]
            return 0

    image, asked = scaling()[0], []
    put = Image(image.program, image.names, True, lambda arch: asked.append(arch) or "")
    assert library.Library(Found()).load(put) == 72
    assert asked == [f"sm_{arch}"]


def test_a_recorded_graph_goes_when_it_cannot_be_made():
    told = Told({"cuGraphInstantiateWithFlags": 1, "cuGetErrorName": 1, "cuGetErrorString": 1})
    with pytest.raises(DeviceError, match="cuGraphInstantiateWithFlags"):
        library.Library(told).end_capture(11)
    assert told.asked[-1] == ("cuGraphDestroy", [71])
    told = Told({"cuStreamEndCapture": 1})
    library.Library(told).abandon_capture(11)  # whatever the status: the capture is over
    assert [name for name, _ in told.asked] == ["cuStreamEndCapture", "cuGraphDestroy"]

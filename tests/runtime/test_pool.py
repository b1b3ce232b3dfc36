"""The storage pool: classes, reuse, limits, views, threads, fork; on the processor and on null."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupted import interruptions

from gnomon import config, context
from gnomon.base import DeviceError, MidwayError, ParamError, ShapeError
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cpu import Cpu
from gnomon.runtime.devices.null import Null
from gnomon.runtime.devices.pool import Pool, size_class


@given(st.integers(0, 1 << 40))
def test_size_classes(n: int) -> None:
    size = size_class(n)
    assert size >= max(n, 64)
    assert size % 64 == 0
    assert size - n <= max(64, n // 8)
    assert size_class(size) == size


@pytest.mark.parametrize("nbytes", [0, 1, 64, 1000, 1 << 16, (2 << 20) - 1, 2 << 20, 5_000_001])
def test_memory_is_aligned_and_writable(nbytes: int) -> None:
    storage = pool.allocate(nbytes)
    assert storage.address % 64 == 0
    array = storage.view("uint8", (nbytes,))
    array[:] = 7
    assert array.sum() == 7 * nbytes


def test_reuse_by_collection_and_by_free() -> None:
    own = Pool(Cpu())
    first = own.allocate(1000)
    address = first.address
    del first
    second = own.allocate(990)
    assert second.address == address
    second.free()
    second.free()
    assert second.address == 0
    third = own.allocate(1024)
    assert third.address == address
    assert own.stats() == (1024, 0, 1024, 3, 2)


def test_best_fit_takes_the_next_classes_but_no_larger() -> None:
    own = Pool(Null())
    block = own.allocate(10_000)
    address = block.address
    block.free()
    assert own.allocate(20).address != address
    assert own.allocate(9000).address == address


def test_statistics_and_release() -> None:
    device = Null()
    own = Pool(device)
    held = [own.allocate(1 << 20) for _ in range(3)]
    assert own.stats()[:3] == (3 << 20, 0, 3 << 20)
    held.pop()
    assert own.stats()[:3] == (2 << 20, 1 << 20, 3 << 20)
    assert own.release_all() == 1 << 20
    assert own.release_all() == 0
    calls = [c[0] for c in device.calls]
    assert calls == ["allocate"] * 3 + ["release"] + ["synchronise"] * 2


def test_idle_blocks_over_the_limit_go_back() -> None:
    device = Null()
    with config.using(pool_limit=5 << 20):
        own = Pool(device)
        blocks = [own.allocate(2 << 20) for _ in range(4)]
        blocks.clear()
    assert own.stats().idle <= 5 << 20
    assert sum(c[0] == "release" for c in device.calls) == 3


def test_memory_limit_says_who_holds_what() -> None:
    own = Pool(Null())
    with config.using(memory_limit=10 << 20):
        held = [own.allocate(2 << 20) for _ in range(4)]
        with pytest.raises(DeviceError, match=r"memory_limit is 10 MiB.*8 MiB.*4 of 2 MiB"):
            own.allocate(4 << 20)
        held.clear()
        own.allocate(9 << 20)
        assert own.stats().peak == 9 << 20


class Small(Null):
    """A device that has room for two megabytes."""

    def allocate(self, nbytes: int) -> int:
        done = [c[0] for c in self.calls]
        if done.count("allocate") - done.count("release") == 2:
            raise MemoryError(nbytes)
        return super().allocate(nbytes)


def test_full_device_gives_up_idle_blocks_first() -> None:
    own = Pool(Small())
    held = [own.allocate(1 << 20)]
    own.allocate(1 << 20).free()
    held.append(own.allocate(100))
    with pytest.raises(DeviceError, match=r"cannot allocate 1 MiB: the device has no more.*1 of 1"):
        own.allocate(1 << 20)


class Counted(Null):
    """A device that knows which blocks are out, and needs no memory to take one back."""

    def __init__(self) -> None:
        super().__init__()
        self.out: set[int] = set()

    def allocate(self, nbytes: int) -> int:
        address = super().allocate(nbytes)
        self.out.add(address)
        return address

    def release(self, address: int, nbytes: int) -> None:
        self.out.remove(address)


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize("size", [3000, 2 << 20])
def test_no_block_is_lost_where_memory_lacks(size: int, count: int) -> None:
    lack = pytest.importorskip("_testcapi")
    for first in range(12):
        device = Counted()
        own = Pool(device)
        held = [own.take(size) for _ in range(130)]
        given = 0
        lack.set_nomemory(first, first + count)
        try:
            while given < 130:
                address, shelf = held[given]
                shelf.give(address)
                given += 1
            own.stats()
        except MemoryError:
            pass  # of the loop's own steps, or of `stats`
        finally:
            lack.remove_mem_hooks()
        for address, shelf in held[given:]:
            shelf.give(address)
        own.release_all()
        assert not device.out, (first, count)
        assert not own.lock._is_owned()


def test_refusals() -> None:
    with pytest.raises(ParamError, match="'nbytes'"):
        pool.allocate(-1)
    with pytest.raises(DeviceError, match="no GPU"):
        pool.allocate(1, context.gpu())
    with pytest.raises(ShapeError, match="at most 10 bytes"):
        pool.allocate(10).view("float32", (3,))
    with pytest.raises(DeviceError, match="memory of device 'null' cannot be read"):
        pool.allocate(10, "null").view("uint8", (10,))
    with pytest.raises(DeviceError, match=r"cannot allocate .*GiB: the device has no more"):
        pool.allocate(1 << 60)


def test_view_keeps_the_storage_alive() -> None:
    storage = pool.allocate(400)
    address = storage.address
    array = storage.view("float32", (10, 10))
    array[:] = 1
    del storage
    gc.collect()
    other = pool.allocate(400)
    assert other.address != address
    other.view("float32", (100,))[:] = 2
    assert array.sum() == 100
    assert pool.allocate(8).view("bfloat16", (4,)).dtype == ml_dtypes.bfloat16
    assert pool.allocate(0).view("float32", (0, 3)).shape == (0, 3)


def test_devices_by_context() -> None:
    assert pool.allocate(8, context.cpu(1)).device == "cpu"
    assert pool.allocate(8, context.cpu_pinned()).device == "cpu"
    assert pool.allocate(8, "null").device == "null"


def test_copy() -> None:
    source, dest = pool.allocate(80), pool.allocate(80)
    source.view("int64", (10,))[:] = np.arange(10)
    Cpu().copy(dest.address, source.address, 80)
    assert dest.view("int64", (10,)).tolist() == list(range(10))


def test_many_threads_never_share_a_block() -> None:
    own = Pool(Cpu())
    wrong: list[int] = []

    def work(n: int) -> None:
        held: list[pool.Storage] = []
        for i in range(2000):
            storage = own.allocate(64 + 64 * (i % 5))
            storage.view("int64", (8,))[:] = n
            held.append(storage)
            if len(held) > 20:
                wrong.extend(n for s in held if (s.view("int64", (8,)) != n).any())
                held.clear()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert own.stats().used == 0


class Cycle:
    """Garbage that only the collector finds, with storage inside."""

    def __init__(self, storage: pool.Storage) -> None:
        self.storage, self.me = storage, self


def test_collected_anywhere_even_inside_the_pool() -> None:
    own = Pool(Cpu())
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(3000):
            Cycle(own.allocate(64 * (i % 7)))
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert own.stats().used == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork() -> None:
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            pool.allocate(100)

    thread = threading.Thread(target=churn)
    thread.start()
    kept = pool.allocate(64).view("int64", (8,))
    kept[:] = 1
    for _ in range(10):
        child = os.fork()
        if child == 0:
            mine = [pool.allocate(3 << 20).view("uint8", (3 << 20,)) for _ in range(3)]
            for array in mine:
                array[:] = 2
            kept[:] = 2
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
    thread.join()
    assert kept.sum() == 8


def test_storage_alive_at_exit_says_nothing() -> None:
    script = (
        "from gnomon.runtime.devices import pool\n"
        "class C: pass\n"
        "c = C(); c.me = c; c.s = pool.allocate(4 << 20); keep = pool.allocate(100)\n"
        "import builtins; builtins.kept = pool.allocate(4 << 20).view('uint8', (10,))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""


@pytest.mark.parametrize("nbytes", [1, 64, 1000, 5000, 300_000, 3 << 20])
def test_cleared_memory_is_zero_whoever_had_it_before(nbytes):
    for _ in range(3):
        address, shelf = pool.pool_of("cpu").take_cleared(nbytes)
        assert address % 64 == 0
        assert not any(ctypes.string_at(address, nbytes))
        ctypes.memset(address, 255, nbytes)
        shelf.give(address)
    pool.release_all()


def test_a_request_amidst_a_request_of_the_same_thread_is_refused():
    """As by a finaliser or a signal's handler: the pool is half changed there."""
    own = Pool(Null())
    address, shelf = own.take(5_000_000)
    with own.lock:
        with pytest.raises(MidwayError, match="finaliser or signal handler"):
            own.take(5000)
        shelf.give(address)  # which waits for nothing
    assert own.take(5_000_000)[0] == address


def test_a_handler_amid_a_request_of_the_device_has_memory():
    """Not one amid that handler's own request, nor any amid all else."""
    own, given = Pool(Cpu()), []

    class Interrupted(Cpu):
        depth = 0

        def allocate(self, nbytes):
            self.depth += 1
            if self.depth == 1:
                given.append(own.allocate(200_000))
                assert own.stats().used == given[0].capacity
            elif self.depth == 2:
                with pytest.raises(MidwayError, match="finaliser or signal handler"):
                    own.allocate(5000)
            return Cpu.allocate(self, nbytes)

    own.device = Interrupted()
    given.append(own.allocate(200_000))
    assert len({x.address for x in given}) == 2
    assert (own.stats().used, own.stats().allocations) == (2 * given[0].capacity, 2)
    with own.lock, pytest.raises(MidwayError, match="finaliser or signal handler"):
        own.allocate(5000)


def test_memory_goes_back_when_the_names_of_the_module_are_gone(monkeypatch):
    """As at the end of a process, where the collector frees what lived to the last."""
    kept = [pool.allocate(n) for n in (100, 5000, 2 << 20)]
    before = pool.stats().used
    for name in [n for n in vars(pool) if not n.startswith("__")]:
        monkeypatch.setattr(pool, name, None)
    for storage in kept:
        storage.free()
    monkeypatch.undo()
    assert pool.stats().used <= before - (2 << 20)


def test_an_interrupt_leaves_the_lock_free_wherever_it_falls() -> None:
    own = Pool(Null())
    assert interruptions(own.stats, own.lock._is_owned) > 100

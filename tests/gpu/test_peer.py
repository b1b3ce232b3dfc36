"""Copies from one GPU to another: straight, in order, and by the processor where that cannot be."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd, shadow
from gnomon.base import DeviceError
from gnomon.runtime.devices.cuda.library import Library
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.shadow import Stream, TensorContainer

GPUS = [mx.gpu(0), mx.gpu(1)]


@pytest.fixture
def copies(monkeypatch):
    """The copies that are asked for: `peer`, or `copy` between a GPU and the processor."""
    found = []
    for name in ("copy_peer", "copy"):
        kept = getattr(Simulated, name)

        def noted(driver, *given, name=name, kept=kept):
            found.append(name)
            return kept(driver, *given)

        monkeypatch.setattr(Simulated, name, noted)
    return found


def test_straight(copies):
    x = nd.array(np.arange(6).reshape(2, 3), ctx=GPUS[0])
    copies.clear()
    y = x.as_in_context(GPUS[1])
    y.wait_to_read()
    assert copies == ["copy_peer"]
    assert y.context == GPUS[1]
    np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())


def test_by_the_processor_where_it_is_not_reached(simulated, copies):
    simulated.peers.apart = {(1, 0)}
    x = nd.array(np.arange(6), ctx=GPUS[0])
    y = x.as_in_context(GPUS[1])
    back = y.as_in_context(GPUS[0])
    np.testing.assert_array_equal(back.asnumpy(), np.arange(6))
    assert copies.count("copy_peer") == 1  # the way back


def test_gaps_go_by_dense_temporaries(copies):
    source = TensorContainer((4, 6), device=shadow.gpu(0), init=1)
    source[1:3] += 2.0
    dest = TensorContainer((4, 3), device=shadow.gpu(1), init=0)
    copies.clear()
    shadow.copy(dest, source[:, ::2])
    assert copies == ["copy_peer"]
    want = np.ones((4, 3), np.float32)
    want[1:3] = 3
    np.testing.assert_array_equal(dest.numpy(), want)


def test_gradients_come_back_straight(copies):
    x = nd.array([1.0, 2.0, 3.0], ctx=GPUS[0])
    x.attach_grad()
    copies.clear()
    with autograd.record():
        y = (x * x).as_in_context(GPUS[1]) * 3.0
    y.backward()
    y.wait_to_read()
    x.grad.wait_to_read()
    assert copies.count("copy_peer") == 2
    np.testing.assert_array_equal(x.grad.asnumpy(), [6.0, 12.0, 18.0])


@pytest.mark.parametrize("seed", range(8))
def test_work_of_several_queues_stays_in_order(seed):
    """Random programs of additions and copies on streams of both GPUs equal the serial run."""
    chance = random.Random(seed)
    streams = [[Stream(device=shadow.gpu(k)) for _ in range(2)] for k in range(2)]
    tensors, values = [], []
    for k in range(2):
        for stream in streams[k]:
            x = TensorContainer((8,), device=shadow.gpu(k), init=k + 1.0)
            x.stream_ = stream
            tensors.append(x)
            values.append(np.full(8, k + 1.0, np.float32))
    for _ in range(40):
        a, b = chance.sample(range(4), 2)
        if (a < 2) == (b < 2):
            tensors[a] += tensors[b]
            values[a] = values[a] + values[b]
        else:
            shadow.copy(tensors[a], tensors[b])
            values[a] = values[b].copy()
            tensors[b][:] = tensors[b] * 0.5  # may not overtake the copy that reads it
            values[b] = values[b] * 0.5
    for x, value in zip(tensors, values, strict=True):
        np.testing.assert_array_equal(x.numpy(), value)


def two_blocks(simulated):
    """A block of 16 bytes with a stream on each GPU, the second one's context entered."""
    found = []
    for ordinal in range(2):
        simulated.enter(simulated.context(ordinal))
        stream = simulated.create_stream()
        block = simulated.allocate(16, stream)
        simulated.fill(block, ordinal, 16, stream)
        simulated.wait_stream(stream)
        found += [stream, block]
    return found


def test_what_is_refused(simulated):
    first, source, second, dest = two_blocks(simulated)
    with pytest.raises(DeviceError, match=r"gpu\(1\) does not reach the memory of gpu\(0\)"):
        simulated.copy_peer((dest, source), (1, 0), 16, second)
    assert simulated.reach(1, 0)
    with pytest.raises(DeviceError, match="is of another context"):
        simulated.copy_peer((dest, source), (1, 0), 16, first)
    simulated.copy_peer((dest, source), (1, 0), 16, second)
    simulated.wait_stream(second)
    assert simulated.spaces[1].at(dest).data.tolist() == [0] * 16


@pytest.mark.parametrize(("ends", "nbytes"), [((0, 1), 17), ((1, 0), 16)])
def test_memory_that_is_not_there_is_found(simulated, ends, nbytes):
    _, source, second, dest = two_blocks(simulated)
    simulated.reach(1, 0)
    pair = [dest, source]

    def copy():
        simulated.copy_peer((pair[ends[0]], pair[ends[1]]), (1, 0), nbytes, second)
        simulated.wait_stream(second)

    with pytest.raises(DeviceError, match="ILLEGAL_ADDRESS: cuMemcpyPeerAsync"):
        copy()


def test_a_copy_without_order_is_a_race(simulated):
    first, source, second, dest = two_blocks(simulated)
    simulated.reach(1, 0)
    simulated.enter(simulated.context(0))
    simulated.fill(source, 7, 16, first)
    simulated.enter(simulated.context(1))

    def copy():
        simulated.copy_peer((dest, source), (1, 0), 16, second)
        simulated.wait_stream(second)
        simulated.wait_stream(first)

    with pytest.raises(DeviceError, match="race of streams"):
        copy()


class Told:
    """The driver's library: it notes what it is asked, and answers that GPUs reach each other."""

    def __init__(self, can):
        self.can, self.asked = can, []

    def __getattr__(self, name):
        def call(*given):
            if hasattr(given[0], "_obj"):
                made = {"cuDeviceGet": 40 + given[-1], "cuDeviceCanAccessPeer": self.can}
                given[0]._obj.value = made.get(name, 500 + given[-1])
                given = given[1:]
            self.asked.append((name, [list(x) if hasattr(x, "_length_") else x for x in given]))
            return 0

        return call


def test_what_the_driver_is_asked():
    told = Told(1)
    library = Library(told)
    assert [library.context(k) for k in range(2)] == [540, 541]
    told.asked.clear()
    assert library.reach(1, 0)
    assert told.asked[2:] == [
        ("cuDeviceCanAccessPeer", [41, 40]), ("cuDeviceGetDefaultMemPool", [40]),
        ("cuMemPoolSetAccess", [540, [1, 41, 3], 1]),
    ]  # fmt: skip
    told.asked.clear()
    library.copy_peer((1000, 2000), (1, 0), 64, 9)
    assert told.asked == [("cuMemcpyPeerAsync", [1000, 541, 2000, 540, 64, 9])]
    told.can = 0
    assert not library.reach(1, 0)

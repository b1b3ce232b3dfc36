"""Resources: scratch memory that grows to the largest request, and generators by device."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from gnomon import cpu, engine, resource
from gnomon.base import ParamError, ShapeError
from gnomon.dtype import float64
from gnomon.resource import ResourceRequest, request
from gnomon.runtime.devices import pool


def test_scratch_memory_never_costs_more_than_the_largest_request():
    space = resource.temp_space(cpu(77))
    pool.release_all()  # an idle block that is somewhat larger would be taken
    before = pool.stats().used
    for size in (10, 1000, 50, 250_000, 3):
        assert space.get_space((size,)).shape == (size,)
    grown = pool.stats().used - before
    assert 1_000_000 <= grown <= 1_130_000
    first = space.get_space((4, 5))
    again = space.get_space((2, 3), None, "float64")
    assert (first.address, again.dtype) == (again.address, float64)


def test_the_engine_lets_one_user_in_at_a_time():
    one = engine.ThreadedEngine(workers=3)
    space, inside, seen = resource.temp_space(cpu(78)), [], []

    def use(run_ctx, number):
        inside.append(number)
        scratch = space.get_space((100,)).numpy()
        scratch[:] = number
        threading.Event().wait(0.002)
        seen.append((scratch == number).all() and len(inside) == 1)
        inside.clear()

    for number in range(10):
        one.push_sync(lambda ctx, n=number: use(ctx, n), None, (), [space.var])
    one.stop()
    assert seen == [True] * 10


def test_requests():
    wanted = ResourceRequest("kRandom"), ResourceRequest(ResourceRequest.kTempSpace)
    found = [resource.request(each, cpu(79)) for each in wanted]
    assert found[0] is resource.generator(cpu(79))
    assert found[0].get_random() is found[0]
    assert found[1] is resource.temp_space(cpu(79))
    with pytest.raises(ParamError, match="expected kRandom or kTempSpace, got 'kTemp'"):
        ResourceRequest("kTemp")
    with pytest.raises(ParamError, match="got 7"):
        ResourceRequest(7)


def test_positions_are_given_out_once():
    generator, got = resource.Generator(cpu(0), 5), []

    def draw():
        got.extend(generator.reserve(3) for _ in range(500))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(position for _, position in got) == list(range(0, 6000, 3))
    assert {seed for seed, _ in got} == {5}
    generator.seed(2**64 + 9)
    assert generator.reserve(1) == (9, 0)


def test_a_seed_reaches_devices_that_come_later():
    resource.seed(123)
    assert resource.generator(cpu(90)).reserve(0) == resource.Generator(cpu(90), 123).reserve(0)
    seeds = {resource.Generator(cpu(k), 123).reserve(0)[0] for k in range(50)}
    assert len(seeds) == 50
    with pytest.raises(ParamError, match="an integer, got 'x'"):
        resource.seed("x")
    resource.seed(np.int64(0))


def test_scratch_memory_has_no_negative_size():
    with pytest.raises(ShapeError, match="get_space: argument 'shape'"):
        request(ResourceRequest("kTempSpace")).get_space((2, -1))

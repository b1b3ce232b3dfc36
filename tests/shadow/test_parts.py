"""Tensors over memory that may not be written, over none any more, and parts of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ParamError
from gnomon.shadow import Tensor, TensorContainer

READ_ONLY = {
    "array": lambda x: x,
    "buffer": memoryview,
    "bytes": lambda x: np.frombuffer(x.tobytes(), np.float32),
    "broadcast": lambda x: np.broadcast_to(np.float32(0), x.shape),
}


@pytest.mark.parametrize("how", READ_ONLY)
def test_read_only_memory_is_read_and_never_written(how):
    x = np.zeros(6, np.float32)
    x.flags.writeable = False
    fixed, free = Tensor(READ_ONLY[how](x)), TensorContainer((6,), init=1.0)
    assert not fixed.numpy().flags.writeable and not fixed[1:].numpy().flags.writeable

    def double(dest):
        dest[:] = free * 2.0

    def add(dest):
        dest += free

    def fill(dest):
        dest[1:3] = 7.0

    def fill_both(dest):
        shadow.concat(dest, free, 0)[:] = 1.0

    by_jit = shadow.jit(double)
    for write in (double, add, fill, fill_both, by_jit):
        for _ in range(4):  # learnt for memory that may be written to
            write(TensorContainer((6,), init=3.0))
        before = free.numpy().copy()
        for dest in (fixed, fixed[0:6], Tensor(fixed)):
            with pytest.raises(ParamError, match="memory to write to"):
                write(dest)
        np.testing.assert_array_equal(free.numpy(), before)
    for _ in range(4):
        free[:] = free + fixed
    np.testing.assert_array_equal(fixed.numpy(), x)
    assert Tensor(b"abc").numpy().tolist() == [97, 98, 99]


FREED = {
    "destination": lambda t, empty: t.assign(1.0),
    "operand": lambda t, empty: empty.assign(t),
    "below": lambda t, empty: empty.assign(t * 2.0 + 1.0),
    "view": lambda t, empty: t[0:1],
    "flat": lambda t, empty: t.flat_to_1d(),
    "array": lambda t, empty: np.asarray(t),
    "again": lambda t, empty: shadow.free_space(t),
}


@pytest.mark.parametrize("use", FREED)
def test_a_freed_tensor_is_not_used(use):
    t, empty = shadow.alloc_space((3, 4)), TensorContainer((0, 0))
    shadow.free_space(t)
    for _ in range(3):
        with pytest.raises(ValueError, match="memory"):
            FREED[use](t, empty)
    t.resize((2, 2))
    t[:] = 1.0
    assert t.numpy().sum() == 4


def test_numbers_in_arrays_without_axes_are_numbers():
    t = TensorContainer((3,), init=2.0)
    t[:] = t * np.array(2.0) + np.array(1)
    t += np.array(0.5, np.float16)
    assert t.numpy().tolist() == [5.5] * 3
    t[:] = shadow.fn.maximum(np.array(7), t)
    assert t.numpy().tolist() == [7] * 3
    t[:] = np.array(-1.0)
    assert t.numpy().tolist() == [-1] * 3
    with pytest.raises(TypeError, match="Tensor wraps arrays"):
        t[:] = t + np.ones(3)


@pytest.mark.parametrize("key", "0:2, 1:3|2, 3|:, 0|1:, ::-2|-1, ::-1|0:0, 2|1,".split("|"))
def test_parts_by_one_key_for_each_axis(key):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    names = {"ours": Tensor(x.copy()), "theirs": x.copy()}
    for _ in range(4):  # learnt
        for name in ("ours", "theirs"):
            exec(f"{name}[{key}] = 9.0; {name}[{key}] += 1.0", names)
    np.testing.assert_array_equal(names["ours"].numpy(), names["theirs"])
    ours, theirs = eval(f"ours[{key}]", names), eval(f"theirs[{key}]", names)
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_keys_that_mean_no_part():
    t = Tensor(np.zeros((3, 4), np.float32))
    for key, error in [((1, 1, 1), IndexError), ((0, 9), IndexError), ((0, "a"), TypeError)]:
        with pytest.raises(error, match="Tensor: argument 'index'"):
            t[key]

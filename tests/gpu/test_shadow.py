"""The tensor language on simulated GPUs: handles, copies, streams, memory shared with others."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from gnomon import config, shadow
from gnomon import context as contexts
from gnomon.base import DeviceError, DTypeError, ParamError, ShapeError
from gnomon.expr import fn
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda import gpu as gpus
from gnomon.runtime.devices.cuda.simulated import MEMORY
from gnomon.shadow import Stream, TBlob, Tensor, TensorContainer

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def on(array: np.ndarray, device: str = shadow.gpu, pad: bool = True) -> TensorContainer:
    """An array's numbers there."""
    made = TensorContainer(array.shape, array.dtype, None, pad, device)
    shadow.copy(made, Tensor(array))
    return made


def test_statements_and_reading_back():
    x = on(X)
    y = TensorContainer((3, 4), device=shadow.gpu, init=1.0)
    y[:] = fn.sigmoid(x) * 2.0 + y
    y -= 1.0
    np.testing.assert_allclose(y.numpy(), 2 / (1 + np.exp(-X)), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(x), X)
    assert x[1, 2] == 6.0
    assert x.device == "gpu(0)" and x.stride_ == 16
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1.0


def test_views_share_memory():
    x = on(X)
    x[1:3] *= 10.0
    x[:, 1] = 0.5
    want = X.copy()
    want[1:3] *= 10
    want[:, 1] = 0.5
    np.testing.assert_array_equal(x.numpy(), want)
    np.testing.assert_array_equal(x[::-1].numpy(), want[::-1])
    np.testing.assert_array_equal(shadow.flip(x, 1).numpy(), want[:, ::-1])
    for _ in range(4):  # native code knows views that came before
        assert x[1].device == "gpu(0)"
        np.testing.assert_array_equal(x[1].numpy(), want[1])


@pytest.mark.parametrize("other", ["cpu", "gpu(1)"])
def test_two_devices_in_one_statement_are_refused(other):
    x, y = on(X), TensorContainer((3, 4), device=other, init=0.0)
    for dest, value in ((x, y), (y, x), (x, x + y), (y, y * x)):
        for _ in range(3):  # the same each time, whatever has been learned meanwhile
            message = rf"expected data on {dest.device}".replace("(", r"\(").replace(")", r"\)")
            with pytest.raises(DeviceError, match=message):
                dest[:] = value * 1.0
    np.testing.assert_array_equal(x.numpy(), X)


def test_the_processor_and_a_gpu_are_told_apart_when_statements_come_again():
    for _ in range(5):
        for device in ("cpu", "gpu", "gpu(1)"):
            x = on(X, device)
            x += x * 2.0
            np.testing.assert_array_equal(x.numpy(), X * 3)


@pytest.mark.parametrize("ends", [("cpu", "gpu"), ("gpu", "cpu"), ("gpu", "gpu(1)"), ("gpu",) * 2])
@pytest.mark.parametrize("dense", [True, False])
def test_copies(ends, dense):
    """Between all memories and layouts; the source may be written to at once."""
    a, b = on(X, ends[0], not dense), TensorContainer((3, 4), "float32", 0.0, not dense, ends[1])
    shadow.copy(b, a)
    a *= 0.0
    np.testing.assert_array_equal(b.numpy(), X)
    part, column = TensorContainer((3,), device=ends[0]), b[:, 2]
    shadow.copy(part, column)
    np.testing.assert_array_equal(part.numpy(), X[:, 2])
    shadow.copy(column, TensorContainer((3,), init=7.0, device=ends[0]))
    np.testing.assert_array_equal(b.numpy()[:, 2], 7)
    with pytest.raises(ShapeError, match=r"expected shape \(3,\)"):
        shadow.copy(part, b)
    with pytest.raises(DTypeError, match="expected dtype float32"):
        shadow.copy(part, TensorContainer((3,), "int32", device=ends[1]))


def test_data_stays_where_it_is():
    with pytest.raises(DeviceError, match="expected the device of the data, cpu"):
        Tensor(X, device=shadow.gpu)
    with pytest.raises(DeviceError, match=r"expected the device of the data, gpu\(0\)"):
        Tensor(on(X), device=shadow.gpu(1))
    assert Tensor(on(X)).device == "gpu(0)"
    assert Tensor(on(X), device="gpu").device == "gpu(0)"
    flat = Tensor(on(X, pad=False), shape=(6, 2))
    np.testing.assert_array_equal(flat.numpy(), X.reshape(6, 2))
    with pytest.raises(ShapeError, match="within 12 elements"):
        Tensor(on(X, pad=False), shape=(7, 2))


def test_devices_by_name_and_number():
    assert (shadow.gpu, shadow.gpu(1), shadow.cpu(3)) == ("gpu", "gpu(1)", "cpu")
    shadow.set_device(shadow.gpu(1))
    assert TensorContainer((2,), device=shadow.gpu).device == "gpu(1)"
    shadow.set_device("gpu(0)")
    assert TensorContainer((2,), device=shadow.gpu).device == "gpu(0)"
    shadow.set_device("cpu")
    for wrong in ("gpu(2)", shadow.gpu(17)):
        with pytest.raises(DeviceError, match="expected a GPU below 2"):
            TensorContainer((2,), device=wrong)
    for wrong in ("gpu(x)", "gpu()", "gpu1", "tpu"):
        with pytest.raises(DeviceError, match="expected one of cpu"):
            TensorContainer((2,), device=wrong)
    blob = TBlob(on(X))
    assert blob.dev_mask_ == shadow.kDevGPU and TBlob(X).dev_mask_ == shadow.kDevCPU


def test_without_a_gpu_the_error_says_why():
    with (
        config.using(gpu="off"),
        pytest.raises(DeviceError, match=r"gpu\(0\): no GPU can be used: the setting `gpu` is off"),
    ):
        TensorContainer((2,), device=shadow.gpu)
    with config.using(gpu="off"), pytest.raises(DeviceError, match=r"gpu\(0\): no GPU can be used"):
        pool.allocate(8, contexts.gpu(0))


def test_copied_and_pickled():
    x = on(X)
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.device == "gpu(0)" and made.dptr_ != x.dptr_
        np.testing.assert_array_equal(made.numpy(), X)


def test_resizing_and_freeing():
    x = on(X)
    x.resize((100, 30))
    x[:] = 2.0
    assert x.device == "gpu(0)" and x.numpy().sum() == 6000
    space = shadow.alloc_space((4,), device=shadow.gpu)
    shadow.free_space(space)
    with pytest.raises(ParamError, match="freed"):
        space[:] = 1.0


def test_empty_tensors():
    x = TensorContainer((0, 4), device=shadow.gpu, init=1.0)
    x += 1.0
    assert x.numpy().shape == (0, 4)
    shadow.copy(x, Tensor(np.zeros((0, 4), np.float32)))


def test_functions_of_several_statements():
    @shadow.jit
    def step(w, g, rate):
        w -= rate * g
        w *= 0.5

    w, g = on(X), on(X)
    for rate in (0.5, 0.25, 0.5):
        step(w, g, rate)
    want = X
    for rate in (0.5, 0.25, 0.5):
        want = (want - rate * X) * 0.5
    np.testing.assert_array_equal(w.numpy(), want)

    @shadow.jit
    def captured(scale):
        w[:] = g * scale

    for scale in (2.0, 3.0, 4.0):
        captured(scale)
    np.testing.assert_array_equal(w.numpy(), X * 4)


@pytest.mark.parametrize("draw", ["uniform", "gaussian", "exponential", "gamma", "poisson"])
def test_random_numbers_are_those_of_the_processor(draw):
    drawn = []
    for device in (shadow.gpu, shadow.cpu):
        x = TensorContainer((5, 7), device=device)
        stream = shadow.Random(device, 11)
        for _ in range(2):
            getattr(stream, f"sample_{draw}")(x)
        drawn.append(x.numpy())
    np.testing.assert_allclose(*drawn, rtol=1e-5, atol=1e-6)


def test_what_is_done_by_the_processor_comes_back():
    keys, values = on(np.array([3, 1, 2], np.float32)), on(np.arange(3, dtype=np.float32))
    shadow.sort_by_key(keys, values)
    np.testing.assert_array_equal(keys.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(values.numpy(), [1, 2, 0])
    assert shadow.make_plan(on(X) * 2.0).eval(1, 2) == 12.0
    x = on(X)
    shadow.index_fill(x, on(np.array([2, 0], np.int32)), on(X[:2] + 50))
    np.testing.assert_array_equal(x.numpy(), np.stack([X[1] + 50, X[1], X[0] + 50]))


# -- streams --------------------------------------------------------------------------------------


def test_a_stream_of_each_tensor():
    stream = shadow.new_stream(shadow.gpu)
    x = on(X)
    x.stream_ = stream
    for _ in range(5):
        x += 1.0
    stream.wait()
    assert stream.check_idle()
    np.testing.assert_array_equal(x.numpy(), X + 5)
    assert copy.copy(x).stream_ is stream
    shadow.delete_stream(stream)
    shadow.shutdown_tensor_engine(shadow.gpu)


def test_a_stream_of_another_device_is_refused():
    x = on(X)
    x.stream_ = Stream(shadow.gpu(1))
    with pytest.raises(DeviceError, match=r"its stream_ is one of gpu\(1\)"):
        x += 1.0


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_on_several_streams_equal_the_serial_run(seed, simulated):
    simulated.chance.seed(seed)
    program(seed)


def program(seed):
    """Statements and copies between tensors of four streams, memory given back on the way."""
    rng = np.random.default_rng(seed)
    streams = [None, *(shadow.new_stream(shadow.gpu) for _ in range(3))]
    here = [rng.integers(0, 9, (4, 5)).astype(np.float32) for _ in range(6)]
    there = [on(a) for a in here]
    for _ in range(40):
        a, b, c = rng.integers(0, 6, 3)
        there[a].stream_ = streams[rng.integers(0, 4)]
        kind = rng.integers(0, 4)
        if kind == 0:
            here[a] = here[b] * 0.5 + here[c]
            there[a][:] = there[b] * 0.5 + there[c]
        elif kind == 1:  # a new one: the old memory returns to the pool with work under way
            here[a], source = here[b].copy(), there[b]
            there[a] = TensorContainer((4, 5), device=shadow.gpu)
            there[a].stream_ = streams[rng.integers(0, 4)]
            shadow.copy(there[a], source)
            del source
        elif kind == 2:
            here[a] = here[a] - here[a].sum(0)
            there[a] -= shadow.broadcast_to(
                shadow.reduce(there[a], "sum", (0,), keepdims=True), (4, 5)
            )
        else:
            np.testing.assert_allclose(there[b].numpy(), here[b], rtol=1e-5)
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_without_the_ledger_streams_race(monkeypatch, simulated, seed):
    """It is what orders them, and the simulated driver sees where it does not, in any order."""
    simulated.chance.seed(seed)
    monkeypatch.setattr(gpus.Ledger, "before", lambda *ends: set())
    x, y = on(X), on(X)
    y.stream_ = shadow.new_stream(shadow.gpu)

    def race() -> None:
        x[:] = 1.0
        y[:] = x * 2.0
        gpus.get(0).synchronise()

    with pytest.raises(DeviceError, match="race of streams: kernel_0 on stream"):
        race()


# -- memory ---------------------------------------------------------------------------------------


def test_memory_that_is_not_there_says_who_holds_what():
    held = [TensorContainer((1 << 20,), device=shadow.gpu) for _ in range(3)]
    with pytest.raises(
        DeviceError, match=r"gpu\(0\): cannot allocate .* GiB: the device has no more; .*3 of 4 MiB"
    ):
        TensorContainer((MEMORY,), device=shadow.gpu)
    assert pool.stats("gpu").used >= 12 << 20
    held.clear()
    gc.collect()
    assert pool.stats("gpu").used == 0
    assert pool.release_all("gpu(0)") >= 12 << 20
    gpus.get(0).synchronise()
    assert gpus.get(0).memory() == (MEMORY, MEMORY)


class ByInterface:
    """What another library's array offers."""

    def __init__(self, tensor: Tensor) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__
        self.tensor = tensor


class ByCapsule:
    """The same by DLPack."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.asked = None

    def __dlpack__(self, stream: int | None = None) -> object:
        self.asked = stream
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("way", [ByInterface, ByCapsule])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "bool"])
def test_memory_shared_with_others(way, dtype):
    array = (X % 2).astype(dtype)
    x = on(array)
    x.stream_ = Stream(shadow.gpu)
    other = Tensor(way(x[:, 1:3]))
    assert (other.device, other.dtype.name, other.strides) == ("gpu(0)", dtype, x.strides)
    np.testing.assert_array_equal(other.numpy(), array[:, 1:3])
    if dtype != "bool":
        other *= 2
        np.testing.assert_array_equal(x.numpy()[:, 1:3], array[:, 1:3] * 2)


def test_capsules_keep_memory_alive_and_let_go():
    x = on(X)
    address = x.dptr_
    held = Tensor(ByCapsule(x))
    unused = x.__dlpack__()
    del x
    gc.collect()
    assert TensorContainer((3, 4), device=shadow.gpu).dptr_ != address
    np.testing.assert_array_equal(held.numpy(), X)
    del held, unused
    TensorContainer((1,), device=shadow.gpu).__dlpack__()  # finds those that no consumer took
    gc.collect()
    assert TensorContainer((3, 4), device=shadow.gpu).dptr_ == address


def test_bfloat16_has_no_name_in_the_interface():
    x = TensorContainer((3,), "bfloat16", device=shadow.gpu, init=1.0)
    with pytest.raises(DTypeError, match="no name for bfloat16"):
        x.__cuda_array_interface__
    assert Tensor(ByCapsule(x)).dtype.name == "bfloat16"
    assert not hasattr(Tensor(X), "__cuda_array_interface__")


def test_read_only_memory_of_others_is_refused():
    offered = ByInterface(on(X))
    address, _ = offered.__cuda_array_interface__["data"]
    offered.__cuda_array_interface__["data"] = address, True
    with pytest.raises(ShapeError, match="memory to read and write"):
        Tensor(offered)


def test_the_interface_is_asked_of_the_gpu_whose_memory_it_is():
    x = TensorContainer((3, 4), device=shadow.gpu(1), init=2.0)
    other = Tensor(ByInterface(x[1:]))
    assert other.device == "gpu(1)"
    other += 1
    np.testing.assert_array_equal(x.numpy(), np.full((3, 4), 3.0) - [[1], [0], [0]])


HOST = np.ones(4)


@pytest.mark.parametrize("address", [12345, HOST.ctypes.data, 1 << 63], ids=["low", "host", "high"])
def test_memory_that_is_no_gpu_s_is_refused(address):
    offered = ByInterface(on(X))
    offered.__cuda_array_interface__["data"] = address, False
    with pytest.raises(DeviceError, match="no memory of a GPU"):
        Tensor(offered)


NOTHING = """
import sys
import numpy as np
from gnomon import shadow
t = shadow.Tensor(np.ones(4, np.float32))
t[:] = t * 2.0 + 1.0
shadow.copy(t, shadow.TensorContainer((4,), init=1.0))
shadow.Stream().wait()
if "arrays" in sys.argv:
    import gnomon as mx
    net = mx.gluon.nn.Dense(2)
    net.initialize(ctx=mx.cpu())
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    with mx.autograd.record():
        y = net(mx.nd.ones((2, 3)))
    y.backward()
    trainer.step(2)
    bound = (mx.sym.Variable("x") * 2).simple_bind(mx.cpu(), x=(2,))
    bound.forward()
    mx.nd.waitall()
parts = ("cuda", "gpu", "lockstep", ".grid", "foreign", "statements.transfer", "remote.")
print(*[m for m in sys.modules if m.startswith("gnomon") and any(p in m for p in parts)])
"""


@pytest.mark.parametrize("what", ["expressions", "arrays"])
def test_nothing_of_gpus_is_loaded_where_none_is_used(what):
    done = subprocess.run(
        [sys.executable, "-c", NOTHING, what], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


FORKED = """
import os
import numpy as np
from gnomon import shadow
from gnomon.base import DeviceError
from gnomon.context import num_gpus
if WHAT == "used":
    x = shadow.TensorContainer((4,), init=1.0, device="gpu")
else:
    assert num_gpus()
if not os.fork():
    assert not num_gpus()
    try:
        if WHAT == "counted":
            x = shadow.TensorContainer((4,), init=1.0, device="gpu")
        x += 1.0
    except DeviceError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("what", ["used", "counted"])
def test_a_forked_child_is_refused(what):
    with_gpu = {**os.environ, "GNOMON_GPU": "simulated"}
    program = f"WHAT = {what!r}\n{FORKED}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=with_gpu
    )
    assert "a forked process cannot use the GPUs that its parent uses" in done.stdout

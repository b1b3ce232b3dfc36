"""Data: what a tensor wraps, views, containers, blobs, memory, shapes, streams."""

from __future__ import annotations

import array
import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.base import DeviceError, DTypeError, ParamError, ShapeError
from gnomon.expr.node import Buffer
from gnomon.runtime.devices import pool
from gnomon.shadow import TBlob, Tensor, TensorContainer

DTYPES = ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool")


class Interface:
    """Memory known by `__array_interface__` alone."""

    def __init__(self, owner: np.ndarray) -> None:
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


class Exporter:
    """Memory known by DLPack alone."""

    def __init__(self, owner: np.ndarray) -> None:
        self.owner = owner

    def __dlpack__(self, **how):
        return self.owner.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()


# -- wrapping --------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [np.asarray, Interface, Exporter, memoryview, Tensor])
def test_memory_is_wrapped_without_a_copy(wrap):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = Tensor(wrap(x))
    assert (t.dptr_, t.shape_, t.dtype) == (x.ctypes.data, (2, 3), dt.float32)
    t += 1.0
    assert x[1, 2] == 6


def test_a_bare_capsule_is_refused():
    with pytest.raises(DTypeError, match="a PyCapsule; give what made it"):
        Tensor(np.ones(2).__dlpack__())


def test_buffers_of_the_standard_library():
    numbers, raw = array.array("d", [1, 2, 3]), bytearray(4)
    t, u = Tensor(numbers), Tensor(raw)
    t *= 2.0
    u[:] = 7
    assert (list(numbers), bytes(raw)) == ([2, 4, 6], bytes([7] * 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    x = np.ones((2, 3), dt.of(dtype).numpy)
    t = Tensor(x)
    assert t.dtype.name == dtype
    t[:] = t + t if dtype != "bool" else t
    assert x.astype("f").max() == (1 if dtype == "bool" else 2)
    assert t.numpy().dtype == x.dtype


def test_a_tensor_keeps_its_owner_and_frees_nothing():
    class Owned(np.ndarray):
        pass

    owner = np.arange(4, dtype=np.float32).view(Owned)
    alive = weakref.ref(owner)
    view = Tensor(owner)[1:3]
    shown = view.numpy()
    del owner, view
    gc.collect()
    assert alive() is not None
    assert shown.tolist() == [1, 2]
    del shown
    gc.collect()
    assert alive() is None


def test_numpy_and_dlpack_see_the_tensor():
    t = TensorContainer((2, 3), init=1.0)
    for seen in (t.numpy(), np.asarray(t), np.from_dlpack(t)):
        assert seen.__array_interface__["data"][0] == t.address
    assert np.asarray(t, np.float64).dtype == np.float64
    assert np.array(t).__array_interface__["data"][0] != t.address


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Tensor([1, 2]), DTypeError, "a list; numpy.array makes one of numbers"),
        (lambda: Tensor(np.zeros(2, np.complex64)), DTypeError, "complex64"),
        (lambda: Tensor(np.zeros(2, ">f4")), DTypeError, ">f4"),
        (lambda: Tensor(np.zeros(2, object)), DTypeError, "O"),
        (lambda: Tensor(np.zeros(3, "f4,i1")["f0"]), ShapeError, "whole elements of 4 bytes"),
        (lambda: Tensor(np.zeros(3, "f"), device="gpu"), DeviceError, "gpu"),
        (lambda: Tensor(np.zeros(6, "f"), shape=(2, 4)), ShapeError, "within 6 elements"),
        (lambda: Tensor(np.zeros(6, "f"), shape=(-2, -3)), ShapeError, "at least 0"),
        (lambda: Tensor(np.zeros(6, "f"), shape=(2, 2.5)), ShapeError, "whole numbers"),
        (lambda: Tensor(np.zeros(6, "f"), (2, 3), strides=(4, 1)), ShapeError, "within 6"),
        (lambda: Tensor(np.zeros(6, "f"), (2, 3), strides=(-3, 1)), ShapeError, "within 6"),
        (lambda: Tensor(np.zeros(6, "f")[::2], shape=(3,)), ShapeError, "a dense array"),
        (lambda: Tensor.from_address(0, (3,)), ParamError, "address"),
    ],
)
def test_what_cannot_be_wrapped(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_another_shape_and_strides_over_dense_memory():
    x = np.arange(10, dtype=np.float32)
    assert Tensor(x, shape=(5, 2)).numpy().tolist() == x.reshape(5, 2).tolist()
    assert Tensor(x, shape=(2, 3), strides=(5, 1)).numpy().tolist() == [[0, 1, 2], [5, 6, 7]]
    raw = Tensor.from_address(x.ctypes.data, (2, 2), strides=(3, 2), owner=x)
    assert raw.numpy().tolist() == [[0, 2], [3, 5]]


# -- views -----------------------------------------------------------------------------------


def test_indexing_takes_an_axis_and_slicing_keeps_it():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = Tensor(x)
    assert (t[1].shape, t[-1][2].shape, t[0:1].shape) == ((3, 4), (4,), (1, 3, 4))
    assert t[1][2][3] == 23
    np.testing.assert_array_equal(t.slice(1, 2)[0].numpy(), x[1])
    np.testing.assert_array_equal(t[::-1].numpy(), x[::-1])
    assert t[:] is t
    assert [row.shape for row in t] == [(3, 4)] * 2
    assert len(t) == 2


def test_assignment_through_views():
    x = np.zeros((3, 4), np.float32)
    t = Tensor(x)
    t[1][2] = 5
    t[0] = t[1] * 2.0
    t[2:3] = 3
    t[-1] += 1.0
    assert x.tolist() == [[0, 0, 10, 0], [0, 0, 5, 0], [4, 4, 4, 4]]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (2, IndexError),
        (-3, IndexError),
        ("x", TypeError),
        ((0, "y"), TypeError),
        ((0, 0, 0, 0), IndexError),
        (np.array([0, 1]), (TypeError, IndexError)),
        (Ellipsis, TypeError),
    ],
)
def test_indices_that_there_are_not(key, error):
    t = Tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(error, match="Tensor: argument 'index'"):
        t[key]
    with pytest.raises(error, match="Tensor: argument 'index'"):
        t[key] = 1.0
    with pytest.raises(IndexError, match="a tensor with an axis"):
        Tensor(np.float32(1).reshape(()))[0]


def test_sizes_and_flattening():
    dense = TensorContainer((2, 3, 5), pad=False)
    assert (dense.size(1), dense.stride_, dense.mem_size(), dense.mem_size(1)) == (3, 5, 30, 15)
    assert dense.check_contiguous()
    assert (dense.flat_to_1d().shape, dense.flat_to_2d().shape) == ((30,), (6, 5))
    padded = TensorContainer((2, 3, 5), init=1.0)
    assert (padded.stride_, padded.mem_size(), padded.mem_size(2)) == (16, 96, 16)
    assert not padded.check_contiguous()
    assert padded.flat_to_2d().strides == (16, 1)
    with pytest.raises(ShapeError, match="contiguous"):
        padded.flat_to_1d()
    with pytest.raises(ShapeError, match="a dense last axis"):
        _ = Tensor(np.zeros((3, 4), "f").T).stride_
    with pytest.raises(ShapeError, match="size: argument 'axis'"):
        dense.size(3)


# -- containers ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_a_container_are_aligned(dtype):
    t = TensorContainer((3, 5), dtype, init=1)
    size = t.dtype.size
    assert t.address % 64 == 0
    assert t.strides == (-(-5 * size // 64) * 64 // size, 1)
    assert TensorContainer((3, 5), dtype, pad=False).strides == (5, 1)
    assert (t.numpy().astype("f") == 1).all()


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (2, 1, 0, 4)])
def test_containers_of_few_elements(shape):
    t = TensorContainer(shape, init=2.0)
    t += t * 0.5
    assert t.numpy().shape == shape
    assert (t.numpy() == 3).all()


def test_resizing_keeps_the_memory_where_it_suffices():
    t = TensorContainer((8, 16), init=1.0)
    address = t.address
    assert t.resize((4, 10)) is t
    assert (t.shape, t.address) == ((4, 10), address)
    t.resize((100, 100))
    t[:] = 2.0
    assert t.numpy().sum() == 20_000
    assert t.resize((8, 16)).address != address


def test_views_keep_what_they_saw_when_a_container_grows():
    t = TensorContainer((10, 10), init=1.0)
    row, shown = t[3], t.numpy()
    t.resize((300, 300))
    others = [TensorContainer((10, 10), init=9.0) for _ in range(4)]
    row += 1.0
    assert shown[3].tolist() == [2] * 10
    assert shown[4].tolist() == [1] * 10
    assert all((other.numpy() == 9).all() for other in others)


@pytest.mark.parametrize("make", [lambda t: t + 1.0, lambda t: t.T * 2.0, lambda t: t])
def test_an_expression_of_another_size_is_refused(make):
    t, out = TensorContainer((50, 50)), TensorContainer((50, 50), init=3.0)
    e = make(t)
    t.resize((2, 2))
    with pytest.raises(ShapeError, match=r"50.*TensorContainer 2x2"):
        out[:] = e
    assert (out.numpy() == 3).all()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: TensorContainer((2, -3)), ShapeError, "at least 0"),
        (lambda: TensorContainer(5), ShapeError, r"whole numbers, as \(5,\), got 5"),
        (lambda: TensorContainer((2,), "float33"), DTypeError, "float33"),
        (lambda: TensorContainer((2,), "int8", init=0.5), DTypeError, "int8"),
        (lambda: TensorContainer((2,), device="gpu"), DeviceError, "gpu"),
        (lambda: TensorContainer((10**12, 10**4)), DeviceError, "cannot allocate"),
        (lambda: TensorContainer((2,)).resize((-1,)), ShapeError, "resize"),
    ],
)
def test_containers_that_cannot_be(make, error, words):
    with pytest.raises(error, match=words):
        make()


# -- memory ----------------------------------------------------------------------------------


def test_memory_by_hand():
    gc.collect()  # what other tests left would go in the middle
    used = pool.stats().used
    t = shadow.alloc_space((30, 40), "float64")
    assert t.address % 64 == 0
    assert pool.stats().used > used
    row = t[1]
    shadow.free_space(t)
    assert (t.shape, t.address) == ((0, 0), 0)
    row[:] = 1.0  # a view holds the memory until it goes
    del row
    gc.collect()
    assert pool.stats().used == used
    for thing in (t, Tensor(np.zeros(3, np.float32))):
        with pytest.raises(ParamError, match="one that owns memory"):
            shadow.free_space(thing)


def test_copies_between_layouts():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = shadow.new_tensor((3, 2), 0.0)
    assert shadow.copy(t, Tensor(x.T)) is t
    np.testing.assert_array_equal(t.numpy(), x.T)
    with pytest.raises(ShapeError):
        shadow.copy(t, Tensor(x))
    with pytest.raises(DTypeError):
        shadow.copy(t, Tensor(x.T.astype("f8")))


def test_data_without_memory_or_elsewhere_is_refused():
    t = TensorContainer((3,), init=1.0)
    for other in (Buffer((3,)), TensorContainer((3,), device="null")):
        with pytest.raises((ParamError, DeviceError), match="assignment: argument 'operand'"):
            t += other * 2.0
        with pytest.raises((ParamError, DeviceError), match="assignment: argument 'operand'"):
            TensorContainer((3,), device="null").assign(t)
    assert (t.numpy() == 1).all()
    with pytest.raises(ValueError, match="no memory"):
        TensorContainer((3,), device="null").numpy()


# -- blobs -----------------------------------------------------------------------------------


def test_a_blob_gives_tensors_of_what_it_is():
    x = np.zeros((2, 3, 4), np.float32)
    blob = TBlob(x)
    assert (blob.dptr_, blob.shape_, blob.stride_) == (x.ctypes.data, (2, 3, 4), 4)
    assert (blob.dev_mask_, blob.type_flag_, blob.ndim, blob.size()) == (1, 0, 3, 24)
    assert shadow.type_switch(blob.type_flag_) is dt.float32
    blob.get(3, "float32")[:] = 2.0
    shapes = [blob.get_with_shape((4, 6)), blob.flat_to_1d(), blob.flat_to_2d(), blob.flat_to_3d(1)]
    assert [t.shape for t in shapes] == [(4, 6), (24,), (6, 4), (2, 3, 4)]
    assert all(t.address == x.ctypes.data and (t.numpy() == 2).all() for t in shapes)
    assert blob.flat_to_3d(-1).shape == (6, 4, 1)
    assert TBlob(blob).dptr_ == TBlob(Tensor(x)).dptr_ == blob.dptr_


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda b: b.get(2), ShapeError, "expected 3, got 2"),
        (lambda b: b.get(3, "int8"), DTypeError, "expected float32, got int8"),
        (lambda b: b.flat_to_1d("float64"), DTypeError, "expected float32, got float64"),
        (lambda b: b.get_with_shape((5, 5)), ShapeError, "24 contiguous elements"),
        (lambda b: b.get_with_shape((-1, -24)), ShapeError, "at least 0"),
        (lambda b: b.flat_to_3d(3), ShapeError, "axis"),
        (lambda b: TBlob("x"), DTypeError, "a str"),
        (lambda b: shadow.type_switch(99), DTypeError, "99"),
    ],
)
def test_a_blob_refuses_what_it_is_not(ask, error, words):
    with pytest.raises(error, match=words):
        ask(TBlob(np.zeros((2, 3, 4), np.float32)))


def test_type_switch_has_the_flags_of_mxnet():
    flags = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8"}
    flags |= {6: "int64", 7: "bool", 12: "bfloat16"}
    assert {flag: shadow.type_switch(flag).name for flag in flags} == flags
    assert TBlob(np.zeros(2, ml_dtypes.bfloat16)).type_flag_ == 12


# -- shapes ----------------------------------------------------------------------------------


def test_shapes():
    s = shadow.Shape4(2, 3, 4, 5)
    assert (s.size(), s.flat_to_1d(), s.flat_to_2d()) == (120, (120,), (24, 5))
    assert (s.sub_shape(), s.slice(1, 3), s.prod_shape(1, 3)) == ((3, 4, 5), (3, 4), 12)
    assert shadow.convert_layout(s, "NCHW", "NHWC") == (2, 4, 5, 3)
    assert shadow.convert_layout(shadow.Shape3(2, 3, 4), "NWC", "NCW") == (2, 4, 3)
    assert shadow.convert_layout(shadow.Shape5(1, 2, 3, 4, 5), "NCDHW", "NDHWC") == (1, 3, 4, 5, 2)


# -- streams ---------------------------------------------------------------------------------


def test_streams_and_devices():
    shadow.init_tensor_engine()
    shadow.set_device(shadow.cpu)
    stream = shadow.new_stream()
    t = Tensor(np.zeros(3, np.float32), stream=stream)
    t += 1.0
    stream.wait()
    assert stream.check_idle()
    assert t.stream_ is stream
    shadow.delete_stream(stream)
    shadow.shutdown_tensor_engine()
    assert (shadow.kDevCPU, shadow.kDevGPU) == (1, 2)


@pytest.mark.parametrize("ask", ["new_stream", "init_tensor_engine", "set_device"])
def test_devices_that_are_not_there(ask):
    with pytest.raises(DeviceError, match="gpu"):
        getattr(shadow, ask)(shadow.gpu)


# -- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int8"])
def test_deep_copies_and_pickles_have_memory_of_their_own(way, dtype):
    box = TensorContainer((3, 5), dtype, init=1)
    for original in (box, box[1:], Tensor(box.numpy()[:, ::-2]), shadow.flip(box, 0), box[0][:0]):
        made = way(original)
        assert type(made) is type(original)
        assert (made.shape, made.dtype) == (original.shape, original.dtype)
        np.testing.assert_array_equal(made.numpy(), original.numpy())
        made[:] = 0
        assert made.numpy().size == 0 or (original.numpy() == 1).all()
    assert way(box).resize((9, 9)).padded


@pytest.mark.parametrize("way", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copied_expressions_read_copied_memory(way):
    source = np.arange(4, dtype=np.float32)
    e = shadow.flip(Tensor(source) * 2.0 + shadow.Random(seed=3).uniform((4,)) * 0.0, 0)
    made = way(e)
    source[:] = 9
    del source, e
    out = TensorContainer((4,))
    out[:] = made
    assert out.numpy().tolist() == [6, 4, 2, 0]


def test_shallow_copies_look_at_the_same_memory():
    box = TensorContainer((3,), init=1.0)
    look = copy.copy(box)
    del box
    look += 1.0
    assert look.numpy().tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        assert 2.0 in look

"""Products by cuBLAS: what is asked of it is right, and the simulated one refuses what is not."""

from __future__ import annotations

import ctypes
import itertools
import sys
import types

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon import dtype as dtypes
from gnomon.base import DeviceError
from gnomon.expr.call import batch_dot, dot
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import cublas, gpu, wheels
from gnomon.runtime.devices.cuda.blas import Gemm
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.devices.cuda.simulated_blas import SimulatedBlas
from gnomon.runtime.statements.prepare import prepare
from tests.gpu.moved import close, moved, there
from tests.plan.test_expressions import over

G, CPU = mx.gpu(0), mx.cpu()
FLAGS = list(itertools.product((False, True), repeat=2))
NUMBERS = np.random.RandomState(0)
ROUNDING = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-12}


def drawn(*shape, dtype="float32"):
    return NUMBERS.randn(*shape).astype(dtypes.of(dtype).numpy)


def steps_of(value, saver="saveto", dest=None):
    """The steps of a statement on a GPU, and where they store."""
    dest = moved(over(np.full(value.shape, 2, value.dtype.numpy))) if dest is None else dest
    return prepare([Store(dest, saver, there(value))]), dest


def product_of(value, saver="saveto", names=("dot",)):
    """What a statement gives, of steps of these names."""
    steps, dest = steps_of(value, saver)
    assert tuple(step.name for step in steps) == names
    for step in steps:
        step.run()
    return dest.numpy()


# --- what is computed -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("flags", FLAGS)
def test_dot(dtype, flags):
    a, b = drawn(3, 5, dtype=dtype), drawn(5, 4, dtype=dtype)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    given = [over((x.T if flag else x).copy()) for x, flag in zip((a, b), flags, strict=True)]
    close(product_of(dot(*given, *flags)), wide.astype(a.dtype), ROUNDING[dtype])


@pytest.mark.parametrize(
    ("saver", "scale", "want"),
    [("saveto", 1.0, lambda ab: ab), ("plusto", 0.5, lambda ab: 2 + ab / 2),
     ("minusto", -3.0, lambda ab: 2 + 3 * ab)],
)  # fmt: skip
def test_factors_and_savers(saver, scale, want):
    a, b = drawn(3, 5), drawn(5, 4)
    close(product_of(dot(over(a), over(b)) * scale, saver), want(a @ b), 1e-5)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("k", [1, 5])
def test_vectors(m, n, k):
    a, b = drawn(m, k), drawn(k, n)
    close(product_of(dot(over(a), over(b))), a @ b, 1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ROUNDING)
def test_infinite_products_warn_of_nothing(dtype):
    a, b = np.ones((2, 3, 2), dtypes.of(dtype).numpy)
    a[0] = np.inf
    b[1] = 0
    found = product_of(dot(over(a), over(b.T)))
    assert np.isposinf(found[0, [0, 2]]).all() and np.isnan(found[0, 1])


def test_rows_apart_and_columns_dense():
    a, b = drawn(8, 12)[::2, 3:8], drawn(9, 5).T[:, 2:6]
    close(product_of(dot(over(a), over(b))), a @ b, 1e-5)


def test_what_cublas_cannot_read_is_copied():
    a, b = drawn(6, 10)[::2, ::2], drawn(5, 8)[::-1, 1:5]
    close(product_of(dot(over(a), over(b)), names=("copy", "copy", "dot")), a @ b, 1e-5)


def test_a_destination_with_gaps():
    a, b, c = drawn(3, 5), drawn(5, 4), drawn(3, 9)
    whole = moved(over(c))
    address = whole.address + 8
    dest = type(whole)((3, 4), whole.dtype, (9, 1), address, whole.owner, whole.device)
    for step in steps_of(dot(over(a), over(b)), dest=dest)[0]:
        step.run()
    want = c.copy()
    want[:, 2:6] = a @ b
    close(whole.numpy(), want, 1e-5)


@pytest.mark.parametrize("flags", FLAGS)
def test_batches(flags):
    a, b = drawn(4, 3, 5), drawn(4, 5, 2)
    swapped = [x.swapaxes(1, 2) if flag else x for x, flag in zip((a, b), flags, strict=True)]
    for given in (swapped, [np.ascontiguousarray(x) for x in swapped]):
        close(product_of(batch_dot(*map(over, given), *flags)), a @ b, 1e-5)
    one = np.broadcast_to(b[:1], b.shape)
    close(product_of(batch_dot(over(a), over(one))), a @ one, 1e-5)


def test_matrices_between_each_others_rows():
    a, b = drawn(3, 4, 2), drawn(2, 4, 5)
    found, want = (
        nd.linalg_gemm2(nd.array(a, ctx=ctx), nd.array(b, ctx=ctx), axis=-3) for ctx in (G, CPU)
    )
    close(found.asnumpy(), want.asnumpy(), 1e-5)


def test_an_epilogue_and_operands_that_are_expressions():
    a, b, c = drawn(3, 5), drawn(5, 4), drawn(3, 4)
    value = dot(over(a) + 1.0, over(b)) + over(c)
    close(product_of(value, names=("kernel", "dot", "kernel")), (a + 1) @ b + c, 1e-5)


def test_integers_and_nothing_to_add_are_kernels():
    a, b = np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((3, 2), np.int32)
    np.testing.assert_array_equal(product_of(dot(over(a), over(b)), names=("kernel",)), a @ b)
    empty = over(np.zeros((2, 0), np.float32)), over(np.zeros((0, 3), np.float32))
    np.testing.assert_array_equal(product_of(dot(*empty), names=("kernel",)), np.zeros((2, 3)))


def test_without_the_library_the_expression_is_computed(monkeypatch):
    monkeypatch.setattr(Simulated, "blas", lambda driver: None)
    a, b = drawn(3, 5), drawn(5, 4)
    close(product_of(dot(over(a), over(b)), names=("kernel",)), a @ b, 1e-5)


OPERATORS = {
    "FullyConnected": (lambda x, w, b: nd.FullyConnected(x, w, b, num_hidden=3), (4, 5), (3, 5), 3),
    "dot": (lambda x, y: nd.dot(x, y, transpose_b=True), (4, 5), (3, 5)),
    "batch_dot": (nd.batch_dot, (2, 3, 4), (2, 4, 5)),
    "gemm2": (
        lambda x, y: nd.linalg_gemm2(x, y, alpha=0.5, transpose_a=True), (2, 4, 3), (2, 4, 5),
    ),
    "attention": (
        lambda x: nd.contrib.interleaved_matmul_selfatt_qk(x, heads=2), (3, 2, 2 * 3 * 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_and_their_gradients(monkeypatch, name):
    function, *shapes = OPERATORS[name]
    given = [drawn(*np.atleast_1d(shape)) for shape in shapes]
    asked = []
    gemm = SimulatedBlas.gemm
    monkeypatch.setattr(SimulatedBlas, "gemm", lambda *x: (asked.append(x), gemm(*x))[1])
    found = []
    for ctx in (G, G, CPU):
        arrays = [nd.array(x, ctx=ctx) for x in given]
        for x in arrays:
            x.attach_grad()
        with autograd.record():
            y = function(*arrays)
        y.backward(y)
        found.append([v.asnumpy() for v in (y, *[x.grad for x in arrays])])
    assert len(asked) >= 6  # forward, and two gradients, of each of both passes
    for first, second, want in zip(*found, strict=True):
        close(first, want, 1e-5)
        np.testing.assert_array_equal(first, second)


def test_two_queues_have_a_handle_each(simulated):
    a, b = drawn(20, 30), drawn(30, 20)
    device = gpu.get(0)
    queues = [device.default, device.queue()]
    x, y = moved(over(a)), moved(over(b))
    dests = [moved(over(np.zeros((20, 20), np.float32))) for _ in queues]
    for queue, dest in zip(queues, dests, strict=True):
        (step,) = prepare([Store(dest, "saveto", dot(x, y))])
        step.queue = queue
        step.run()
    device.synchronise()
    for dest in dests:
        close(dest.numpy(), a @ b, 1e-5)


def test_no_memory_is_kept_but_the_workspace():
    pool = mx.context.gpu_memory_info
    x = nd.ones((8, 8), ctx=G)
    nd.dot(x, x).wait_to_read()
    free = pool(0)
    for _ in range(5):
        nd.dot(x, x).wait_to_read()
    assert pool(0) == free


# --- what is refused ------------------------------------------------------------------------------

WHAT = Gemm(dtypes.float32, 2, 3, 4, False, False, 1.0, 0.0, 2, 4, 2, 1, 0, 0, 0)


@pytest.fixture
def made(simulated):
    """A handle with its stream, and three blocks of 64 bytes."""
    simulated.enter(simulated.context(0))
    blas, stream = simulated.blas(), simulated.create_stream()
    handle = blas.create()
    blas.set_stream(handle, stream)
    blocks = [simulated.allocate(64, stream) for _ in range(3)]
    for block in blocks:
        simulated.fill(block, 0, 64, stream)
    return simulated, blas, handle, stream, blocks


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"lda": 1}, "lda is 1, expected at least 2"),
        ({"transpose_a": True, "lda": 3}, "lda is 3, expected at least 4"),
        ({"ldb": 3}, "ldb is 3, expected at least 4"),
        ({"transpose_b": True, "ldb": 2}, "ldb is 2, expected at least 3"),
        ({"ldc": 1}, "ldc is 1, expected at least 2"),
        ({"k": -1}, "a negative size"),
    ],
)
def test_sizes_are_refused(made, change, told):
    _, blas, handle, _, blocks = made
    with pytest.raises(DeviceError, match=f"CUBLAS_STATUS_INVALID_VALUE.*{told}"):
        blas.gemm(handle, replaced(**change), *blocks)


def replaced(**change):
    return Gemm(**{**{k: getattr(WHAT, k) for k in WHAT.__slots__}, **change})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch": 2, "sa": 16, "sb": 16}, "matrices of c overlap"),
        ({"lda": 20}, "ILLEGAL_ADDRESS: .*reads of 248 bytes"),
        ({"ldc": 9}, "ILLEGAL_ADDRESS: .*writes of 80 bytes"),
        ({"batch": 2, "sc": 6, "sb": 8}, "ILLEGAL_ADDRESS: .*reads of 80 bytes"),
    ],
)
def test_memory_outside_is_found(made, change, told):
    simulated, blas, handle, stream, blocks = made
    with pytest.raises(DeviceError, match=told):
        finished(simulated, stream, lambda: blas.gemm(handle, replaced(**change), *blocks))


def finished(simulated, stream, work):
    work()
    simulated.wait_stream(stream)


def test_memory_that_is_freed_is_found(made):
    simulated, blas, handle, stream, (a, b, c) = made
    simulated.free(b, stream)
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS: cublasGemm.* reads"):
        finished(simulated, stream, lambda: blas.gemm(handle, WHAT, a, b, c))


def test_a_result_on_an_operand_is_found(made):
    simulated, blas, handle, stream, (a, b, _) = made
    with pytest.raises(DeviceError, match="c overlaps b"):
        finished(simulated, stream, lambda: blas.gemm(handle, WHAT, a, b, b + 8))


def test_odd_addresses_are_refused(made):
    _, blas, handle, _, (a, b, c) = made
    with pytest.raises(DeviceError, match=r"b at .*not aligned"):
        blas.gemm(handle, WHAT, a, b + 2, c)


def test_handles_are_checked(made):
    simulated, blas, handle, stream, blocks = made
    with pytest.raises(DeviceError, match="CUBLAS_STATUS_NOT_INITIALIZED"):
        blas.gemm(stream, WHAT, *blocks)
    fresh = blas.create()
    with pytest.raises(DeviceError, match="has no stream of its own"):
        blas.gemm(fresh, WHAT, *blocks)
    simulated.enter(simulated.context(1))
    with pytest.raises(DeviceError, match="is of another context"):
        blas.gemm(handle, WHAT, *blocks)
    other = blas.create()
    with pytest.raises(DeviceError, match=r"stream .* is of another context"):
        blas.set_stream(other, stream)
    blas.destroy(other)
    with pytest.raises(DeviceError, match="CUBLAS_STATUS_NOT_INITIALIZED"):
        blas.destroy(other)


@pytest.mark.parametrize("shared", [True, False])
def test_a_workspace_of_two_streams_is_a_race(made, shared):
    simulated, blas, handle, stream, (a, b, c) = made
    second, later = blas.create(), simulated.create_stream()
    blocks = [simulated.allocate(256, stream) for _ in range(3)]
    event = simulated.create_event()
    simulated.record(event, stream)
    simulated.wait_event(later, event)
    blas.set_stream(second, later)
    for each, block in ((handle, blocks[0]), (second, blocks[0 if shared else 1])):
        blas.set_workspace(each, block, 256)

    def both():
        blas.gemm(handle, WHAT, a, b, c)
        blas.gemm(second, WHAT, a, b, blocks[2])
        simulated.wait_stream(stream)
        simulated.wait_stream(later)

    if shared:
        with pytest.raises(DeviceError, match="race of streams"):
            both()
    else:
        both()


def test_an_odd_workspace_is_refused(made):
    _, blas, handle, _, blocks = made
    with pytest.raises(DeviceError, match=r"cublasSetWorkspace.*not aligned"):
        blas.set_workspace(handle, blocks[0] + 8, 32)


# --- the library itself ---------------------------------------------------------------------------


class Told:
    """A library that notes what it is asked, and answers with a status."""

    def __init__(self, status=0):
        self.status, self.asked = status, []

    def __getattr__(self, name):
        if name == "cublasGetStatusString":
            return said
        if name not in cublas.CALLS:
            raise AttributeError(name)
        return lambda *given: (self.asked.append((name, given)), self.status)[1]


def said(status):
    return f"status {status}".encode()


@pytest.mark.parametrize(
    ("dtype", "kind", "compute", "factor"),
    [("float16", 2, 68, ctypes.c_float), ("bfloat16", 14, 68, ctypes.c_float),
     ("float32", 0, 68, ctypes.c_float), ("float64", 1, 70, ctypes.c_double)],
)  # fmt: skip
def test_what_the_library_is_asked(dtype, kind, compute, factor):
    told = Told()
    what = replaced(dtype=dtypes.of(dtype), transpose_b=True, alpha=0.5, beta=2.0, batch=3, sb=7)
    cublas.Library(told).gemm(11, what, 100, 200, 300)
    ((name, given),) = told.asked
    assert (name, len(given)) == ("cublasGemmStridedBatchedEx", len(cublas.CALLS[name]))
    alpha, beta = given[6], given[15]
    assert [type(x._obj) for x in (alpha, beta)] == [factor] * 2
    assert (alpha._obj.value, beta._obj.value) == (0.5, 2.0)
    plain = [x for k, x in enumerate(given) if k not in (6, 15)]
    assert plain == [
        11, 0, 1, 2, 3, 4, 100, kind, 2, 0, 200, kind, 4, 7, 300, kind, 2, 0, 3, compute, -1,
    ]  # fmt: skip


def test_a_status_is_an_error():
    with pytest.raises(DeviceError, match=r"cublasSetStream_v2: status 7"):
        cublas.Library(Told(7)).set_stream(1, 2)


def test_where_the_library_is_looked_for(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublas.so.12").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("nvidia", "nvidia.cublas"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = list(wheels.files(cublas.NAMES, cublas.WHEELS))
    assert found == [str(folder / "libcublas.so.12"), *cublas.NAMES]


def test_a_library_that_lacks_a_call_is_none(monkeypatch):
    monkeypatch.setattr(wheels, "files", lambda names, wheels: ["first", "second"])
    opened = {"second": types.SimpleNamespace(cublasCreate_v2=types.SimpleNamespace())}

    def open_(file):
        if file not in opened:
            raise OSError(file)
        return opened[file]

    monkeypatch.setattr(wheels.ctypes, "CDLL", open_)
    assert wheels.opened((), (), cublas.CALLS) is None
    full = types.SimpleNamespace(**{name: types.SimpleNamespace() for name in cublas.CALLS})
    opened["second"] = full
    assert wheels.opened((), (), cublas.CALLS) is full
    assert full.cublasCreate_v2.argtypes == (ctypes.c_void_p,)

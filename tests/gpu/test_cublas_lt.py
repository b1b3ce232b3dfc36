"""Products with a row and `relu` by cuBLASLt: one piece of work, and what is asked is right."""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections import Counter

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon import dtype as dtypes
from gnomon.base import DeviceError
from gnomon.expr import ext, fn
from gnomon.expr.call import batch_dot, dot
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import cublas_lt, gpu
from gnomon.runtime.devices.cuda.blas import Gemm, Matmul
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.devices.cuda.simulated_lt import SimulatedLt
from gnomon.runtime.kernels.gpu_program import GpuProgram
from gnomon.runtime.statements.prepare import prepare
from tests.gpu.moved import close, moved, there
from tests.gpu.test_cublas import FLAGS, ROUNDING, Told, drawn, product_of, steps_of
from tests.plan.test_expressions import over

G, CPU = mx.gpu(0), mx.cpu()
EPILOGUES = [(True, False), (False, True), (True, True)]


def whole(product, row, relu):
    """A product and what becomes of it."""
    if row is not None:
        product = product + ext.broadcast_axis(over(row), product.shape, product.ndim - 1)
    return fn.relu(product) if relu else product


def wanted(a, b, row, relu):
    """The same by NumPy."""
    value = a.astype(np.float64) @ b.astype(np.float64)
    value = value if row is None else value + row.astype(np.float64)
    return (np.maximum(value, 0) if relu else value).astype(a.dtype)


# --- what is computed -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(("biased", "relu"), EPILOGUES)
@pytest.mark.parametrize("flags", FLAGS)
def test_dot(dtype, biased, relu, flags):
    a, b = drawn(3, 5, dtype=dtype), drawn(5, 7, dtype=dtype)
    row = drawn(7, dtype=dtype) if biased else None
    given = [over((x.T if flag else x).copy()) for x, flag in zip((a, b), flags, strict=True)]
    found = product_of(whole(dot(*given, *flags), row, relu), names=("affine",))
    close(found, wanted(a, b, row, relu), ROUNDING[dtype])


@pytest.mark.parametrize("shape", list(itertools.product((1, 3), (1, 4), (1, 5))))
def test_vectors(shape):
    m, n, k = shape
    a, b, row = drawn(m, k), drawn(k, n), drawn(n)
    found = product_of(whole(dot(over(a), over(b)), row, True), names=("affine",))
    close(found, wanted(a, b, row, True), 1e-5)


@pytest.mark.parametrize("flags", FLAGS)
def test_batches(flags):
    a, b, row = drawn(4, 3, 5), drawn(4, 5, 2), drawn(2)
    swapped = [x.swapaxes(1, 2) if flag else x for x, flag in zip((a, b), flags, strict=True)]
    given = [over(np.ascontiguousarray(x)) for x in swapped]
    found = product_of(whole(batch_dot(*given, *flags), row, True), names=("affine",))
    close(found, wanted(a, b, row, True), 1e-5)


def test_what_is_empty_is_a_kernel():
    a, b, row = drawn(2, 0), drawn(0, 3), drawn(3)
    found = product_of(whole(dot(over(a), over(b)), row, True), names=("kernel",))
    close(found, wanted(a, b, row, True), 1e-6)
    assert steps_of(whole(dot(over(drawn(0, 3)), over(drawn(3, 2))), drawn(2), True))[0] == []


def test_operands_with_gaps_are_copied():
    a, b, row = drawn(6, 10)[::2, ::2], drawn(5, 8)[::-1, 1:5], drawn(8)[::2]
    value = fn.relu(dot(over(a), over(b)) + ext.broadcast_to(over(row), (3, 4)))
    found = product_of(value, names=("copy", "copy", "copy", "affine"))
    close(found, wanted(a, b, row, True), 1e-5)


def test_a_row_that_is_computed():
    a, b, row = drawn(3, 5), drawn(5, 4), drawn(4)
    value = dot(over(a), over(b)) + ext.broadcast_axis(over(row) * 2.0, (3, 4), 1)
    close(product_of(value, names=("kernel", "affine")), wanted(a, b, row * 2, False), 1e-5)


def test_two_layers_in_one_statement():
    a, b, c, row = drawn(3, 5), drawn(5, 4), drawn(4, 2), drawn(4)
    value = dot(whole(dot(over(a), over(b)), row, True), over(c))
    close(product_of(value, names=("affine", "dot")), wanted(a, b, row, True) @ c, 1e-5)


def test_a_destination_with_gaps():
    a, b, c, row = drawn(3, 5), drawn(5, 4), drawn(3, 9), drawn(4)
    held = moved(over(c))
    dest = type(held)((3, 4), held.dtype, (9, 1), held.address + 8, held.owner, held.device)
    steps, _ = steps_of(whole(dot(over(a), over(b)), row, True), dest=dest)
    assert [step.name for step in steps] == ["affine"]
    for step in steps:
        step.run()
    want = c.copy()
    want[:, 2:6] = wanted(a, b, row, True)
    close(held.numpy(), want, 1e-5)


@pytest.mark.parametrize("saver", ["plusto", "minusto", "multo"])
def test_updates(saver):
    a, b, row = drawn(3, 5), drawn(5, 4), drawn(4)
    change = wanted(a, b, row, True)
    want = {"plusto": 2 + change, "minusto": 2 - change, "multo": 2 * change}[saver]
    value = whole(dot(over(a), over(b)), row, True)
    close(product_of(value, saver, names=("affine", "kernel")), want, 1e-5)


@pytest.mark.parametrize("case", ["no library", "no way"])
def test_without_it_a_kernel_follows_the_product(monkeypatch, case):
    if case == "no library":
        monkeypatch.setattr(Simulated, "lt", lambda driver: None)
    else:
        monkeypatch.setattr(SimulatedLt, "plan", lambda *given: None)
    a, b, row = drawn(3, 6), drawn(6, 4), drawn(4)
    steps, dest = steps_of(whole(dot(over(a), over(b)), row, True))
    assert len(steps) == 2 and steps[0].name == "dot"
    for step in steps:
        step.run()
    close(dest.numpy(), wanted(a, b, row, True), 1e-5)


def test_the_alignment_of_what_comes_decides(monkeypatch):
    """A step that is bound to other memory asks for a way that suits it."""
    asked, plan = [], SimulatedLt.plan
    monkeypatch.setattr(
        SimulatedLt, "plan", lambda *given: (asked.append(given[3]), plan(*given))[1]
    )
    x, w, b = nd.array(drawn(9, 11)), nd.array(drawn(3, 11)), nd.array(drawn(3))
    far = [v.as_in_context(G) for v in (x, w, b)]
    for begin in (0, 1, 0, 4):  # rows of 44 bytes
        found = nd.FullyConnected(far[0][begin : begin + 4], *far[1:], num_hidden=3)
        want = nd.FullyConnected(x[begin : begin + 4], w, b, num_hidden=3)
        close(found.asnumpy(), want.asnumpy(), 1e-5)
    assert asked == [4, 256, 16]


# --- arrays, graphs, training ---------------------------------------------------------------------


@pytest.mark.parametrize("flatten", [True, False])
def test_fully_connected_and_its_gradients(flatten):
    given = drawn(2, 3, 5), drawn(4, 15 if flatten else 5), drawn(4)
    found = []
    for ctx in (G, G, CPU):
        arrays = [nd.array(x, ctx=ctx) for x in given]
        for x in arrays:
            x.attach_grad()
        with autograd.record():
            y = nd.FullyConnected(*arrays, num_hidden=4, flatten=flatten)
        y.backward(y)
        found.append([v.asnumpy() for v in (y, *[x.grad for x in arrays])])
    for first, second, want in zip(*found, strict=True):
        close(first, want, 1e-5)
        np.testing.assert_array_equal(first, second)


def layer(x, name, flatten=True):
    x = mx.sym.FullyConnected(x, num_hidden=4, name=name, flatten=flatten)
    return mx.sym.Activation(x, act_type="relu")


def bound_on(ctx, net, **shapes):
    """A bound network with the same numbers on every device."""
    bound = net.simple_bind(ctx, **shapes)
    numbers = np.random.RandomState(3)
    for name, array in sorted(bound.arg_dict.items()):
        array[:] = (
            numbers.randint(0, 4, array.shape) if "label" in name else numbers.randn(*array.shape)
        )
    return bound


def pieces_of(monkeypatch, build):
    """The pieces of work of each program that `build` makes."""
    counts, init = [], GpuProgram.__init__

    def noted(program, *given):
        init(program, *given)
        counts.append(program.count)

    with monkeypatch.context() as patch:
        patch.setattr(GpuProgram, "__init__", noted)
        build()
    return counts


@pytest.mark.parametrize("flatten", [True, False])
def test_a_layer_with_relu_is_one_piece_of_work(monkeypatch, flatten):
    net, shape = layer(mx.sym.Variable("x"), "fc", flatten), (2, 3, 5)
    want = bound_on(CPU, net, x=shape).forward()[0].asnumpy()
    for lt, count in ((True, 1), (False, 2)):
        if not lt:
            monkeypatch.setattr(Simulated, "lt", lambda driver: None)

        def predicted():
            bound = bound_on(G, net, x=shape)
            for _ in range(3):
                close(bound.forward()[0].asnumpy(), want, 1e-5)

        assert pieces_of(monkeypatch, predicted) == [count]


def test_a_training_step(monkeypatch):
    net = layer(layer(mx.sym.Variable("x"), "a"), "b")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="c"), name="softmax")

    def trained(ctx):
        bound = bound_on(ctx, net, x=(6, 5))
        for _ in range(3):
            bound.forward_backward()
        return [
            x.asnumpy() for x in (*bound.outputs, *(g for g in bound.grad_arrays if g is not None))
        ]

    want = trained(CPU)
    counts = []
    for lt in (True, False):
        if not lt:
            monkeypatch.setattr(Simulated, "lt", lambda driver: None)
        found = []
        counts.append(sum(pieces_of(monkeypatch, lambda found=found: found.extend(trained(G)))))
        for ours, theirs in zip(found, want, strict=True):
            close(ours, theirs, 2e-5)
    assert counts[1] - counts[0] == 3


def test_a_hybridized_block_in_16_bits(monkeypatch):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="relu", in_units=6), gluon.nn.Dense(2, in_units=4))
    net.cast("float16")
    net.initialize(ctx=[G, CPU])
    net.hybridize()
    x = nd.array(drawn(3, 6)).astype("float16")

    def predicted():
        for _ in range(3):
            close(net(x.as_in_context(G)).asnumpy(), net(x).asnumpy(), 4e-3)

    assert pieces_of(monkeypatch, predicted) == [2]


def test_two_queues_share_nothing(simulated):
    a, b, row = drawn(20, 30), drawn(30, 20), drawn(20)
    device = gpu.get(0)
    queues = [device.default, device.queue()]
    value = there(whole(dot(over(a), over(b)), row, True))
    dests = [moved(over(np.zeros((20, 20), np.float32))) for _ in queues]
    for queue, dest in zip(queues, dests, strict=True):
        (step,) = prepare([Store(dest, "saveto", value)])
        step.queue = queue
        step.run()
    device.synchronise()
    for dest in dests:
        close(dest.numpy(), wanted(a, b, row, True), 1e-5)


# --- what is refused ------------------------------------------------------------------------------

GEMM = Gemm(dtypes.float32, 2, 3, 4, False, False, 1.0, 0.0, 2, 4, 2, 1, 0, 0, 0)
WHAT = Matmul(GEMM, True, True)


def changed(**change):
    fields = {k: getattr(GEMM, k) for k in GEMM.__slots__}
    return Matmul(Gemm(**{**fields, **change}), True, True)


@pytest.fixture
def made(simulated):
    """A handle, a stream, and blocks of 256 bytes for A, B, C, the bias and the workspace."""
    simulated.enter(simulated.context(0))
    handle, stream = simulated.blas().create(), simulated.create_stream()
    blocks = [simulated.allocate(256, stream) for _ in range(5)]
    for block in blocks:
        simulated.fill(block, 0, 256, stream)
    return simulated, handle, stream, blocks


def done(made, what=WHAT, alignment=16, **change):
    """A product; of a, b, c, bias, workspace, nbytes and stream some are others."""
    simulated, handle, stream, (a, b, c, bias, workspace) = made
    given = {"a": a, "b": b, "c": c, "bias": bias, "workspace": workspace, "nbytes": 256}
    given |= {"stream": stream, "handle": handle} | change
    lt = simulated.lt()
    plan = lt.plan(handle, what, alignment, 256)
    operands = tuple(given[name] for name in ("a", "b", "c", "bias"))
    space = given["workspace"], given["nbytes"]
    lt.matmul(given["handle"], plan, operands, space, given["stream"])
    simulated.wait_stream(stream)


@pytest.mark.parametrize(
    ("change", "told"),
    [({"lda": 1}, "lda is 1, expected at "), ({"ldb": 3}, "ldb is 3"), ({"m": -1}, "negative"),
     ({"transpose_b": True, "ldb": 2}, "ldb is 2, expected at least 3"), ({"ldc": 1}, "ldc is 1")],
)  # fmt: skip
def test_sizes_are_refused(made, change, told):
    simulated, handle, *_ = made
    with pytest.raises(DeviceError, match=f"Heuristic: CUBLAS_STATUS_INVALID_VALUE.*{told}"):
        simulated.lt().plan(handle, changed(**change), 16, 256)


def test_what_a_call_is_given_is_checked(made):
    simulated, _, stream, (_, _, c, bias, workspace) = made
    done(made)
    with pytest.raises(DeviceError, match="INVALID_VALUE: a workspace of 128 bytes"):
        done(made, nbytes=128)
    with pytest.raises(
        DeviceError, match=r"INVALID_VALUE: a workspace of 256 bytes at .*8, expected"
    ):
        done(made, workspace=workspace + 8)
    with pytest.raises(DeviceError, match=r"INVALID_VALUE: the bias at 0x0"):
        done(made, bias=0)
    with pytest.raises(
        DeviceError, match=r"INVALID_VALUE: the bias at .*expected a multiple of 16"
    ):
        done(made, bias=bias + 4)
    done(made, alignment=4, bias=bias + 4)
    with pytest.raises(DeviceError, match=r"INVALID_VALUE: c at .* not aligned"):
        done(made, c=c + 8)
    with pytest.raises(DeviceError, match="NOT_INITIALIZED"):
        done(made, handle=stream)
    simulated.enter(simulated.context(1))
    with pytest.raises(DeviceError, match="is of another context"):
        done(made)


def test_a_result_on_the_bias_is_found(made):
    with pytest.raises(DeviceError, match="c overlaps the bias"):
        done(made, bias=made[3][2] + 16)


def test_a_result_on_an_operand_is_found(made):
    with pytest.raises(DeviceError, match="c overlaps a"):
        done(made, c=made[3][0] + 16)


@pytest.mark.parametrize("number", [3, 4])
def test_memory_that_is_freed_is_found(made, number):
    simulated, _, stream, blocks = made
    simulated.free(blocks[number], stream)
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS: cublasLtMatmul"):
        done(made)


def test_a_workspace_of_two_streams_is_a_race(made):
    simulated, handle, stream, (a, b, c, bias, workspace) = made
    later, lt = simulated.create_stream(), simulated.lt()
    other = simulated.allocate(256, stream)
    event = simulated.create_event()
    simulated.record(event, stream)
    simulated.wait_event(later, event)
    plan = lt.plan(handle, WHAT, 16, 256)
    lt.matmul(handle, plan, (a, b, c, bias), (workspace, 256), stream)

    def both():
        lt.matmul(handle, plan, (a, b, other, bias), (workspace, 256), later)
        simulated.wait_stream(stream)
        simulated.wait_stream(later)

    with pytest.raises(DeviceError, match="race of streams"):
        both()


# --- the library itself ---------------------------------------------------------------------------


class Asked(Told):
    """cuBLASLt that notes what it is asked, the numbers behind pointers too, and finds ways."""

    ways, state, refused = 1, 0, 0

    def __getattr__(self, name):
        if name == "cublasLtGetStatusString":
            return super().__getattr__("cublasGetStatusString")
        if name not in cublas_lt.CALLS:
            raise AttributeError(name)
        return lambda *given: self.answer(name, given)

    def answer(self, name, given):
        if name.endswith("Create"):
            given[0]._obj.value = len(self.asked) + 1
        if name.endswith("Heuristic"):
            given[8]._obj.workspace, given[8]._obj.state = 64, self.state
            given[9]._obj.value = self.ways
        told = [getattr(x._obj, "value", x._obj) if hasattr(x, "_obj") else x for x in given]
        kinds = [type(x._obj) for x in given if hasattr(x, "_obj")]
        self.asked.append((name.removeprefix("cublasLt"), told, kinds))
        return self.refused if name.endswith("Heuristic") else self.status

    def named(self, name):
        return [given for asked, given, _ in self.asked if asked == name]


@pytest.mark.parametrize(
    ("dtype", "kind", "compute", "scale"),
    [("float16", 2, 68, 0), ("bfloat16", 14, 68, 0), ("float32", 0, 68, 0), ("float64", 1, 70, 1)],
)
def test_what_the_library_is_asked(dtype, kind, compute, scale):
    told = Asked()
    what = changed(dtype=dtypes.of(dtype), transpose_b=True, batch=3, sb=7)
    library = cublas_lt.Library(told)
    plan = library.plan(11, what, 16, 999)
    library.matmul(11, plan, (100, 200, 300, 400), (500, 600), 12)
    assert told.named("MatmulDescCreate") == [[1, compute, scale]]
    attributes = told.named("MatmulDescSetAttribute")
    assert [(a, v, n) for _, a, v, n in attributes] == [
        (3, 0, 4), (4, 1, 4), (7, 6, 4), (8, 16, 8), (8, 400, 8),
    ]  # fmt: skip
    layouts = told.named("MatrixLayoutCreate")
    assert [rest for _, *rest in layouts] == [[kind, 2, 4, 2], [kind, 3, 4, 4], [kind, 2, 3, 2]]
    numbers = [number for number, *_ in layouts]
    batches = [rest for _, *rest in told.named("MatrixLayoutSetAttribute")]
    assert batches == [[5, 3, 4], [6, 0, 8], [5, 3, 4], [6, 7, 8], [5, 3, 4], [6, 0, 8]]
    wishes = [rest for _, *rest in told.named("MatmulPreferenceSetAttribute")]
    assert wishes == [[1, 999, 8], *([n, 16, 4] for n in (5, 6, 7, 8))]
    ((handle, own, a, b, c, d, _, most, found, _),) = told.named("MatmulAlgoGetHeuristic")
    assert (handle, own, a, b, c, d, most) == (11, 1, *numbers, numbers[2], 1)
    ((*given, workspace, nbytes, stream),) = told.named("Matmul")
    assert given[:2] == [11, 1] and (workspace, nbytes, stream) == (500, 600, 12)
    assert given[2:12] == [
        1.0, 100, numbers[0], 200, numbers[1], 0.0, 300, numbers[2], 300, numbers[2],
    ]  # fmt: skip
    assert given[12] is found and found.workspace == 64
    factor = ctypes.c_double if scale else ctypes.c_float
    assert told.asked[-1][2][:2] == [factor, factor]
    assert all(
        len(given) == len(cublas_lt.CALLS[f"cublasLt{name}"]) for name, given, _ in told.asked
    )


@pytest.mark.parametrize(
    ("biased", "relu", "number"), [(*pair, 4 * pair[0] + 2 * pair[1]) for pair in EPILOGUES]
)
def test_epilogues(biased, relu, number):
    told = Asked()
    cublas_lt.Library(told).plan(1, Matmul(GEMM, biased, relu), 4, 0)
    attributes = {a: v for _, a, v, _ in told.named("MatmulDescSetAttribute")}
    assert attributes[7] == number and (8 in attributes) == biased


@pytest.mark.parametrize("case", [{"ways": 0}, {"refused": 15}, {"state": 15}])
def test_where_it_has_no_way(case):
    told = Asked()
    vars(told).update(case)
    assert cublas_lt.Library(told).plan(1, WHAT, 4, 0) is None


def test_descriptors_are_forgotten():
    told = Asked()
    library = cublas_lt.Library(told)
    plan = library.plan(1, WHAT, 4, 0)
    count = Counter(name for name, *_ in told.asked)
    assert count["MatmulPreferenceDestroy"] == count["MatmulPreferenceCreate"] == 1
    del plan
    gc.collect()
    count = Counter(name for name, *_ in told.asked)
    assert count["MatmulDescDestroy"] == 1 and count["MatrixLayoutDestroy"] == 3


def test_a_status_is_an_error():
    with pytest.raises(DeviceError, match=r"cublasLtMatmulDescCreate: status 7"):
        cublas_lt.Library(Asked(7)).plan(1, WHAT, 4, 0)
    told = Asked()
    told.refused = 1
    with pytest.raises(DeviceError, match=r"cublasLtMatmulAlgoGetHeuristic: status 1"):
        cublas_lt.Library(told).plan(1, WHAT, 4, 0)

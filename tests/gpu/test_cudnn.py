"""Convolutions and means of windows by cuDNN: results, gradients, algorithms, memory."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon import dtype as dtypes
from gnomon.expr.call import ConvolutionWeight, avg_pool, convolution
from gnomon.expr.call.conv import Geometry
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import cudnn, gpu
from gnomon.runtime.devices.cuda.dnn import Algorithm
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.devices.cuda.simulated_dnn import SimulatedDnn
from gnomon.runtime.kernels.gpu_kernel import GpuStep
from gnomon.runtime.libraries import cudnn as calls
from gnomon.runtime.statements.prepare import prepare
from tests.gpu.moved import close, moved, there
from tests.plan.test_expressions import over

G, CPU = mx.gpu(0), mx.cpu()
NUMBERS = np.random.RandomState(0)
ROUNDING = {"float16": 3e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}


def drawn(*shape, dtype="float32"):
    return NUMBERS.randn(*shape).astype(dtypes.of(dtype).numpy)


def both(function, *given, dtype="float32"):
    """Results and gradients of a function of arrays: on a GPU, there again, on the processor."""
    found = []
    for ctx in (G, G, CPU):
        arrays = [nd.array(x, ctx=ctx, dtype=dtype) for x in given]
        for x in arrays:
            x.attach_grad()
        with autograd.record():
            y = function(*arrays)
        y.backward(y)
        found.append([v.asnumpy() for v in (y, *[x.grad for x in arrays])])
    return found


def agree(function, *given, dtype="float32"):
    for first, second, want in zip(*both(function, *given, dtype=dtype), strict=True):
        close(first, want, ROUNDING[dtype])
        np.testing.assert_array_equal(first, second)


# --- what is computed -----------------------------------------------------------------------------

CASES = {
    "1d": ((2, 4, 9), (3,), {}),
    "1d, all options": ((2, 4, 11), (3,), {"stride": 2, "pad": 1, "dilate": 2, "num_group": 2}),
    "2d": ((2, 4, 6, 5), (3, 3), {}),
    "2d, 1 by 1": ((2, 4, 6, 5), (1, 1), {"stride": (2, 2)}),
    "2d, all options": (
        (2, 4, 9, 10), (3, 2), {"stride": (2, 3), "pad": (2, 1), "dilate": (1, 2), "num_group": 2},
    ),
    "2d, a group for each": ((1, 8, 6, 6), (3, 3), {"pad": (1, 1), "num_group": 8}),
    "3d": ((1, 4, 4, 5, 6), (2, 3, 2), {"pad": (1, 0, 1)}),
    "3d, all options": (
        (1, 4, 5, 6, 7), (2, 2, 3),
        {"stride": (1, 2, 1), "pad": (1, 1, 2), "dilate": (2, 1, 2), "num_group": 4},
    ),
}  # fmt: skip


def operands(case, filters=8, dtype="float32"):
    """Data, weight and bias of a case, and the operator."""
    shape, kernel, options = CASES[case]
    given = {k: (v,) if isinstance(v, int) and k != "num_group" else v for k, v in options.items()}
    weight = (filters, shape[1] // given.get("num_group", 1), *kernel)
    arrays = [drawn(*shape, dtype=dtype) / 2 for shape in (shape, weight, (filters,))]

    def function(*inputs):
        return nd.Convolution(*inputs, kernel=kernel, num_filter=filters, **given)

    return arrays, function


@pytest.mark.parametrize("case", CASES)
def test_operators_and_their_gradients(asked, case):
    given, function = operands(case)
    agree(function, *given)
    assert sorted(what.part for what in asked) == sorted([*cudnn.PARTS] * 2)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_dtypes(asked, dtype):
    given, function = operands("2d, all options", dtype=dtype)
    agree(function, *given, dtype=dtype)
    assert {what.dtype.name for what in asked} == {dtype}


@pytest.mark.parametrize("adj", [(), (1, 1)])
def test_deconvolution(asked, adj):
    x, w = drawn(2, 4, 3, 4), drawn(4, 3, 3, 3)

    def function(*inputs):
        return nd.Deconvolution(
            *inputs, kernel=(3, 3), stride=(2, 2), pad=(1, 1), num_filter=6, num_group=2, adj=adj
        )

    agree(function, x, w)
    assert {what.part for what in asked} == {"forward", "data", "weight"}


def given_names(monkeypatch):
    """The names of all steps of a GPU that are made from now on."""
    found = []
    made = GpuStep.__init__

    def noted(step, issue, words, spans, queue, name, *rest):
        found.append(name)
        made(step, issue, words, spans, queue, name, *rest)

    monkeypatch.setattr(GpuStep, "__init__", noted)
    return found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["NHWC", "NDHWC"])
def test_channels_last(monkeypatch, asked, dtype, layout, bias):
    """Operands are taken as they lie, but for float64, which cuDNN does not do so."""
    axes = len(layout) - 2
    x, w = drawn(2, *(5, 4, 3)[:axes], 6, dtype=dtype), drawn(8, *(3, 2, 2)[:axes], 3, dtype=dtype)
    names = given_names(monkeypatch)
    options = {"kernel": w.shape[1:-1], "num_filter": 8, "num_group": 2, "layout": layout}
    given = (x / 2, w / 2, drawn(8, dtype=dtype)) if bias else (x / 2, w / 2)
    agree(lambda *a: nd.Convolution(*a, no_bias=not bias, **options), *given, dtype=dtype)
    assert {what.last for what in asked} == {dtype != "float64"}
    assert ("copy" in names) is (dtype == "float64")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["NHWC", "NWC"])
def test_means_with_channels_last(monkeypatch, dtype, layout):
    axes = len(layout) - 2
    found, names = pooled_by(monkeypatch), given_names(monkeypatch)
    options = {"kernel": (3, 2)[:axes], "stride": (2, 1)[:axes], "pad": (1, 0)[:axes]}
    x = drawn(2, *(7, 8)[:axes], 3, dtype=dtype)
    agree(lambda x: nd.Pooling(x, pool_type="avg", layout=layout, **options), x, dtype=dtype)
    assert len(found) == 4
    assert ("copy" in names) is (dtype == "float64")


def steps_of(value, saver="saveto"):
    """The steps of a statement on a GPU, and where they store."""
    dest = moved(over(np.full(value.shape, 2, value.dtype.numpy)))
    return prepare([Store(dest, saver, there(value))]), dest


def given_by(value, saver, names):
    """What a statement gives, of steps of these names."""
    steps, dest = steps_of(value, saver)
    assert tuple(step.name for step in steps) == names
    for step in steps:
        step.run()
    return dest.numpy()


def of(x, w):
    return convolution(over(x), over(w), (1, 1), (1, 1), (1, 1))


def value_of(x, w):
    return of(x, w).reference(x, w)


@pytest.mark.parametrize(
    ("saver", "scale", "want"),
    [("saveto", 1.0, lambda y: y), ("plusto", 0.5, lambda y: 2 + y / 2),
     ("minusto", -3.0, lambda y: 2 + 3 * y)],
)  # fmt: skip
def test_factors_and_savers(saver, scale, want):
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    close(given_by(of(x, w) * scale, saver, ("convolution",)), want(value_of(x, w)), 1e-5)


def test_gaps_are_copied():
    x, w = drawn(2, 6, 5, 5)[:, ::2], drawn(3, 4, 3, 3).swapaxes(0, 1)
    close(given_by(of(x, w), "saveto", ("copy", "copy", "convolution")), value_of(x, w), 1e-5)


def last(array):
    """The same elements with the channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


#: which of data, weight and result have their channels last; copies; whether cuDNN computes so
WAYS = {
    "all": ((True, True, True), 0, True),
    "not the weight": ((True, False, True), 1, True),
    "not the data": ((False, True, True), 1, True),
    "the result": ((False, False, True), 2, True),
    "the operands": ((True, True, False), 2, False),
    "the data": ((True, False, False), 1, False),
    "none": ((False, False, False), 0, False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("saver", ["saveto", "plusto"])
def test_operands_are_brought_to_the_order_of_the_result(asked, way, saver):
    (data, weight, result), copies, want = WAYS[way]
    x, w = drawn(2, 3, 5, 6), drawn(4, 3, 3, 2)
    lying = over(last(x) if data else x), over(last(w) if weight else w)
    value = convolution(*lying, (1, 1), (1, 1), (1, 1)) * 0.5
    start = np.full(value.shape, 2, "float32")
    dest = moved(over(last(start) if result else start))
    steps = prepare([Store(dest, saver, there(value))])
    assert [step.name for step in steps] == ["copy"] * copies + ["convolution"]
    for step in steps:
        step.run()
    close(dest.numpy(), (2 if saver == "plusto" else 0) + of(x, w).reference(x, w) / 2, 1e-5)
    assert [what.last for what in asked] == [want]


def test_a_result_is_turned_where_that_is_less(asked):
    x, w = drawn(2, 8, 5, 6), drawn(2, 8, 3, 3)
    want = of(x, w).reference(x, w)
    dest = moved(over(last(np.zeros_like(want))))
    steps = prepare([Store(dest, "saveto", there(of(x, w)))])
    assert [step.name for step in steps] == ["convolution", "kernel"]
    for step in steps:
        step.run()
    close(dest.numpy(), want, 1e-5)
    assert not asked[0].last


def test_a_result_that_lies_both_ways_is_as_most_of_what_is_read(asked):
    """The weight's gradient of a 1 by 1 convolution."""
    x, g = drawn(2, 3, 5, 6), drawn(2, 4, 5, 6)
    how = Geometry((1, 1), (0, 0), (1, 1), 1)
    want = ConvolutionWeight(over(x), over(g), how, (1, 1)).reference(x, g)
    for lying, copies, as_last in (((x, g), 0, False), ((last(x), last(g)), 0, True),
                                   ((x, last(g)), 1, True), ((last(x), g), 1, False)):  # fmt: skip
        value = ConvolutionWeight(*map(over, lying), how, (1, 1))
        close(given_by(value, "saveto", (*["copy"] * copies, "convolution")), want, 1e-5)
        assert asked[-1].last is as_last


def test_operands_that_are_expressions_and_what_comes_behind():
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    value = convolution(over(x) + 1.0, over(w), (1, 1), (0, 0), (1, 1)) - 3.0
    want = value.args[0].reference(x + 1, w) - 3
    close(given_by(value, "saveto", ("kernel", "convolution", "kernel")), want, 1e-5)


def test_a_second_gradient(asked):
    x, w = drawn(1, 2, 5, 5), drawn(2, 2, 3, 3)
    found = []
    for ctx in (G, CPU):
        a, b = nd.array(x, ctx=ctx), nd.array(w, ctx=ctx)
        a.attach_grad()
        b.attach_grad()
        with autograd.record():
            y = nd.Convolution(a, b, kernel=(3, 3), num_filter=2, no_bias=True)
            (g,) = autograd.grad((y * y).sum(), [a], create_graph=True)
            z = (g * g).sum()
        z.backward()
        found.append([a.grad.asnumpy(), b.grad.asnumpy()])
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs, 1e-4)


@pytest.mark.filterwarnings("error")
def test_what_overflows_warns_of_nothing():
    x, w = (np.full(s, 300, "float16") for s in ((1, 2, 4, 4), (2, 2, 1, 1)))
    assert np.isinf(given_by(of(x, w), "saveto", ("convolution",))[..., 1:-1, 1:-1]).all()


def test_integers_and_nothing_are_kernels():
    x, w = np.ones((1, 2, 4, 4), np.int32), np.ones((2, 2, 3, 3), np.int32)
    value = convolution(over(x), over(w), (1, 1), (0, 0), (1, 1))
    assert "convolution" not in [step.name for step in steps_of(value)[0]]


def test_without_the_library_the_expression_is_computed(monkeypatch):
    monkeypatch.setattr(Simulated, "dnn", lambda driver: None)
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    steps, dest = steps_of(of(x, w))
    assert "convolution" not in [step.name for step in steps]
    for step in steps:
        step.run()
    close(dest.numpy(), value_of(x, w), 1e-5)


# --- means of windows -----------------------------------------------------------------------------

MEANS = {
    "1d": ((2, 3, 9), (3,), {"stride": (2,), "pad": (1,)}),
    "2d": ((2, 3, 6, 8), (2, 2), {"stride": (2, 2)}),
    "2d, overlapping": ((2, 3, 7, 8), (3, 2), {"stride": (2, 1), "pad": (2, 1)}),
    "2d, not counted": (
        (2, 3, 7, 8), (3, 2), {"stride": (2, 1), "pad": (2, 1), "count_include_pad": False},
    ),
    "3d": ((1, 2, 5, 6, 4), (2, 3, 2), {"stride": (1, 2, 2), "pad": (1, 1, 0)}),
}  # fmt: skip


def pooled_by(monkeypatch):
    """What cuDNN is asked to pool."""
    found = []
    pool = SimulatedDnn.pool
    monkeypatch.setattr(SimulatedDnn, "pool", lambda *a: (found.append(a), pool(*a))[1])
    return found


@pytest.mark.parametrize("case", MEANS)
def test_means_and_their_gradients(monkeypatch, case):
    shape, kernel, options = MEANS[case]
    found = pooled_by(monkeypatch)
    agree(lambda x: nd.Pooling(x, kernel=kernel, pool_type="avg", **options), drawn(*shape))
    assert len(found) == 4


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_means_of_dtypes(monkeypatch, dtype):
    found = pooled_by(monkeypatch)
    x = drawn(2, 3, 6, 8, dtype=dtype)
    agree(lambda x: nd.Pooling(x, kernel=(3, 3), pool_type="avg"), x, dtype=dtype)
    assert len(found) == 4


def test_factors_of_means():
    x = drawn(2, 3, 6, 8)
    value = avg_pool(over(x), (2, 2), (2, 2), (0, 0))
    want = 2 - 0.5 * value.reference(x)
    close(given_by(value * 0.5, "minusto", ("pooling",)), want, 1e-5)


@pytest.mark.parametrize(
    "options",
    [{"pool_type": "max"}, {"pool_type": "avg", "pooling_convention": "full", "stride": (2, 2)}],
)
def test_other_poolings_are_expressions(monkeypatch, options):
    found = pooled_by(monkeypatch)
    agree(lambda x: nd.Pooling(x, kernel=(3, 3), **options), drawn(2, 2, 6, 6))
    assert not found


# --- which algorithm ------------------------------------------------------------------------------


def ways(monkeypatch, *given):
    """Have cuDNN know these algorithms: (number, deterministic, workspace)."""
    monkeypatch.setattr(
        SimulatedDnn, "algorithms", lambda *_: [Algorithm(*way[:2]) for way in given]
    )
    sizes = {way[0]: way[2] for way in given}
    monkeypatch.setattr(SimulatedDnn, "workspace", lambda *a: sizes[a[3]])
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    return calls.plan_of(gpu.get(0), calls.what_of(of(x, w)))


def test_the_first_that_is_always_the_same_and_small_enough(monkeypatch):
    most = calls.WORKSPACE
    plan = ways(
        monkeypatch, (0, False, 0), (4, True, most + 1), (6, True, None), (2, True, most),
        (1, True, 0),
    )  # fmt: skip
    assert (plan.algorithm, plan.nbytes) == (2, most)


def test_the_expression_where_there_is_none(monkeypatch):
    assert ways(monkeypatch, (0, False, 0)) is None
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    assert "convolution" not in [step.name for step in steps_of(of(x, w))[0]]


def test_one_choice_for_a_structure(monkeypatch):
    guesses = []
    algorithms = SimulatedDnn.algorithms
    monkeypatch.setattr(
        SimulatedDnn, "algorithms", lambda *a: (guesses.append(a), algorithms(*a))[1]
    )
    given, function = operands("2d")
    for _ in range(3):
        agree(function, *given)
    assert len(guesses) == 3  # the convolution and its two gradients


def test_descriptors_are_given_back(simulated):
    x, w = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3)
    assert calls.handle_of(gpu.get(0).default)
    gpu.synchronise()
    before = len(simulated._things)
    calls.plan_of(gpu.get(0), calls.what_of(of(x, w)))
    assert len(simulated._things) == before + 1
    calls.plan_of.cache_clear()
    gpu.synchronise()
    assert len(simulated._things) == before


# --- memory and queues ----------------------------------------------------------------------------


def test_two_queues_have_a_handle_and_a_workspace_each(simulated):
    x, w = drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)
    device = gpu.get(0)
    queues = [device.default, device.queue()]
    a, b = moved(over(x)), moved(over(w))
    dests = [moved(over(np.zeros((2, 4, 8, 8), np.float32))) for _ in queues]
    for queue, dest in zip(queues, dests, strict=True):
        (step,) = prepare([Store(dest, "saveto", convolution(a, b, (1, 1), (1, 1), (1, 1)))])
        step.queue = queue
        step.run()
    device.synchronise()
    assert len({calls.handle_of(queue) for queue in queues}) == 2
    for dest in dests:
        close(dest.numpy(), value_of(x, w), 1e-5)


def test_no_memory_is_kept():
    pool = mx.context.gpu_memory_info
    x, w = nd.ones((2, 3, 8, 8), ctx=G), nd.ones((4, 3, 3, 3), ctx=G)

    def run():
        nd.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True).wait_to_read()

    run()
    free = pool(0)
    for _ in range(5):
        run()
    assert pool(0) == free

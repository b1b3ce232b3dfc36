"""cuDNN itself: how it is asked, and what the simulated one refuses as the real one does."""

from __future__ import annotations

import ctypes

import pytest

import gnomon as mx
from gnomon import dtype as dtypes
from gnomon import nd
from gnomon.base import DeviceError, EngineError
from gnomon.runtime.devices.cuda import cudnn
from gnomon.runtime.devices.cuda.dnn import Convolve, Mean
from gnomon.runtime.devices.cuda.simulated_dnn import SimulatedDnn

G = mx.gpu(0)

# --- what is refused ------------------------------------------------------------------------------

WHAT = Convolve(
    "forward", dtypes.float32, (2, 4, 6, 5), (8, 2, 3, 3), (2, 8, 4, 3), (1, 1), (0, 0), (1, 1), 2,
)  # fmt: skip
MEAN = Mean(False, dtypes.float32, (2, 3, 5, 6), (2, 3, 3, 4), (2, 3), (2, 1), (1, 0), True)
#: one for Winograd's way
PLAIN = Convolve(
    "forward", dtypes.float32, (2, 4, 6, 5), (4, 4, 3, 3), (2, 4, 4, 3), (1, 1), (0, 0), (1, 1), 1,
)  # fmt: skip
SIZES = [4 * n for n in (2 * 4 * 30, 8 * 18, 2 * 8 * 12)]
SPACE = 8 * 8 * 18


def replaced(what, **change):
    return type(what)(**{**{k: getattr(what, k) for k in what.__slots__}, **change})


@pytest.fixture
def made(simulated):
    """A handle with its stream, and blocks of the sizes of operands, result and workspace."""
    simulated.enter(simulated.context(0))
    dnn, stream = simulated.dnn(), simulated.create_stream()
    handle = dnn.create()
    dnn.set_stream(handle, stream)
    blocks = [simulated.allocate(nbytes, stream) for nbytes in (*SIZES, SPACE)]
    for block, nbytes in zip(blocks, (*SIZES, SPACE), strict=True):
        simulated.fill(block, 0, nbytes, stream)
    return simulated, dnn, handle, stream, blocks


def convolved(made, what=WHAT, handle=None, algorithm=1, nbytes=SPACE, **changed):
    """Have it done, on other addresses where they are given by number."""
    simulated, dnn, first, stream, blocks = made
    at = {f"at{k}": block for k, block in enumerate(blocks)} | changed
    addresses = [at[f"at{k}"] for k in range(4)]
    described = dnn.describe(what)
    dnn.convolve(
        first if handle is None else handle, described, algorithm, (1.0, 0.0),
        tuple(addresses[:3]), (addresses[3], nbytes),
    )  # fmt: skip
    simulated.wait_stream(stream)


def test_what_is_right_is_done(made):
    convolved(made)
    convolved(made, replaced(WHAT, last=True))
    convolved(made, PLAIN, algorithm=6)


@pytest.mark.parametrize("part", ["forward", "data", "weight"])
def test_there_is_no_way_for_float64_with_channels_last(made, part):
    _, dnn, handle, _, (data, _, out, _) = made
    for last in (False, True):
        what = dnn.describe(replaced(WHAT, part=part, dtype=dtypes.float64, last=last))
        assert bool(dnn.algorithms(handle, what)) is not last
        assert (dnn.workspace(handle, what, 1) is None) is last
    with pytest.raises(DeviceError, match=r"NOT_SUPPORTED: algorithm 1.*float64.*channels last"):
        convolved(made, replaced(WHAT, dtype=dtypes.float64, last=True))
    mean = dnn.describe(replaced(MEAN, dtype=dtypes.float64, last=True))
    with pytest.raises(DeviceError, match=r"cudnnPooling: .*NOT_SUPPORTED.*channels last"):
        dnn.pool(handle, mean, (1.0, 0.0), (data, out))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"out": (2, 8, 4, 4)}, r"SHAPE_MISMATCH.*expected output \(2, 8, 4, 3\)"),
        ({"weight": (8, 3, 3, 3)}, "SHAPE_MISMATCH"),
        ({"groups": 3}, "SHAPE_MISMATCH"),
        ({"out": (2, 8, 4)}, "SetTensorNdDescriptor: CUDNN_STATUS_BAD_PARAM"),
        ({"out": (2, 8, 0, 3)}, "an empty axis"),
    ],
)
def test_descriptors_that_do_not_fit_are_refused(made, change, told):
    with pytest.raises(DeviceError, match=told):
        convolved(made, replaced(WHAT, **change))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"algorithm": 6}, "NOT_SUPPORTED: algorithm 6"),
        ({"algorithm": 3}, "NOT_SUPPORTED: algorithm 3"),
        ({"algorithm": 6, "what": replaced(PLAIN, last=True)}, "NOT_SUPPORTED: algorithm 6"),
        ({"nbytes": SPACE - 1}, f"SIZE_INSUFFICIENT.*of {SPACE - 1} bytes.*at least {SPACE}"),
    ],
)
def test_algorithms_and_workspaces_are_refused(made, change, told):
    with pytest.raises(DeviceError, match=told):
        convolved(made, **change)


@pytest.mark.parametrize(("k", "by"), [(0, 2), (1, 1), (2, 2), (3, 8)])
def test_odd_addresses_are_refused(made, k, by):
    with pytest.raises(DeviceError, match="MISALIGNED_POINTER"):
        convolved(made, **{f"at{k}": made[4][k] + by})


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ((2, 0), "result overlaps the first operand"),
        ((2, 1), "result overlaps the second operand"),
        ((3, 0), "workspace overlaps the first operand"),
        ((3, 2), "workspace overlaps the result operand"),
    ],
)
def test_memory_that_overlaps_is_found(made, at, told):
    with pytest.raises(DeviceError, match=told):
        convolved(made, **{f"at{at[0]}": made[4][at[1]]})


@pytest.mark.parametrize("k", range(4))
def test_memory_that_is_freed_or_outside_is_found(made, k):
    simulated, _, _, stream, blocks = made
    simulated.free(blocks[k], stream)
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS: cudnnConvolution"):
        convolved(made)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"out": (2, 3, 3, 5)}, r"cudnnPooling.*SHAPE_MISMATCH.*expected output \(2, 3, 3, 4\)"),
        ({"kernel": (2,)}, "BAD_PARAM"),
    ],
)
@pytest.mark.parametrize("backward", [True, False])
def test_means_are_checked(made, backward, change, told):
    simulated, dnn, handle, stream, (data, _, out, _) = made

    def run():
        described = dnn.describe(replaced(MEAN, backward=backward, **change))
        addresses = (out, data) if backward else (data, out)
        dnn.pool(handle, described, (1.0, 0.0), addresses)
        simulated.wait_stream(stream)

    if told is None:
        run()
        with pytest.raises(DeviceError, match="CUDNN_STATUS_BAD_PARAM: descriptors of convolution"):
            dnn.pool(handle, dnn.describe(WHAT), (1.0, 0.0), (data, out))
        with pytest.raises(DeviceError, match="CUDNN_STATUS_BAD_PARAM: descriptors of pooling"):
            convolved(made, MEAN)
    else:
        with pytest.raises(DeviceError, match=told):
            run()


def test_handles_and_descriptors_are_checked(made):
    simulated, dnn, handle, stream, _ = made
    with pytest.raises(DeviceError, match="cudnnConvolution: CUDNN_STATUS_BAD_PARAM"):
        convolved(made, handle=stream)
    with pytest.raises(DeviceError, match="has no stream of its own"):
        convolved(made, handle=dnn.create())
    gone = dnn.describe(WHAT)
    dnn.forget(gone)
    with pytest.raises(DeviceError, match="CUDNN_STATUS_BAD_PARAM"):
        dnn.convolve(handle, gone, 1, (1.0, 0.0), (1, 2, 3), (0, 0))
    with pytest.raises(DeviceError, match="CUDNN_STATUS_BAD_PARAM"):
        dnn.forget(gone)
    simulated.enter(simulated.context(1))
    with pytest.raises(DeviceError, match="is of another context"):
        convolved(made)
    other = dnn.create()
    with pytest.raises(DeviceError, match=r"stream .* is of another context"):
        dnn.set_stream(other, stream)
    dnn.destroy(other)
    with pytest.raises(DeviceError, match="CUDNN_STATUS_BAD_PARAM"):
        dnn.destroy(other)


@pytest.mark.parametrize("shared", [True, False])
def test_a_workspace_of_two_streams_is_a_race(made, shared):
    simulated, dnn, first, stream, (a, b, c, workspace) = made
    second, later = dnn.create(), simulated.create_stream()
    dnn.set_stream(second, later)
    out, space = simulated.allocate(SIZES[2], stream), simulated.allocate(SPACE, stream)
    event = simulated.create_event()
    simulated.record(event, stream)
    simulated.wait_event(later, event)
    described = dnn.describe(WHAT)

    def run():
        both = ((first, c, workspace), (second, out, workspace if shared else space))
        for handle, result, block in both:
            dnn.convolve(handle, described, 1, (1.0, 0.0), (a, b, result), (block, SPACE))
        simulated.wait_stream(stream)
        simulated.wait_stream(later)

    if shared:
        with pytest.raises(DeviceError, match="race of streams"):
            run()
    else:
        run()


# --- the library itself ---------------------------------------------------------------------------


class Told:
    """A library that notes what it is asked, gives numbers as handles, answers with a status."""

    def __init__(self, status=0):
        self.status, self.asked, self.made = status, [], 0

    def __getattr__(self, name):
        if name == "cudnnGetErrorString":
            return said
        if name == "cudnnGetLastErrorString":
            return more
        if name not in cudnn.CALLS:
            raise AttributeError(name)

        def call(*given):
            if name.startswith("cudnnCreate"):
                self.made += 1
                given[0]._obj.value = self.made
            self.asked.append(
                (name, [list(x) if isinstance(x, ctypes.Array) else x for x in given])
            )
            return self.status

        return call


def said(status):
    return f"status {status}".encode()


def more(text, size):
    text.value = b"more"


PARTS = {
    "forward": ("Forward", "Tensor Filter Tensor"),
    "data": ("BackwardData", "Filter Tensor Tensor"),
    "weight": ("BackwardFilter", "Tensor Tensor Filter"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("dtype", "kind", "sums", "math", "factor"),
    [("float16", 2, 0, 1, ctypes.c_float), ("bfloat16", 9, 0, 1, ctypes.c_float),
     ("float32", 0, 0, 3, ctypes.c_float), ("float64", 1, 1, 0, ctypes.c_double)],
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_what_the_library_is_asked(part, dtype, kind, sums, math, factor, last):
    told = Told()
    library = cudnn.Library(told)
    what = replaced(WHAT, part=part, dtype=dtypes.of(dtype), last=last)
    described = library.describe(what)
    name, kinds = PARTS[part]
    asked = told.asked[4:]  # all four were created first: number 1 is the convolution's own
    assert described == 1
    assert asked[0] == (
        "cudnnSetConvolutionNdDescriptor", [1, 2, [0, 0], [1, 1], [1, 1], 1, sums],
    )  # fmt: skip
    assert asked[1:3] == [
        ("cudnnSetConvolutionGroupCount", [1, 2]), ("cudnnSetConvolutionMathType", [1, math]),
    ]  # fmt: skip
    for number, (each, shape) in enumerate(zip(kinds.split(), what.shapes, strict=True)):
        n, c, h, w = shape
        given = [int(last), 4, [n, c, h, w]] if each == "Filter" else [4, [n, c, h, w]]
        strides = [c * h * w, 1, w * c, c] if last else [c * h * w, h * w, w, 1]
        given += [] if each == "Filter" else [strides]
        assert asked[3 + number] == (f"cudnnSet{each}NdDescriptor", [2 + number, kind, *given])
    told.asked.clear()
    library.convolve(7, described, 5, (0.5, 2.0), (100, 200, 300), (400, 64))
    ((called, given),) = told.asked
    assert (called, len(given)) == (f"cudnnConvolution{name}", len(cudnn.CALLS[called]))
    alpha, beta = given[1], given[10]
    assert [type(x._obj) for x in (alpha, beta)] == [factor] * 2
    assert (alpha._obj.value, beta._obj.value) == (0.5, 2.0)
    plain = [x for k, x in enumerate(given) if k not in (1, 10)]
    assert plain == [7, 2, 100, 3, 200, 1, 5, 400, 64, 4, 300]
    told.asked.clear()
    library.forget(described)
    destroyed = [f"cudnnDestroy{each}Descriptor" for each in (*kinds.split(), "Convolution")]
    assert told.asked == [(n, [k]) for n, k in zip(destroyed, (2, 3, 4, 1), strict=True)]


@pytest.mark.parametrize("part", PARTS)
def test_what_the_library_tells_of_its_algorithms(part):
    told = Told()
    library = cudnn.Library(told)
    described = library.describe(replaced(WHAT, part=part))
    rows = [(1, 0, 1), (4, 3000, 1), (0, 0, 0), (5, 0, 1)]  # number, status, determinism

    def guessed(*given):
        assert given[:6] == (7, 2, 3, 1, 4, cudnn.MOST)
        given[6]._obj.value = len(rows)
        for place, row in zip(given[7], rows, strict=False):
            place.algorithm, place.status, place.determinism = row
        return 0

    def size(*given):
        assert given[:6] == (7, 2, 3, 1, 4, 5)
        given[6]._obj.value = 96
        return 0

    name = PARTS[part][0]
    setattr(told, f"cudnnGetConvolution{name}Algorithm_v7", guessed)
    setattr(told, f"cudnnGetConvolution{name}WorkspaceSize", size)
    assert library.algorithms(7, described) == [(1, True), (0, False), (5, True)]
    assert library.workspace(7, described, 5) == 96
    setattr(told, f"cudnnGetConvolution{name}WorkspaceSize", lambda *given: 3000)
    assert library.workspace(7, described, 5) is None
    setattr(told, f"cudnnGetConvolution{name}Algorithm_v7", lambda *given: 3003)
    assert library.algorithms(7, described) == []
    setattr(told, f"cudnnGetConvolution{name}Algorithm_v7", lambda *given: 4000)
    with pytest.raises(DeviceError, match=r"Algorithm_v7 \(convolution.*status 4000"):
        library.algorithms(7, described)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("last", [False, True])
def test_what_the_library_is_asked_of_means(counted, backward, last):
    told = Told()
    library = cudnn.Library(told)
    described = library.describe(replaced(MEAN, counted=counted, backward=backward, last=last))
    mode = 1 if counted else 2
    assert told.asked[3] == (
        "cudnnSetPoolingNdDescriptor", [1, mode, 1, 2, [2, 3], [1, 0], [2, 1]],
    )  # fmt: skip
    shapes = [[2, 3, 5, 6], [90, 30, 6, 1]], [[2, 3, 3, 4], [36, 12, 4, 1]]
    if last:
        shapes = [[2, 3, 5, 6], [90, 1, 18, 3]], [[2, 3, 3, 4], [36, 1, 12, 3]]
    for number, shape in enumerate(reversed(shapes) if backward else shapes):
        assert told.asked[4 + number] == ("cudnnSetTensorNdDescriptor", [2 + number, 0, 4, *shape])
    told.asked.clear()
    library.pool(7, described, (0.5, 2.0), (100, 200))
    ((name, given),) = told.asked
    assert len(given) == len(cudnn.CALLS[name])
    factors = [x._obj.value for x in given if hasattr(x, "_obj")]
    assert factors == [0.5, 2.0]
    plain = [x for x in given if not hasattr(x, "_obj")]
    if backward:
        assert name == "cudnnPoolingBackward"
        assert plain == [7, 1, 2, 100, 2, 100, 3, 200, 3, 200]
    else:
        assert (name, plain) == ("cudnnPoolingForward", [7, 1, 2, 100, 3, 200])
    told.asked.clear()
    library.forget(described)
    names = ["cudnnDestroyTensorDescriptor"] * 2 + ["cudnnDestroyPoolingDescriptor"]
    assert told.asked == [(n, [k]) for n, k in zip(names, (2, 3, 1), strict=True)]


def test_a_status_is_an_error():
    with pytest.raises(DeviceError, match=r"cudnnSetStream: status 7 \(more\)"):
        cudnn.Library(Told(7)).set_stream(1, 2)


def test_a_failure_names_what_was_asked(monkeypatch):
    def refused(library, handle, described, *rest):
        told = cudnn.Library(Told(2000))
        told._described[described] = cudnn._Descriptors(WHAT, 1, (2, 3, 4), ("Tensor",) * 3)
        told.convolve(handle, described, *rest)

    monkeypatch.setattr(SimulatedDnn, "convolve", refused)
    x, w = nd.ones((2, 3, 8, 8), ctx=G), nd.ones((4, 3, 3, 3), ctx=G)
    with pytest.raises(
        EngineError,
        match=r"Convolution.*cudnnConvolutionForward.*data \(2, 4, 6, 5\).*status 2000 \(more\)",
    ):
        nd.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True).wait_to_read()

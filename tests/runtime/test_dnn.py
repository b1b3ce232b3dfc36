"""oneDNN: convolution and pooling against slow NumPy, layouts, cuts, binding, failure, fork."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import config
from gnomon.base import DeviceError, GnomonError, ParamError, ShapeError
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Program
from gnomon.runtime.kernels.workspace import Part
from gnomon.runtime.libraries import dnn
from gnomon.runtime.libraries.dnn import library
from gnomon.shape import prod

from . import oracle

Array = np.ndarray[Any, Any]
Convolution, Pooling = dnn.Convolution, dnn.Pooling

CONVOLUTIONS = [
    Convolution((4, 3, 8, 8), (5, 3, 3, 3)),
    Convolution((5, 1, 28, 28), (20, 1, 5, 5)),
    Convolution((33, 20, 12, 12), (50, 20, 5, 5)),
    Convolution((3, 8, 9, 7), (16, 8, 3, 3), (2, 1), (1, 1), (1, 0), (1, 1)),
    Convolution((2, 8, 9, 9), (16, 4, 3, 3), (1, 1), (2, 2), (2, 2), (2, 2), 2),
    Convolution((3, 6, 20), (8, 6, 5), (2,), (1,), (2,)),
    Convolution((2, 4, 6, 7, 8), (8, 4, 3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1)),
    Convolution((7, 32, 10, 10), (32, 1, 3, 3), pad_left=(1, 1), groups=32),
    Convolution((5, 256, 7, 7), (512, 256, 1, 1)),
    Convolution((1, 1, 1, 1), (1, 1, 1, 1)),
]

POOLINGS = [
    Pooling("max", (4, 3, 8, 8), (2, 2), (2, 2)),
    Pooling("max", (5, 20, 9, 9), (3, 3), (2, 2), (1, 1)),
    Pooling("max", (2, 16, 10, 7), (3, 2), (1, 2), (1, 0), (1, 1)),
    Pooling("max", (3, 4, 11), (3,), (2,), (1,)),
    Pooling("max", (2, 3, 5, 6, 7), (2, 3, 2), (1, 2, 2), (1, 1, 0)),
    Pooling("max", (1, 1, 3, 3), (3, 3)),
    Pooling("max", (33, 16, 16, 16), (2, 2), (2, 2)),
]


@pytest.fixture(params=[1, 3], autouse=True)
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every test for several numbers of threads."""
    before = threads.num_threads()
    threads.set_num_threads(request.param)
    yield request.param
    threads.set_num_threads(before)


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def run(step: dnn.DnnStep, result: Array, /, **operands: Array) -> Array:
    """Binds, runs, and gives `result`, which was full of NaN before."""
    result[...] = np.nan
    step.bind(**{name: array.ctypes.data for name, array in operands.items()})
    step.run()
    return result


def near(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("conv", CONVOLUTIONS, ids=str)
def test_convolution(conv: dnn.Convolution) -> None:
    x, w, g = random(*conv.data), random(*conv.weight, seed=1), random(*conv.out, seed=2)
    b = random(conv.weight[0], seed=3)
    want = oracle.convolve(conv, x, w)
    y, dx, dw = (np.empty_like(a) for a in (g, x, w))
    near(run(dnn.convolution_forward(conv), y, data=x, weight=w, out=y), want)
    step = dnn.convolution_forward(conv, bias=True)
    shifted = want + b.reshape(-1, *[1] * (x.ndim - 2))
    near(run(step, y, data=x, weight=w, bias=b, out=y), shifted)
    want_dx, want_dw = oracle.convolve_back(conv, x, w, g)
    near(run(dnn.convolution_backward_data(conv), dx, grad=g, weight=w, out=dx), want_dx)
    near(run(dnn.convolution_backward_weight(conv), dw, grad=g, data=x, out=dw), want_dw)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 9), c=st.integers(1, 20), o=st.integers(1, 20), size=st.integers(5, 9),
    kernel=st.integers(1, 3), stride=st.integers(1, 2), dilate=st.integers(1, 2),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)  # fmt: skip
def test_random_convolutions(
    n: int, c: int, o: int, size: int, kernel: int, stride: int, dilate: int, pads: tuple[int, int]
) -> None:
    conv = Convolution(
        (n, c, size, size + 1), (o, c, kernel, kernel), (stride, 1), (dilate, 1), (pads[0], 0),
        (pads[1], 1),
    )  # fmt: skip
    x, w, g = random(*conv.data), random(*conv.weight, seed=1), random(*conv.out, seed=2)
    y, dx, dw = (np.empty_like(a) for a in (g, x, w))
    near(
        run(dnn.convolution_forward(conv), y, data=x, weight=w, out=y), oracle.convolve(conv, x, w)
    )
    want_dx, want_dw = oracle.convolve_back(conv, x, w, g)
    near(run(dnn.convolution_backward_data(conv), dx, grad=g, weight=w, out=dx), want_dx)
    near(run(dnn.convolution_backward_weight(conv), dw, grad=g, data=x, out=dw), want_dw)


@pytest.mark.parametrize("kind", ["max", "avg", "avg_padded"])
@pytest.mark.parametrize("pooling", POOLINGS, ids=str)
def test_pooling(pooling: dnn.Pooling, kind: str) -> None:
    p = replace(pooling, kind=kind)
    x = np.random.default_rng(0).integers(-2, 3, p.data).astype("float32")  # full of ties
    g = random(*p.out)
    want, want_dx = oracle.pool(p, x, g)
    y, dx = np.empty(p.out, "float32"), np.empty_like(x)
    near(run(dnn.pooling_forward(p), y, data=x, out=y), want)
    source = {"data": x} if kind == "max" else {}
    near(run(dnn.pooling_backward(p), dx, grad=g, out=dx, **source), want_dx)


def test_neighbours_share_a_chosen_layout() -> None:
    first = Convolution((6, 16, 12, 12), (32, 16, 3, 3), pad_left=(1, 1))
    second = Convolution(first.out, (8, 32, 3, 3))
    x, w1, w2 = random(*first.data), random(*first.weight, seed=1), random(*second.weight, seed=2)
    one = dnn.convolution_forward(first, layouts={"out": dnn.CHOSEN})
    between = one.layouts["out"]
    pooling = Pooling("max", first.out, (3, 3), pad_left=(1, 1))
    three = dnn.pooling_forward(pooling, layouts={"data": between, "out": dnn.CHOSEN})
    two = dnn.convolution_forward(second, layouts={"data": three.layouts["out"]})
    hidden = [pool.allocate(layout.nbytes) for layout in (between, three.layouts["out"])]
    y = np.full(second.out, np.nan, "float32")
    one.bind(data=x.ctypes.data, weight=w1.ctypes.data, out=hidden[0].address)
    three.bind(data=hidden[0].address, out=hidden[1].address)
    two.bind(data=hidden[1].address, weight=w2.ctypes.data, out=y.ctypes.data)
    Program([one, three, two]).run()
    middle = oracle.convolve(first, x, w1).astype("float32")
    seen, _ = oracle.pool(pooling, middle, np.zeros(pooling.out))
    near(y, oracle.convolve(second, seen, w2))


def test_weights_in_a_chosen_layout_pass_through() -> None:
    conv = Convolution((3, 16, 8, 8), (32, 16, 3, 3))
    x, g = random(*conv.data), random(*conv.out, seed=1)
    back = dnn.convolution_backward_weight(conv, layouts={"out": dnn.CHOSEN})
    kept = pool.allocate(back.layouts["out"].nbytes)
    back.bind(data=x.ctypes.data, grad=g.ctypes.data, out=kept.address)
    back.run()
    plain = dnn.convolution_backward_weight(conv)
    dw = np.empty(conv.weight, "float32")
    run(plain, dw, data=x, grad=g, out=dw)
    again = dnn.convolution_forward(conv, layouts={"weight": back.layouts["out"]})
    y, z = np.empty(conv.out, "float32"), np.empty(conv.out, "float32")
    again.bind(data=x.ctypes.data, weight=kept.address, out=y.ctypes.data)
    again.run()
    near(y, run(dnn.convolution_forward(conv), z, data=x, weight=dw, out=z))


@pytest.mark.parametrize("last", ["data", "out"])
def test_a_depthwise_convolution_between_two_layouts_takes_the_code_of_one(last: str) -> None:
    conv = dnn.Convolution((2, 24, 6, 5), (24, 1, 3, 3), pad_left=(1, 1), groups=24)
    layouts = {"data": dnn.last(conv.data), "out": dnn.last(conv.out)}
    whole = dnn.convolution_forward(conv, layouts=layouts)
    step = dnn.convolution_forward(conv, layouts={last: layouts[last]})
    assert step.implementation == whole.implementation
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in (conv.data, conv.weight))
    out = np.empty(conv.out if last == "data" else (2, 6, 5, 24), np.float32)
    held = x if last == "out" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    step.bind(data=held.ctypes.data, weight=w.ctypes.data, out=out.ctypes.data)
    step.run()
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
    )
    expected = np.einsum("ncabkl,ckl->ncab", windows, w[:, 0])
    got = out if last == "data" else out.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


def test_bind_again_share_workspace_and_outlive_the_step() -> None:
    conv = CONVOLUTIONS[2]
    x, w = random(*conv.data), random(*conv.weight, seed=1)
    step = dnn.convolution_forward(conv)
    step.use_workspace(pool.allocate(step.workspace_bytes))
    program = Program([step])
    for out in (np.empty(conv.out, "float32"), np.empty(conv.out, "float32")):
        step.bind(x.ctypes.data, w.ctypes.data, out.ctypes.data)
        program.run()
        near(out, oracle.convolve(conv, x, w))
    operands = step.operands
    del step
    noise = [pool.allocate(1 << 20).view("float32", (1 << 18,)) for _ in range(8)]
    for array in noise:
        array[:] = np.nan
    out[:] = 0
    program.run()
    near(out, oracle.convolve(conv, x, w))
    assert operands == ("data", "weight", "out")


def test_steps_of_a_program_share_a_workspace() -> None:
    convs = [CONVOLUTIONS[2], CONVOLUTIONS[0], CONVOLUTIONS[1]]
    steps, results = [], []
    for conv in convs:
        x, w, y = random(*conv.data), random(*conv.weight, seed=1), np.empty(conv.out, "float32")
        steps.append(dnn.convolution_forward(conv))
        steps[-1].bind(x.ctypes.data, w.ctypes.data, y.ctypes.data)
        results.append((x, w, y))
    shared = dnn.share_workspace(steps)
    assert shared is not None
    assert shared.nbytes == max(64, *(step.workspace_bytes for step in steps))
    assert dnn.share_workspace(steps, shared) is shared
    assert dnn.share_workspace([]) is None
    Program(steps).run()
    for conv, (x, w, y) in zip(convs, results, strict=True):
        near(y, oracle.convolve(conv, x, w))


@pytest.mark.parametrize("channels", [3, 12, 16, 20, 32])
@pytest.mark.parametrize("names", [("data",), ("grad",), ("data", "grad")])
def test_scratch_memory_is_what_was_asked_for(channels: int, names: tuple[str, ...]) -> None:
    """oneDNN wrote behind it where few channels lie side by side and windows lie apart."""
    for size in (28, 64, 80):
        conv = dnn.Convolution((5, channels, size, size), (8, channels, 1, 1), (2, 2))
        shapes = {"data": conv.data, "grad": conv.out}
        layouts = {name: dnn.last(shapes[name]) for name in names}
        if channels % 16:
            with pytest.raises(dnn.Unsupported, match="side by side"):
                dnn.convolution_backward_weight(conv, layouts=layouts)
            layouts = {}
        step = dnn.convolution_backward_weight(conv, layouts=layouts)
        arrays = {n: np.ones(s, np.float32) for n, s in {**shapes, "out": conv.weight}.items()}
        room = np.full(step.workspace_bytes // 4 + 32768, 7, np.float32)
        begin = -room.ctypes.data // 4 % 16
        step.use_workspace(Part(room[begin:].ctypes.data, step.workspace_bytes))
        step.bind(**{name: x.ctypes.data for name, x in arrays.items()})
        step.run()
        assert (room[begin + step.workspace_bytes // 4 :] == 7).all()
        assert (arrays["out"] == 5 * prod(conv.out[2:])).all()


def test_profile_names_flops_and_implementation() -> None:
    conv = CONVOLUTIONS[2]
    step = dnn.convolution_forward(conv, name="conv1")
    x, w, y = random(*conv.data), random(*conv.weight), np.empty(conv.out, "float32")
    step.bind(x.ctypes.data, w.ctypes.data, y.ctypes.data)
    rows = step.profile()
    assert [row.name for row in rows][-1] == "conv1"
    assert step.flops == sum(row.flops for row in rows) == 2 * conv.work
    assert isinstance(step.implementation, str)


def test_unbound_operand_is_an_error_not_a_crash() -> None:
    step = dnn.convolution_forward(CONVOLUTIONS[0], name="conv")
    with pytest.raises(GnomonError, match=r"conv, step .*an operand has no address"):
        step.run()
    with pytest.raises(GnomonError, match=r"net, step 0.*no address"):
        Program([dnn.pooling_forward(POOLINGS[0])], name="net").run()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Convolution((1, 3, 8, 8), (4, 2, 3, 3)), ShapeError, "'weight'"),
        (lambda: Convolution((1, 3, 2, 8), (4, 3, 3, 3)), ShapeError, "inside the padded data"),
        (lambda: Convolution((0, 3, 8, 8), (4, 3, 3, 3)), ShapeError, "without zeros"),
        (lambda: Convolution((1, 3, 8, 8), (4, 3, 3, 3), (1,)), ParamError, "'stride'"),
        (lambda: Convolution((1, 3, 8, 8), (4, 3, 3, 3), (0, 1)), ParamError, "'stride'"),
        (lambda: Convolution((1, 4, 8, 8), (3, 2, 3, 3), groups=2), ShapeError, "'weight'"),
        (lambda: Pooling("mean", (1, 1, 4, 4), (2, 2)), ParamError, "'kind'"),
        (lambda: Pooling("max", (1, 1, 4, 4), (2,)), ParamError, "'kernel'"),
        (lambda: Pooling("max", (1, 1, 4, 4), (2, 2), pad_left=(2, 0)), ParamError, "'pad_left'"),
        (lambda: Pooling("max", (1, 1, 2, 4), (3, 3)), ShapeError, "'data'"),
        (lambda: dnn.convolution_forward(CONVOLUTIONS[0]).bind(image=1), ParamError, "'image'"),
        (lambda: dnn.convolution_forward(CONVOLUTIONS[0]).bind(1, 2, 3, 4), ParamError, "at most"),
        (lambda: dnn.convolution_forward(CONVOLUTIONS[2]).use_workspace(pool.allocate(1)),
         ParamError, "'storage'"),
        (lambda: dnn.convolution_forward(CONVOLUTIONS[0], layouts={"image": dnn.CHOSEN}),
         ParamError, "'layouts'"),
    ],
)  # fmt: skip
def test_refusals(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_setting() -> None:
    assert dnn.available()
    assert dnn.why_not() == ""
    with config.using(onednn=False):
        assert not dnn.available()
        assert dnn.why_not() == "the setting 'onednn' is off"


def test_without_libgomp() -> None:
    script = (
        "import ctypes\n"
        "load = ctypes.CDLL\n"
        "def refuse(name, *a, **k):\n"
        "    if name and 'gomp' in str(name): raise OSError('no such file')\n"
        "    return load(name, *a, **k)\n"
        "ctypes.CDLL = refuse\n"
        "from gnomon.runtime.libraries import dnn\n"
        "assert not dnn.available(); print(dnn.why_not())\n"
        "try: dnn.convolution_forward(dnn.Convolution((1,1,3,3), (1,1,2,2)))\n"
        "except Exception as e: print(type(e).__name__, e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "libgomp is missing (no such file)"
    assert "DeviceError oneDNN is not available" in done.stdout
    assert issubclass(DeviceError, GnomonError)


def test_primitives_that_go_when_names_are_gone_say_nothing() -> None:
    """As Python ends: names of a module become None, those with an underscore first."""
    script = (
        "from gnomon.runtime.libraries.dnn import library\n"
        "plain, shape = library.Description.plain, (2, 3, 4, 5)\n"
        "strides = (60, 20, 5, 1), (60, 1, 15, 3), (1, 2, 6, 24)\n"
        "every = [plain(shape, each) for each in strides]\n"
        "for pair in [(a, b) for a in every for b in every]: library.reorder(*pair)\n"
        "library._latest.reverse()  # those made last go first\n"
        "for name in sorted(vars(library), key=lambda name: not name.startswith('_')):\n"
        "    if not name.startswith('__'): setattr(library, name, None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork() -> None:
    conv = CONVOLUTIONS[2]
    x, w, y = random(*conv.data), random(*conv.weight), np.empty(conv.out, "float32")
    old = dnn.convolution_forward(conv)
    want = run(old, y, data=x, weight=w, out=y).copy()
    child = os.fork()
    if child == 0:
        z = np.empty_like(y)
        new = dnn.convolution_forward(conv)
        good = all((run(step, z, data=x, weight=w, out=z) == want).all() for step in (old,))
        close = np.allclose(run(new, z, data=x, weight=w, out=z), want, rtol=1e-4, atol=1e-4)
        os._exit(0 if good and close else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_that_first_ask_together_execute_one_primitive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = library.Description.plain((7, 7), (7, 1))
    found = library.library()
    create = "dnnl_matmul_primitive_desc_create"
    made = library.primitive(create, found.engine, one, one, None, one, library.attributes())
    new, both = library._new, threading.Barrier(2, timeout=30)

    def slowly(*given: Any) -> Any:
        both.wait()  # each has seen that there is none
        return new(*given)

    monkeypatch.setattr(library, "_new", slowly)
    with ThreadPoolExecutor(2) as pool_of_two:
        asked = [pool_of_two.submit(lambda: made.address) for _ in range(2)]
        assert {each.result(30) for each in asked} == {made.address}


def test_a_primitive_goes_with_the_steps_that_own_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_latest", deque[library.Primitive](maxlen=1))
    one, other = (Convolution((2, 3, n, 9), (4, 3, 3, 3)) for n in (31, 33))

    def asked(conv: Convolution) -> library.Primitive:
        return dnn.forward_primitive(conv, None, None, None, bias=False)

    step = dnn.convolution_forward(one)
    gone = weakref.ref(asked(one))
    asked(other)
    assert asked(one) is gone()
    assert step.held >= asked(one).held > 0
    del step
    asked(other.of(1))
    gc.collect()
    assert gone() is None
    capacity = ctypes.c_int(-1)
    library.library().dnnl.dnnl_get_primitive_cache_capacity(ctypes.byref(capacity))
    assert capacity.value == 0

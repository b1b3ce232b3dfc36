"""The same plans on every target: run here as old processors and GPUs would, assembled elsewhere.

`pytest -m long tests/code/test_targets.py` does so with every plan that the whole suite compiles.
"""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon import dtype as dt
from gnomon.base import ParamError
from gnomon.code import cpu, nvptx
from gnomon.code.target import TARGETS, Target, gpu
from gnomon.expr import ext, fn
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Expr, cast
from gnomon.expr.oracle import evaluate
from gnomon.plan.gpu.spread import spread
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import SAVERS, Store, Structure
from gnomon.runtime.compiler import cross, jit
from gnomon.runtime.compiler.host import host
from gnomon.runtime.kernels.kernel import Kernel, pipeline
from gnomon.shadow import Tensor, make_plan
from tests.code import arm
from tests.code import gpu as simulated
from tests.code.elsewhere import accepted, elsewhere, elsewhere_all, nests_of
from tests.expr.test_compiled import CASES, MODULES, filled
from tests.plan.test_expressions import SHAPES, expressions, over

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
REPOSITORY = Path(__file__).parent.parent.parent
FLOATS = ("float16", "bfloat16", "float32", "float64")
TEAMS = [(8, 8), (64, 1)]  # several groups a warp, and a block that is one group


def runs_here(target: Target) -> bool:
    """Whether this processor has all that `target` has."""
    here = host()
    wanted = {word.removeprefix("+") for word in target.features.split(",") if word}
    return here.triple.split("-")[0] == target.triple.split("-")[0] and wanted <= here.features


HERE = [name for name, target in TARGETS.items() if runs_here(target)]


object_file = functools.cache(cross.object_file)  # shapes that have the same code are many


def run_as(target: Target, stores: list[Store]) -> None:
    """Carry out statements with the code of `target`."""
    target = replace(target, triple=host().triple)  # the system that runs this
    for group in simulated.groups(stores):
        structure = Structure(group)
        nests = plan(group, structure)
        code = object_file(cpu.write(nests, target), target, pipeline(nests))
        Kernel(signature_of(nests), jit.load_object(code)).bind(structure).run()


def close(got: np.ndarray, want: np.ndarray, rtol: float = 3e-5) -> None:
    wide = np.float64 if got.dtype.kind not in "iub" else got.dtype
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=1e-5)


def extension_cases() -> Iterator[Expr]:
    """Every case of every extension, over memory."""
    for name, k in CASES:
        e = filled(list(MODULES[name].cases())[k], 3, strided=bool(k % 2))
        if 0 not in e.shape:
            yield e


def into(e: Expr, saver: str = "saveto") -> list[Store]:
    return [Store(over(np.full(e.shape, 2, e.dtype.numpy)), saver, e)]


def functions(dtype: str) -> Iterator[Expr]:
    """Every scalar function there is in `dtype`."""
    x = over(np.full(50, 0.25).astype(dt.of(dtype).numpy))
    for f in SCALAR.values():
        try:
            yield f(*[x] * f.arity)
        except (TypeError, ValueError):  # not in this dtype
            continue


def half_floats_convert(dtype: str, run: Callable[[list[Store]], object]) -> None:
    """All of them to float32, and float32s around each of them, and halfway between, to them."""
    half = np.arange(1 << 16, dtype=np.uint16).view(dt.of(dtype).numpy)
    wide = np.zeros(half.size, np.float32)
    run([Store(over(wide), "saveto", cast(over(half), dt.float32))])
    np.testing.assert_array_equal(wide, half.astype(np.float32))
    bits = wide.view(np.uint32).astype(np.int64)
    centres = np.concatenate([bits, (bits[:-1] + bits[1:]) // 2])
    x = (centres[:, None] + np.arange(-2, 3)).ravel().astype(np.uint32).view(np.float32)
    got = np.zeros(x.size, half.dtype)
    run([Store(over(got), "saveto", cast(over(x), dt.of(dtype)))])
    want = x.astype(half.dtype)
    same = got.view(np.uint16) == want.view(np.uint16)
    assert (same | (np.isnan(x) & np.isnan(got.astype(np.float32)))).all()


# -- AArch64 --------------------------------------------------------------------------------------


class TestEmulatedArm:
    """The machine code of AArch64, instruction by instruction, where the emulator is installed."""

    __test__ = arm.AVAILABLE

    def test_extensions(self):
        for k, e in enumerate(extension_cases()):
            dest = np.full(e.shape, 2, e.dtype.numpy)
            arm.run([Store(over(dest), "plusto", e)], 1 + k % 3)
            close(dest, evaluate(e) + e.dtype.numpy.type(2))

    @settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data(), SHAPES, st.integers(1, 3))
    def test_random_expressions(self, data, shape, tasks):
        e = data.draw(expressions(shape))
        if 0 in shape:
            return
        dest = np.zeros(shape)
        arm.run([Store(over(dest), "saveto", e)], tasks)
        np.testing.assert_array_equal(dest, evaluate(e))

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
    def test_bits(self, dtype):
        x, y = np.arange(-60, 61).astype(dtype), np.arange(-50, 71).astype(dtype)
        for f in (f for f in SCALAR.values() if f.body.bits):
            e = f(*map(over, (x, y)[: f.arity]))
            dest = np.zeros_like(x)
            arm.run([Store(over(dest), "saveto", e)])
            np.testing.assert_array_equal(dest, evaluate(e), err_msg=f.name)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_functions(self, dtype):
        x = np.linspace(-3, 3, 301).astype(dtype)
        for f in (f for f in SCALAR.values() if f.arity == 1 and not f.body.bits):
            e = f(over(x))
            dest = np.zeros(x.shape, e.dtype.numpy)
            arm.run([Store(over(dest), "saveto", e)])
            unit = np.finfo(dtype).eps
            np.testing.assert_allclose(dest, evaluate(e), rtol=16 * unit, atol=40 * unit)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    def test_half_floats(self, dtype):
        half_floats_convert(dtype, arm.run)


# -- processors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HERE)
def test_extensions_on_older_processors(name):
    """Each case on one of the processors."""
    for e in itertools.islice(extension_cases(), HERE.index(name), None, len(HERE)):
        dest = np.full(e.shape, 2, e.dtype.numpy)
        run_as(TARGETS[name], [Store(over(dest), "plusto", e)])
        close(dest, evaluate(e) + e.dtype.numpy.type(2))


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), SHAPES)
def test_random_expressions_on_older_processors(data: st.DataObject, shape: tuple[int, ...]):
    e = data.draw(expressions(shape))
    if 0 in shape:
        return
    for name in HERE:
        dest = np.zeros(shape)
        run_as(TARGETS[name], [Store(over(dest), "saveto", e)])
        np.testing.assert_array_equal(dest, evaluate(e))


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("step", [2, 3, -1])
def test_half_floats_at_strides_on_older_processors(name, step):
    for dtype in ("float16", "bfloat16"):
        x = np.arange(4800).reshape(8, 600).astype(dt.of(dtype).numpy)[:, ::step]
        for axis in range(2):
            e = ext.reduce(over(x), "max", axis)
            out = np.zeros(e.shape, x.dtype)
            run_as(TARGETS[name], [Store(over(out), "saveto", e)])
            np.testing.assert_array_equal(out, x.max(axis))


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_on_older_processors(name, dtype):
    x = np.linspace(-3, 3, 301).astype(dtype)
    for f in (fn.exp, fn.log1p, fn.tanh, fn.sin, fn.erf, fn.gammaln, fn.cbrt):
        e = f(over(x))
        dest = np.zeros_like(x)
        run_as(TARGETS[name], [Store(over(dest), "saveto", e)])
        unit = np.finfo(dtype).eps
        want = evaluate(e)
        np.testing.assert_allclose(dest, want, rtol=8 * unit, atol=20 * unit)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_floats_convert_alike_everywhere(name, dtype):
    half_floats_convert(dtype, functools.partial(run_as, TARGETS[name]))


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "float32"])
def test_reductions_and_tails_on_older_processors(name, dtype):
    for shape in ((37, 53), (5, 1000), (64, 64), (130, 2)):
        x = np.random.default_rng(1).integers(0, 5, shape).astype(dtype)
        for axes in ((0,), (1,), (0, 1)):
            e = ext.reduce(over(x), "sum", axes)
            dest = np.zeros(e.shape, dtype)
            run_as(TARGETS[name], [Store(over(dest), "saveto", e)])
            close(dest, evaluate(e), 1e-3)
        e = ext.arg_reduce(over(x), "max", 1)
        dest = np.zeros(e.shape, np.int64)
        run_as(TARGETS[name], [Store(over(dest), "saveto", e)])
        np.testing.assert_array_equal(dest, x.argmax(axis=1))


# -- GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", TEAMS, ids=str)
def test_extensions_by_the_threads_of_a_gpu(group):
    for e in extension_cases():
        dest = np.full(e.shape, 2, e.dtype.numpy)
        simulated.run([Store(over(dest), "plusto", e)], group)
        close(dest, evaluate(e) + e.dtype.numpy.type(2))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), SHAPES, st.sampled_from(TEAMS))
def test_random_expressions_by_the_threads_of_a_gpu(data, shape, group):
    e = data.draw(expressions(shape))
    if 0 in shape:
        return
    dest = np.zeros(shape)
    simulated.run(into_array(dest, e), group)
    np.testing.assert_array_equal(dest, evaluate(e))


def softmax(x: Expr) -> Expr:
    def along(e: Expr, reducer: str) -> Expr:
        return ext.broadcast_to(ext.reduce(e, reducer, (1,), keepdims=True), x.shape)

    e = fn.exp(x - along(x, "max"))
    return e / along(e, "sum")


def test_how_work_is_spread_over_a_gpu():
    """Threads for maps and sums across, groups for what lies side by side; sums in two steps."""
    x = over(np.random.default_rng(0).normal(size=(40, 70)).astype(np.float32))
    wanted = [
        (x * 2.0, ["threads"]),
        (ext.reduce(x, "sum", (0,)), ["threads", "threads"]),
        (ext.reduce(x, "sum", (1,)), ["elements"]),
        (softmax(x), ["rows"]),
        (ext.reduce(x, "sum", None), ["elements", "elements"]),
    ]
    for e, kinds in wanted:
        dest = np.zeros(e.shape, np.float32)
        for group in (*TEAMS, (1, 64), (32, 2), (256, 1)):
            assert simulated.run(into_array(dest, e), group) == kinds
            np.testing.assert_allclose(dest, evaluate(e), rtol=2e-5, atol=1e-5)


def into_array(dest: np.ndarray, e: Expr) -> list[Store]:
    return [Store(over(dest), "saveto", e)]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", *FLOATS])
def test_groups_exchange_every_dtype(dtype):
    x = over((np.arange(6 * 90).reshape(6, 90) % 7 == 3).astype(dt.of(dtype).numpy))
    folds = [ext.arg_reduce(x, "max", 1)]
    if dtype != "bool":
        folds += [ext.reduce(x, reducer, (1,)) for reducer in ("max", "min", "sum")]
    for e in folds:
        dest = np.zeros(e.shape, e.dtype.numpy)
        simulated.run(into_array(dest, e))
        close(dest, evaluate(e))


def test_launches_cover_all_sizes():
    """At most 256 threads a block, as many blocks as there is work for, none without work."""
    x = over(np.zeros((300, 2000), np.float32))
    sizes = {("dim", 0): 300, ("dim", 1): 2000}
    (entry,) = simulated.entries(into(ext.reduce(x, "sum", (1,))))
    assert entry.shape(sizes, 132) == (300, 256, 1)
    assert entry.shape({**sizes, ("dim", 1): 200}, 132) == (38, 32, 8)
    assert entry.shape({**sizes, ("dim", 1): 50}, 132) == (19, 16, 16)
    assert entry.shape({**sizes, ("dim", 1): 8}, 132) == (3, 2, 128)
    assert entry.shape({**sizes, ("dim", 1): 3}, 132) == (2, 1, 256)
    assert entry.shape({**sizes, ("dim", 0): 0}, 132)[0] == 0
    assert entry.shape({**sizes, ("dim", 0): 10**9}, 132)[0] == 132 * 32
    (entry,) = simulated.entries(into(x + 1.0))
    assert entry.shape({("dim", 0): 600_000}, 132) == (586, 256, 1)  # four elements each


@pytest.mark.parametrize("arch", ["sm_60", "gfx90a", "sm_", "90", "sm_x", 90, None])
def test_unknown_gpus_are_refused(arch):
    with pytest.raises(ParamError, match=f"sm_70 or a later one.*{arch}"):
        make_plan(over(np.ones(3)) * 2.0).ptx(arch)


@pytest.mark.parametrize("arch", ["sm_70", "sm_80", "sm_90"])
def test_older_gpus_take_every_dtype(arch):
    """Half floats have instructions on some only."""
    x = over(np.ones(100, np.float32))
    for dtype in FLOATS:
        (nests,) = nests_of(into(cast(cast(x, dt.of(dtype)) * 2.0, dt.of(dtype))))
        text = nvptx.write(spread(nests), gpu(arch)).text
        ptx = cross.assembly(text, gpu(arch))
        assert ("cvt.rn.bf16" in ptx) == (dtype == "bfloat16" and arch != "sm_70")
        if arch != "sm_70":  # which the assembler of CUDA 13 has given up
            accepted([ptx], arch)


# -- looking --------------------------------------------------------------------------------------


def test_plans_show_their_code_for_any_machine():
    x = Tensor(np.ones((3, 4), np.float32))
    e = x * 2.0 + ext.broadcast_to(ext.reduce(x, "sum", (0,), keepdims=True), (3, 4))
    shown = make_plan(e)
    ptx = shown.ptx("sm_80")
    assert ".target sm_80" in ptx
    assert "// slots by value: l0 l1 s0" in ptx
    assert "// kernel_1: a thread for each element" in ptx
    assert "// kernel_2: a thread for each 4 elements" in ptx
    assert ".visible .entry kernel_1(" in ptx
    assert "fmul\tv" in shown.assembly()  # four at once
    assert "%zmm" in shown.assembly("x86-64-v4")
    assert "%ymm" not in shown.assembly("x86-64")
    assert "// kernel_0: " in x.explain(e, stage="sm_90")


@pytest.mark.parametrize("target", ["arm", "", None, 3, ["aarch64"]])
def test_unknown_machines_are_refused(target):
    x = Tensor(np.ones(3, np.float32))
    with pytest.raises(ParamError, match=r"one of x86-64, .*aarch64, or a GPU"):
        make_plan(x * 2.0).assembly(target)
    with pytest.raises(ParamError, match="one of plan, loop, llvm, asm, x86-64"):
        x.explain(x * 2.0, stage=target)


# -- assembled elsewhere --------------------------------------------------------------------------


def test_extensions_elsewhere():
    assert elsewhere(into(e) for e in extension_cases()) > 40


SOME = ("float32", "bfloat16")  # the others take a minute and a half
FUNCTIONS_OF = [
    pytest.param(name, marks=[] if name in SOME else pytest.mark.long)
    for name in (*FLOATS, "int8", "uint8", "int32", "int64")
]


@pytest.mark.parametrize("dtype", FUNCTIONS_OF)
def test_functions_elsewhere(dtype):
    """Each scalar function, several to a kernel."""
    all_of_them = list(functions(dtype))
    assert len(all_of_them) > 20
    groups = [all_of_them[k : k + 6] for k in range(0, len(all_of_them), 6)]
    elsewhere([s for e in group for s in into(e)] for group in groups)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8", "int32", "int64"])
def test_savers_elsewhere(dtype):
    x = over(np.ones((9, 7), dt.of(dtype).numpy))
    row = ext.broadcast_to(ext.slice_(x, (0, 0), (1, 7)), (9, 7))
    values = [x * x, ext.transpose(ext.transpose(x) * 2), row]
    elsewhere(into(e, saver) for e in values for saver in SAVERS)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.lists(SHAPES, min_size=4, max_size=4))
def test_random_expressions_elsewhere(data, shapes):
    drawn = [data.draw(expressions(shape)) for shape in shapes]
    elsewhere(into(e) for e in drawn if 0 not in e.shape)


@pytest.mark.parametrize("count", [600, nvptx.SLOTS - 1])
def test_many_arguments_elsewhere(count):
    """Arguments of more than 4096 bytes, and of more than an entry may have by value."""
    leaves = [over(np.ones(8, np.float32)) for _ in range(count)]
    total = leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf
    elsewhere([into(total)])
    dest = np.zeros(8, np.float32)
    simulated.run(into_array(dest, total))
    np.testing.assert_array_equal(dest, count)


def test_many_statements_elsewhere():
    """A body of thousands of statements goes in segments."""
    x = over(np.full(23, 0.5, np.float32))
    long: Expr = x
    for k in range(2000):
        long = long * 0.5 + x if k % 2 else long - x
    elsewhere([into(long)])
    runs = [simulated.run, *(functools.partial(run_as, TARGETS[name]) for name in HERE)]
    for carry_out in runs:
        dest = np.zeros(x.shape, np.float32)
        carry_out(into_array(dest, long))
        np.testing.assert_allclose(dest, evaluate(long), rtol=1e-5)


def kept(folder: Path, *arguments: str) -> int:
    """Runs tests in a process that keeps each plan; both machines then take them all."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    subprocess.run([*command, "-p", "tests.plans", "--plans", folder], cwd=REPOSITORY, check=False)
    return elsewhere_all(folder)


def test_plans_of_other_tests_elsewhere(tmp_path):
    """What keeps plans does so."""
    assert kept(tmp_path, "tests/shadow/test_lvalue.py", "-k", "operators") > 2


@pytest.mark.long
@pytest.mark.timeout(5000)
def test_every_plan_of_the_suite_elsewhere(tmp_path):
    """The whole suite."""
    count = kept(tmp_path, "-n", str(os.cpu_count() or 1), "tests")
    print(f"{count} plans")
    assert count > 1000

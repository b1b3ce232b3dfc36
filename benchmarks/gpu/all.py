"""Everything to know of a GPU, in order of value, each row written at once.

    GNOMON_GPU=nvidia python benchmarks/gpu/all.py --out gpu.jsonl
    GNOMON_GPU=simulated python benchmarks/gpu/all.py --out /tmp/gpu.jsonl --size 1000 --repeats 1

First what there is, then whether each row of the expression benchmark computes what NumPy says, and
each operator what MXNet did; then how fast a copy is and how fast each row is beside it, then how
fast products are, then what a launch and an operator cost in Python, then what bound networks cost,
as CUDA graphs, then what the same takes PyTorch. Rows follow each other in one process until one
fails, or takes longer than a minute: that is written down, and the next one begins in another.
Checks run in several processes at once, what is timed runs alone. A row that is in the file already
is not run again, so what was cut off goes on; `--again` runs those that failed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))

import numpy as np
import work
from figures import formula_of
from networks import NETWORKS
from results import ANEW, Results

import gnomon as mx
from gnomon import autograd, nd, shadow
from gnomon import dtype as dt
from gnomon.base import DeviceError
from gnomon.expr.call import Order
from gnomon.expr.node import Expr
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import gpu as gpus
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow import Tensor, TensorContainer

ROOT = Path(__file__).parent.parent.parent
CHECKED = 100_000  # elements of a row whose result is compared
TOLERANCE = (2e-3, 2e-4)
TOLERANCE_OF_PRODUCTS = {"float32": (1e-3, 1e-3), "float16": (1e-2, 0.5), "float64": (1e-9, 1e-9)}
LARGEST = 8192  # rows of a matrix
IMAGES = 64
LAUNCHES = 50  # for each of the repeats
BATCH = 128  # of a network's step
SORTED = {"of 1000": 1000, "of 10^6": 10**6}  # by name, how many elements a row has
LOOKED_UP, VOCABULARY, WIDTH = 1 << 14, 50_000, 512  # rows that are summed, of how many
PARTS, PATIENCE = 32, 45  # of the operators' records; seconds for one of them


def there(array: np.ndarray[Any, Any]) -> TensorContainer:
    """An array's numbers on the GPU."""
    made = TensorContainer(array.shape, array.dtype, None, False, shadow.gpu)
    return shadow.copy(made, Tensor(array))


def filled(shape: Sequence[int], dtype: dt.DType) -> TensorContainer:
    """Numbers that the GPU makes itself: those of 10^8 elements would take the processor longer
    than all that is timed."""
    made = TensorContainer(tuple(shape), dtype, None, False, shadow.gpu)
    number: Any = sum(shadow.iota(made.shape, axis) * (axis + 3) for axis in range(made.ndim))
    return made.assign(shadow.tcast(dtype, number - number / 97 * 97 + 1))


def operands(row: str, n: int, made: bool) -> dict[str, TensorContainer]:
    """The operands of a row and `out` on the GPU: random ones, or `made` there."""
    if not made:
        return {k: there(a) for k, a in work.arrays(row, n, "float32").items()}
    said = work.ROWS[row]
    shapes = {k: shape(n) for k, shape in said.operands.items()}
    if not said.place:
        shapes["out"] = said.out(n)
    return {k: filled(s, dt.of(said.types.get(k, "float32"))) for k, s in shapes.items()}


def statement(row: str, n: int, made: bool = False) -> tuple[Tensor, str, Expr]:
    """A row's destination, saver and value, on the GPU."""
    tensors = operands(row, n, made)
    value = formula_of(row)(*[tensors[k] for k in work.ROWS[row].operands])
    dest = tensors[work.ROWS[row].place or "out"]
    if dest.dtype is not value.dtype:
        dest = TensorContainer(dest.shape, value.dtype, None, False, shadow.gpu)
    return dest, "plusto" if row == "plus" else "saveto", value


def about(_: argparse.Namespace) -> dict[str, Any]:
    """What there is."""
    found = gpus.get(0)
    is_ = found.properties
    return {"name": is_.name, "arch": is_.arch, "memory": is_.memory, "free": found.memory()[0]}


def checked(row: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """Whether a row computes what NumPy says."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        n = min(CHECKED, options.size)
        dest, saver, value = statement(row, n)
        dest.assign(value, saver)
        got, want = np.array(work.probe(dest.numpy())), work.expected(row, n, "float32")
        return {"right": bool(np.allclose(got, want, *TOLERANCE))}

    return run


def recorded(part: int) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """Whether operators, with their gradients, give what MXNet recorded."""

    def run(_: argparse.Namespace) -> dict[str, Any]:
        sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
        from tests.gpu.test_operators import RECORDS, agrees

        numbers, until = range(part, len(RECORDS), PARTS), time.monotonic() + PATIENCE
        tried, wrong = 0, {}
        for number in numbers:
            if time.monotonic() > until:
                break
            tried += 1
            try:
                agrees(number)
            except Exception as error:
                wrong[RECORDS[number]["id"]] = f"{type(error).__name__}: {error}"[:300]
                if isinstance(error, DeviceError):
                    break
        return {"right": not wrong, "tried": tried, "of": len(numbers), "wrong": wrong}

    return run


def on_streams(options: argparse.Namespace) -> dict[str, Any]:
    """Whether random programs on several streams give what they do one after the other."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from tests.gpu.test_shadow import program

    programs = 5 * options.repeats
    for seed in range(programs):
        program(seed)
    return {"right": True, "programs": programs}


def seconds_of(
    work_of: Callable[[], object], repeats: int, wait: Callable[[], object] | None = None
) -> float:
    """The median time of some work on the GPU, of five rounds after one that is not counted."""
    wait, taken = wait or gpus.get(0).synchronise, []
    for _ in range(6):
        wait()
        began = time.perf_counter()
        for _ in range(repeats):
            work_of()
        wait()
        taken.append((time.perf_counter() - began) / repeats)
    return median(taken[1:])


def copied(options: argparse.Namespace) -> dict[str, Any]:
    """How fast the GPU copies: what it reads and writes in a second."""
    x, y = (TensorContainer((options.size,), device=shadow.gpu, init=1.0) for _ in range(2))
    gpu = gpus.get(0)
    seconds = seconds_of(lambda: gpu.copy(y.address, x.address, 4 * x.size(0)), options.repeats)
    return {"seconds": seconds, "gb_per_s": 8 * options.size / seconds / 1e9}


def timed(row: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast a row is: the bytes of its operands and result in a second."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        dest, saver, value = statement(row, options.size, True)
        steps = prepare([Store(dest, saver, value)])
        seconds = seconds_of(lambda: [step.run() for step in steps], options.repeats)
        return {"seconds": seconds, "gb_per_s": sum(s.bytes for s in steps) / seconds / 1e9}

    return run


def launched(options: argparse.Namespace) -> dict[str, Any]:
    """What a statement and a prepared launch of ten elements cost in Python."""
    x = TensorContainer((10,), device=shadow.gpu, init=1.0)
    (step,) = prepare([Store(x, "saveto", x + 1.0)])

    many = LAUNCHES * options.repeats

    def statements() -> None:
        x[:] = x + 1.0

    return {
        "statement_us": 1e6 * seconds_of(statements, many),
        "launch_us": 1e6 * seconds_of(step.run, many),
    }


def multiplied(dtype: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast square matrices are multiplied, and whether some elements are right."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        n = min(LARGEST, math.isqrt(options.size))
        numbers = np.random.default_rng(0)
        held = [numbers.standard_normal((n, n)).astype(dtype) for _ in range(2)]
        a, b = (nd.array(x, ctx=mx.gpu(0), dtype=dtype) for x in held)
        want = held[0][:2].astype(np.float64) @ held[1].astype(np.float64)
        found = nd.dot(a, b)[:2].asnumpy()
        seconds = seconds_of(lambda: nd.dot(a, b), options.repeats)
        return {
            "right": bool(np.allclose(found, want, *TOLERANCE_OF_PRODUCTS[dtype])),
            "seconds": seconds,
            "tflops": 2 * n**3 / seconds / 1e12,
            "cublas": gpus.get(0).driver.blas() is not None,
        }

    return run


def summed(options: argparse.Namespace) -> dict[str, Any]:
    """How fast the gradient of a look-up is, and whether it is right."""
    count, rows = (min(n, options.size) for n in (LOOKED_UP, VOCABULARY))
    width = max(4, min(WIDTH, options.size // VOCABULARY))
    numbers = np.random.default_rng(0)
    index = numbers.integers(0, rows, count)
    source = numbers.integers(-9, 9, (count, width)).astype(np.float32)
    want = np.zeros((rows, width), np.float32)
    np.add.at(want, index, source)
    return repeated(shadow.take_grad(there(index), there(source), rows), want, source, options)


def ordered(rows: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast rows of numbers, a million in all, are put in order, and whether that is right."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        length, total = (min(n, options.size) for n in (SORTED[rows], 10**6))
        numbers = np.random.default_rng(0).standard_normal((total // length, length))
        x = numbers.astype(np.float32)
        want = np.argsort(x, -1, kind="stable").astype(np.int32)
        return repeated(Order(there(x), True, length), want, x, options)

    return run


def repeated(value: Expr, want: Any, read: Any, options: argparse.Namespace) -> dict[str, Any]:
    """How fast a value is made of what is read, and whether it is right."""
    dest = TensorContainer(want.shape, want.dtype, None, False, shadow.gpu)
    steps = prepare([Store(dest, "saveto", value)])
    seconds = seconds_of(lambda: [step.run() for step in steps], options.repeats)
    right = bool((dest.numpy() == want).all())
    gb_per_s = (read.nbytes + want.nbytes) / seconds / 1e9
    return {"right": right, "seconds": seconds, "gb_per_s": gb_per_s}


class Layer(NamedTuple):
    """A layer of ResNet-50: the shapes of an image and of its weights, and what it does.

    For an image, with all gradients, it moves so many elements at least, and multiplies and adds.
    """

    shapes: tuple[tuple[int, ...], ...]
    apply: Callable[..., Any]
    elements: int
    operations: int


def layered(name: str, dtype: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast a layer is, with its gradients; and whether that is right."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        layer = LAYERS[name]
        image, *weights = layer.shapes
        images = max(1, min(IMAGES, options.size // math.prod(image)))
        numbers = np.random.default_rng(0)
        data = numbers.standard_normal((images, *image)).astype(dtype)
        held = [(numbers.standard_normal(shape) / 24).astype(dtype) for shape in weights]

        def step(*given: Any) -> Any:
            with autograd.record():
                y = layer.apply(*given)
            y.backward()
            return y

        def arrays(ctx: mx.Context, count: int) -> list[Any]:
            found = [nd.array(v, ctx=ctx, dtype=dtype) for v in (data[:count], *held)]
            for x in found:
                x.attach_grad()
            return found

        found = []
        for ctx in (mx.gpu(0), mx.cpu()):
            given = arrays(ctx, 1)
            results = step(*given), *(x.grad for x in given)
            found.append([v.asnumpy().astype(np.float64) for v in results])
        given = arrays(mx.gpu(0), images)
        seconds = seconds_of(lambda: step(*given), options.repeats)
        pairs = zip(*found, strict=True)
        return {
            "right": all(np.allclose(*pair, *TOLERANCE_OF_PRODUCTS[dtype]) for pair in pairs),
            "images": images,
            "seconds": seconds,
            "gb_per_s": images * layer.elements * data.itemsize / seconds / 1e9,
            "tflops": images * layer.operations / seconds / 1e12,
            "cudnn": gpus.get(0).driver.dnn() is not None,
        }

    return run


def operated(options: argparse.Namespace) -> dict[str, Any]:
    """What operators on small arrays cost in Python, one after the other."""
    x, w = (nd.ones((8, 8), ctx=mx.gpu(0)) for _ in range(2))
    many = LAUNCHES * options.repeats
    return {
        "add_us": 1e6 * seconds_of(lambda: x + w, many),
        "dot_us": 1e6 * seconds_of(lambda: nd.dot(x, w), many),
        "softmax_us": 1e6 * seconds_of(lambda: nd.softmax(x), many),
    }


def bound(name: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """What a bound network costs: the launch of its program, and a step of training."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        symbol, shape = NETWORKS[name]()
        shape = (min(BATCH, options.size // 8), *shape)
        module = mx.mod.Module(symbol, context=mx.gpu(0))
        module.bind([("data", shape)], [("softmax_label", shape[:1])])
        module.init_params(mx.init.Xavier())
        module.init_optimizer(kvstore=None, optimizer_params={"momentum": 0.9})
        there = [nd.ones(s, ctx=mx.gpu(0)) for s in (shape, shape[:1])]
        batch = mx.io.DataBatch(there[:1], there[1:])
        predict = module._exec_group.execs[0]

        def step() -> None:
            module.forward_backward(batch)
            module.update()

        return {
            "batch": shape[0],
            "launch_us": 1e6 * seconds_of(predict.forward, options.repeats),
            "step_us": 1e6 * seconds_of(step, options.repeats),
        }

    return run


def torch_row(how: str, row: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast PyTorch is at a row, operation by operation or compiled."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        import torch_peer

        once = getattr(torch_peer, how)(row, options.size)
        return {"seconds": seconds_of(once, options.repeats, torch_peer.wait)}

    return run


def torch_network(name: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """What a step of training costs with PyTorch."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        import torch_peer

        shape = (min(BATCH, options.size // 8), *NETWORKS[name]()[1])
        once = torch_peer.network(name, shape)
        return {"step_us": 1e6 * seconds_of(once, options.repeats, torch_peer.wait)}

    return run


def torch_layer(name: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast PyTorch is at a layer of float32, with its gradients."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        import torch_peer

        image, *weights = LAYERS[name].shapes
        images = max(1, min(IMAGES, options.size // math.prod(image)))
        once = torch_peer.layer(name, (images, *image), *weights)
        seconds = seconds_of(once, options.repeats, torch_peer.wait)
        return {"images": images, "seconds": seconds}

    return run


COMPILED = "sgd", "mixed", "gelu", "activations", "softmax", "variance"  # each takes seconds
WIDE, NARROW = 64 * 112 * 112, 64 * 56 * 56  # elements before and after the first pooling
LAYERS = {
    "convolution": Layer(
        ((64, 56, 56), (64, 64, 3, 3)),
        lambda x, w: nd.Convolution(
            x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True
        ),
        6 * NARROW,
        3 * 2 * NARROW * 64 * 9,
    ),
    "convolution last": Layer(  # its channels: cuDNN reads them as they lie
        ((56, 56, 64), (64, 3, 3, 64)),
        lambda x, w: nd.Convolution(
            x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True, layout="NHWC"
        ),
        6 * NARROW,
        3 * 2 * NARROW * 64 * 9,
    ),
    "max pooling": Layer(
        ((64, 112, 112),),
        lambda x: nd.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max"),
        3 * WIDE + 2 * NARROW,
        0,
    ),
}  # fmt: skip

ROWS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "about": about,
    **{f"check {row}": checked(row) for row in work.ROWS},
    **{f"check operators {part}": recorded(part) for part in range(PARTS)},
    "check streams": on_streams,
    "copy": copied,
    **{f"time {row}": timed(row) for row in work.ROWS},
    "rows summed": summed,
    **{f"sort {rows}": ordered(rows) for rows in SORTED},
    **{f"product {dtype}": multiplied(dtype) for dtype in TOLERANCE_OF_PRODUCTS},
    **{
        f"{name} {dtype}": layered(name, dtype)
        for name in LAYERS
        for dtype in TOLERANCE_OF_PRODUCTS
    },
    "launch": launched,
    "operators": operated,
    **{f"network {name}": bound(name) for name in NETWORKS},
    **{f"torch network {name}": torch_network(name) for name in NETWORKS},
    **{f"torch {name}": torch_layer(name) for name in LAYERS},
    **{f"torch {row}": torch_row("formula", row) for row in work.ROWS},
    **{f"torch compiled {row}": torch_row("compiled", row) for row in COMPILED},
}


def these(options: argparse.Namespace) -> None:
    """Run rows in this process; none after the GPU has failed."""
    for name in options.these:
        print(json.dumps(ROWS[name](options)), flush=True)
        try:
            gpus.get(0).synchronise()
        except DeviceError:
            sys.exit(ANEW)


def main() -> None:
    """Run what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--size", type=int, default=100_000_000, help="elements")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--jobs", type=int, default=8, help="processes that check at once")
    parser.add_argument("--again", action="store_true", help="run rows that failed once more")
    parser.add_argument("--these", nargs="*", help="rows to run in this process")
    options = parser.parse_args()
    if options.these:
        these(options)
        return
    results = Results(Path(__file__), options)
    done = results.done()
    rows = [name for name in options.rows if name not in done]
    checks = [name for name in rows if name.startswith("check ")]
    first = rows.index(checks[0]) if checks else len(rows)
    results.run(rows[:first])
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(results.run, [checks[k :: options.jobs] for k in range(options.jobs)]))
    results.run([name for name in rows[first:] if name not in checks])


if __name__ == "__main__":
    main()

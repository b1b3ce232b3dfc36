"""Everything to know of a GPU, in order of value; each row in its own process, written at once.

    GNOMON_GPU=nvidia python benchmarks/gpu/all.py --out gpu.jsonl
    GNOMON_GPU=simulated python benchmarks/gpu/all.py --out /tmp/gpu.jsonl --size 1000 --repeats 1

First what there is, then whether each row of the expression benchmark computes what NumPy says,
then how fast a copy is and how fast each row is beside it, then how fast products are, then what a
launch and an operator cost in Python, then what bound networks cost, as CUDA graphs. A row that is
in the file already is not run again, so what was cut off goes on; one that fails, or takes longer
than a minute, is written down with its error and the next one begins.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))

import numpy as np
import work
from figures import formula_of

import gnomon as mx
from gnomon import autograd, nd, shadow
from gnomon.expr.node import Expr
from gnomon.plan.statement import Store
from gnomon.runtime.devices.cuda import gpu as gpus
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow import Tensor, TensorContainer

CHECKED = 100_000  # elements of a row whose result is compared
TOLERANCE = (2e-3, 2e-4)
TOLERANCE_OF_PRODUCTS = {"float32": (1e-3, 1e-3), "float16": (1e-2, 0.5), "float64": (1e-9, 1e-9)}
LARGEST = 8192  # rows of a matrix
IMAGES = 64
LAUNCHES = 1000
BATCH = 128  # of a network's step
MINUTE = 60


def there(array: np.ndarray[Any, Any]) -> TensorContainer:
    """An array's numbers on the GPU."""
    made = TensorContainer(array.shape, array.dtype, None, False, shadow.gpu)
    return shadow.copy(made, Tensor(array))


def statement(row: str, n: int) -> tuple[Tensor, str, Expr]:
    """A row's destination, saver and value, on the GPU."""
    tensors = {k: there(a) for k, a in work.arrays(row, n, "float32").items()}
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


def seconds_of(work_of: Callable[[], None], repeats: int) -> float:
    """The median time of some work on the GPU, of five rounds after one that is not counted."""
    gpu, taken = gpus.get(0), []
    for _ in range(6):
        gpu.synchronise()
        began = time.perf_counter()
        for _ in range(repeats):
            work_of()
        gpu.synchronise()
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
        dest, saver, value = statement(row, options.size)
        steps = prepare([Store(dest, saver, value)])

        def once() -> None:
            for step in steps:
                step.run()

        seconds = seconds_of(once, options.repeats)
        return {"seconds": seconds, "gb_per_s": sum(s.bytes for s in steps) / seconds / 1e9}

    return run


def launched(_: argparse.Namespace) -> dict[str, Any]:
    """What a statement and a prepared launch of ten elements cost in Python."""
    x = TensorContainer((10,), device=shadow.gpu, init=1.0)
    (step,) = prepare([Store(x, "saveto", x + 1.0)])

    def statements() -> None:
        x[:] = x + 1.0

    return {
        "statement_us": 1e6 * seconds_of(statements, LAUNCHES),
        "launch_us": 1e6 * seconds_of(step.run, LAUNCHES),
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


def convolved(dtype: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    """How fast a layer of ResNet-50 is convolved, with its gradients; and whether that is right."""

    def run(options: argparse.Namespace) -> dict[str, Any]:
        channels, side = 64, 56
        images = max(1, min(IMAGES, options.size // (channels * side * side)))
        numbers = np.random.default_rng(0)
        data = numbers.standard_normal((images, channels, side, side)).astype(dtype)
        weight = (numbers.standard_normal((channels, channels, 3, 3)) / 24).astype(dtype)

        def step(x: Any, w: Any) -> Any:
            with autograd.record():
                y = nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)
            y.backward()
            return y

        def arrays(ctx: mx.Context, count: int) -> tuple[Any, Any]:
            found = [nd.array(v, ctx=ctx, dtype=dtype) for v in (data[:count], weight)]
            for x in found:
                x.attach_grad()
            return found[0], found[1]

        found = []
        for ctx in (mx.gpu(0), mx.cpu()):
            x, w = arrays(ctx, 1)
            found.append([v.asnumpy().astype(np.float64) for v in (step(x, w), x.grad, w.grad)])
        x, w = arrays(mx.gpu(0), images)
        seconds = seconds_of(lambda: step(x, w), options.repeats)
        pairs = zip(*found, strict=True)
        return {
            "right": all(np.allclose(*pair, *TOLERANCE_OF_PRODUCTS[dtype]) for pair in pairs),
            "images": images,
            "seconds": seconds,
            "tflops": 3 * 2 * images * side * side * channels * channels * 9 / seconds / 1e12,
            "cudnn": gpus.get(0).driver.dnn() is not None,
        }

    return run


def operated(_: argparse.Namespace) -> dict[str, Any]:
    """What operators on small arrays cost in Python, one after the other."""
    x, w = (nd.ones((8, 8), ctx=mx.gpu(0)) for _ in range(2))
    return {
        "add_us": 1e6 * seconds_of(lambda: x + w, LAUNCHES),
        "dot_us": 1e6 * seconds_of(lambda: nd.dot(x, w), LAUNCHES),
        "softmax_us": 1e6 * seconds_of(lambda: nd.softmax(x), LAUNCHES),
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


def _mlp() -> tuple[Any, tuple[int, ...]]:
    net = mx.sym.Variable("data")
    for width in (128, 64):
        net = mx.sym.Activation(mx.sym.FullyConnected(net, num_hidden=width), act_type="relu")
    return _classifier(net), (784,)


def _lenet() -> tuple[Any, tuple[int, ...]]:
    net = mx.sym.Variable("data")
    for filters in (6, 16):
        net = mx.sym.Convolution(net, num_filter=filters, kernel=(5, 5))
        net = mx.sym.Activation(net, act_type="tanh")
        net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=120)
    return _classifier(mx.sym.Activation(net, act_type="tanh")), (1, 28, 28)


def _classifier(net: Any) -> Any:
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10), name="softmax")


NETWORKS = {"mlp": _mlp, "lenet": _lenet}

ROWS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "about": about,
    **{f"check {row}": checked(row) for row in work.ROWS},
    "copy": copied,
    **{f"time {row}": timed(row) for row in work.ROWS},
    **{f"product {dtype}": multiplied(dtype) for dtype in TOLERANCE_OF_PRODUCTS},
    **{f"convolution {dtype}": convolved(dtype) for dtype in TOLERANCE_OF_PRODUCTS},
    "launch": launched,
    "operators": operated,
    **{f"network {name}": bound(name) for name in NETWORKS},
}


def in_a_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A row's result, or its error."""
    own = ["--size", str(options.size), "--repeats", str(options.repeats), "--one", name]
    command = [sys.executable, __file__, *own]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTE, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {MINUTE} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--size", type=int, default=100_000_000, help="elements")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--one", help="a row to run in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(ROWS[options.one](options)))
        return
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {json.loads(line)["row"] for line in lines}
    for name in (n for n in options.rows if n not in done):
        found = {"row": name, "size": options.size, **in_a_process(name, options)}
        print(json.dumps(found), flush=True)
        with options.out.open("a") as out:
            out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

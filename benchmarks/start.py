"""What beginning costs: `python benchmarks/start.py [import run kernels statements]`.

`import` is `import gnomon.shadow` beside `import numpy, llvmlite.binding`, each in fresh processes
that start by turns. `run` is what `gnomon run` adds to an empty script. `kernels` is the first
statements of a process, milliseconds each, compiled and from the disk cache. `statements` is what
lines on ten elements cost beside NumPy's time for the same lines. Medians of `--rounds` turns;
byte code is kept in a folder of its own, as an installed package has it.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from gnomon import shadow
from gnomon.shadow import Tensor, fn

ROOT = Path(__file__).parent.parent
KERNELS = """
import sys, time
import numpy as np
from gnomon.shadow import Tensor, fn
a, b, c = (Tensor(np.linspace(0.1, 1.0, 1000, dtype=np.float32)) for _ in range(3))
def first(): c[:] = {first}
def second(): c[:] = a - b * 0.25
def third(): c[:] = (a + 1.0) * (b - 3.0)
for run in (first, second, third):
    start = time.perf_counter()
    run()
    print((time.perf_counter() - start) * 1e3)
"""
FIRSTS = {"map": "-0.1 * (a + 0.5 * b)", "with exp": "a / (fn.exp(-b) + 1.0)"}


def environment(folder: str, **more: str) -> dict[str, str]:
    """Variables of a process that keeps byte code and kernels in `folder`."""
    mine = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    places = {"PYTHONPYCACHEPREFIX": f"{folder}/code", "GNOMON_CACHE_DIR": f"{folder}/cache"}
    return {**mine, **places, "PYTHONPATH": str(ROOT), **more}


def process(code: str, variables: dict[str, str]) -> tuple[float, list[float]]:
    """Milliseconds of a process, and the numbers that it printed."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    return (time.perf_counter() - start) * 1e3, [float(line) for line in done.stdout.split()]


def bench_import(folder: str, rounds: int) -> None:
    lines = {"python": "pass", "libraries": "import numpy, llvmlite.binding",
             "gnomon.shadow": "import gnomon.shadow"}  # fmt: skip
    for line in lines.values():
        process(line, environment(folder))
    taken: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(rounds):
        for name, line in lines.items():
            taken[name].append(process(line, environment(folder))[0])
    for name, each in taken.items():
        print(f"{name:<16}{statistics.median(each):8.0f} ms")
    pairs = zip(taken["gnomon.shadow"], taken["libraries"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"gnomon.shadow / libraries {ratio:.2f}")


def bench_run(folder: str, rounds: int) -> None:
    """`gnomon run` of an empty script beside Python's."""
    script = Path(folder) / "empty.py"
    script.touch()
    lines = {"python": [str(script)], "gnomon run": ["-m", "gnomon", "run", str(script)]}
    variables = environment(folder)
    walls, works = ({name: [] for name in lines} for _ in range(2))
    for _ in range(rounds + 1):
        for name, line in lines.items():
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *line], env=variables, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            walls[name].append((time.perf_counter() - start) * 1e3)
            work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            works[name].append(work * 1e3)
    for what, found in (("the clock", walls), ("the processor", works)):
        pairs = list(zip(found["gnomon run"], found["python"], strict=True))[1:]
        added = statistics.median(ours - pythons for ours, pythons in pairs)
        print(f"gnomon run adds {added:.0f} ms to a script by {what}")


def bench_kernels(folder: str, rounds: int) -> None:
    for name, first in FIRSTS.items():
        code = KERNELS.format(first=first)
        compiled, loaded = environment(folder, GNOMON_DISK_CACHE="0"), environment(folder)
        process(code, loaded)
        for how, variables in (("compiled", compiled), ("from disk", loaded)):
            found = [process(code, variables)[1] for _ in range(rounds)]
            shown = "  ".join(
                f"{statistics.median(each):7.2f}" for each in zip(*found, strict=True)
            )
            print(f"first {name:<9} {how:<10} and two maps more: {shown} ms")


def microseconds(line: Callable[[], None], seconds: float = 0.01) -> float:
    """Of one call, over about so many seconds."""
    start = time.perf_counter()
    for _ in range(100):
        line()
    count = max(1, int(seconds * 100 / (time.perf_counter() - start)))
    start = time.perf_counter()
    for _ in range(count):
        line()
    return (time.perf_counter() - start) / count * 1e6


def bench_statements(folder: str, rounds: int) -> None:
    print("microseconds of a line on ten elements: gnomon, NumPy, ratio")
    for name, (ours, theirs) in {**elementwise(), **others()}.items():
        for _ in range(50):  # known, and its operators native code (call_cache.py)
            ours()
        turns = [(microseconds(ours), microseconds(theirs)) for _ in range(rounds)]
        mine, numpys, ratio = (
            statistics.median(x) for x in zip(*((a, b, a / b) for a, b in turns), strict=True)
        )
        print(f"{name:<28}{mine:8.2f}{numpys:8.2f}{ratio:8.2f}")


Lines = dict[str, tuple[Callable[[], None], Callable[[], None]]]


def operands(*shapes: tuple[int, ...]) -> tuple[list[np.ndarray], list[Tensor]]:
    """Arrays, and tensors over copies of them."""
    arrays = [np.linspace(0.1, 1.0, int(np.prod(s)), dtype=np.float32).reshape(s) for s in shapes]
    return arrays, [Tensor(array.copy()) for array in arrays]


def elementwise() -> Lines:
    """Lines of maps and views: ours and NumPy's."""
    (a, b, c), (x, y, z) = operands((10,), (10,), (10,))
    whole, wholes = np.zeros(10, np.int32), Tensor(np.zeros(10, np.int32))
    eta, lam = 0.1, 0.5

    def add() -> None:
        z[:] = x + y

    def numpy_add() -> None:
        c[:] = a + b

    def sgd() -> None:
        z[:] = -eta * (x + lam * z)

    def numpy_sgd() -> None:
        c[:] = -eta * (a + lam * c)

    def plus() -> None:
        z.__iadd__(x)

    def numpy_plus() -> None:
        c.__iadd__(a)

    def exp() -> None:
        z[:] = fn.exp(x)

    def numpy_exp() -> None:
        c[:] = np.exp(a)

    def cast() -> None:
        wholes[:] = shadow.tcast("int32", x)

    def numpy_cast() -> None:
        whole[:] = a

    def fill() -> None:
        z[:] = 0.5

    def numpy_fill() -> None:
        c[:] = 0.5

    def shift() -> None:
        z[1:] = x[:-1]

    def numpy_shift() -> None:
        c[1:] = a[:-1]

    return {
        "c[:] = a + b": (add, numpy_add), "w[:] = -eta * (g + lam * w)": (sgd, numpy_sgd),
        "c += a": (plus, numpy_plus), "c[:] = exp(a)": (exp, numpy_exp),
        "c[:] = tcast(int32, a)": (cast, numpy_cast),
        "c[:] = 0.5": (fill, numpy_fill), "c[1:] = a[:-1]": (shift, numpy_shift),
    }  # fmt: skip


def others() -> Lines:
    """Lines with other expressions: ours and NumPy's."""
    (v, m, n, p, q, r), (x, y, z, s, t, u) = operands((5,), (2, 5), (2, 5), (3, 4), (4, 3), (3, 3))

    def row() -> None:
        z[:] = y + shadow.broadcast_to(x, (2, 5))

    def numpy_row() -> None:
        n[:] = m + v

    def sums() -> None:
        x[:] = shadow.sum_rows(y)

    def numpy_sums() -> None:
        v[:] = m.sum(0)

    def product() -> None:
        u[:] = shadow.dot(s, t)

    def numpy_product() -> None:
        r[:] = np.dot(p, q)

    def turned() -> None:
        z[:] = y * shadow.flip(y, 1)

    def numpy_turned() -> None:
        n[:] = m * np.flip(m, 1)

    return {
        "c[:] = a + row": (row, numpy_row), "c[:] = sum of rows": (sums, numpy_sums),
        "c[:] = dot(a, b)": (product, numpy_product), "c[:] = a * flip(a)": (turned, numpy_turned),
    }  # fmt: skip


BENCHES = {
    "import": bench_import,
    "run": bench_run,
    "kernels": bench_kernels,
    "statements": bench_statements,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benches", nargs="*", default=list(BENCHES), metavar="|".join(BENCHES))
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.benches:
            print(f"--- {name}")
            BENCHES[name](folder, chosen.rounds)


if __name__ == "__main__":
    main()

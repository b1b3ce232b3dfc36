"""Worker: expressions in C with OpenMP, compiled by gcc when the worker starts.

Each row is the best of what C has: with its stores through the caches, and past them.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import work
from protocol import Step, serve

SOURCE = Path(__file__).with_name("expression.c")
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC"]
REALS = {"float32": ("float", ctypes.c_float), "float64": ("double", ctypes.c_double)}
LIBC = ("tanh", "exp")  # names that the C library has as well
PARALLEL, STREAM = 1, 2
TRIES = 5


def compiled(real: str) -> ctypes.CDLL:
    """The library: compiled with fast mathematics, linked without (see the C file)."""
    with tempfile.TemporaryDirectory() as folder:
        parts = f"{folder}/expression.o", f"{folder}/expression.so"
        subprocess.run(["gcc", *FLAGS, f"-DT={real}", "-c", SOURCE, "-o", parts[0]], check=True)
        link = ["gcc", "-shared", "-fopenmp", parts[0], "-o", parts[1], "-lmvec", "-lm"]
        subprocess.run(link, check=True)
        return ctypes.CDLL(parts[1])


LIBRARIES = {dtype: compiled(real) for dtype, (real, _) in REALS.items()}


def function_of(row: str) -> str:
    """The name of a row's function: "new sgd" is `sgd` into another array, "sum 0" is `sum0`."""
    if row.startswith("new "):
        return row.removeprefix("new ")
    return f"{row}_" if row in LIBC else row.replace(" ", "" if row[-1].isdigit() else "_")


def work_of(a: work.Arrays, row: str, dtype: str) -> Any:
    """The C structure of a row's operands; its mode is to be set."""
    real = REALS[dtype][1]
    fields = [(k, ctypes.c_int64) for k in ("rows", "columns", "mode")]
    fields += [("out", ctypes.c_void_p), ("in", ctypes.c_void_p * 3), ("eta", real), ("lam", real)]
    kind = type("Work", (ctypes.Structure,), {"_fields_": fields})
    operands = [a[k] for k in work.ROWS[row].operands]
    shape = (1, *operands[0].shape)[-2:]
    pointers = [x.ctypes.data for x in operands]
    return kind(*shape, 0, a["out"].ctypes.data, tuple(pointers), work.ETA, work.LAM)


def fastest(step: Step, set_mode: Callable[[int], None], modes: tuple[int, ...]) -> int:
    """The mode in which a step takes the least time."""
    seconds = {mode: float("inf") for mode in modes}
    for _ in range(TRIES):
        for mode in modes:
            set_mode(mode)
            start = time.perf_counter()
            step()
            seconds[mode] = min(seconds[mode], time.perf_counter() - start)
    return min(seconds, key=lambda mode: seconds[mode])


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe; `repeats` runs on one thread by one call."""
    a, library = work.arrays(row, n, dtype), LIBRARIES[dtype]
    block, row_of = work_of(a, row, dtype), getattr(library, function_of(row))
    reference = ctypes.byref(block)

    def set_mode(mode: int) -> None:
        block.mode = mode

    def step(keep: Any = a) -> None:
        row_of(reference)

    def many(keep: Any = a, repeat: Any = library.repeat) -> None:
        repeat(row_of, reference, ctypes.c_int64(repeats))

    step()
    found = {"probe": work.probe(a["out"])}
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    if repeats:
        set_mode(fastest(many, set_mode, (0, STREAM)))
        return many, lambda: None, found
    modes = (0, STREAM) if threads == 1 else (0, PARALLEL, PARALLEL | STREAM)
    set_mode(fastest(step, set_mode, modes))
    return step, lambda: None, found


if __name__ == "__main__":
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True)
    serve(f"C by gcc {version.stdout.strip()}, NumPy {np.__version__}", setup)

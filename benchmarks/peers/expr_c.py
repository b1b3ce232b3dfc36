"""Worker: expressions in C with OpenMP, compiled by gcc when the worker starts."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import work
from protocol import Step, serve

SOURCE = Path(__file__).with_name("expression.c")
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC"]
TWO_SIZES = ("transpose", "sum 0", "sum 1", "softmax")
NAMES = {"tanh": "tanh_", "exp": "exp_", "sum 0": "sum0", "sum 1": "sum1"}


def compiled() -> ctypes.CDLL:
    """The library: compiled with fast mathematics, linked without (see the C file)."""
    with tempfile.TemporaryDirectory() as folder:
        parts = f"{folder}/expression.o", f"{folder}/expression.so"
        subprocess.run(["gcc", *FLAGS, "-c", str(SOURCE), "-o", parts[0]], check=True)
        link = ["gcc", "-shared", "-fopenmp", parts[0], "-o", parts[1], "-lmvec", "-lm"]
        subprocess.run(link, check=True)
        return ctypes.CDLL(parts[1])


LIBRARY = compiled()


def setup(row: str, n: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = work.arrays(row, n)
    function = getattr(LIBRARY, NAMES.get(row, row))
    operands = [a["out"], *(a[k] for k in work.ROWS[row].operands)]
    shape = operands[1].shape if row in TWO_SIZES else operands[1].shape[:1]
    sizes = [ctypes.c_int64(extent) for extent in shape]
    scalars = [ctypes.c_float(v) for v in (work.ETA, work.LAM)] if row == "sgd" else []
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in operands]

    def step(keep: Any = a) -> None:
        function(*sizes, *pointers, *scalars)

    step()
    return step, lambda: None, {"probe": work.probe(a["out"])}


if __name__ == "__main__":
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True)
    serve(f"C by gcc {version.stdout.strip()}, NumPy {np.__version__}", setup)

"""Worker: the extension rows in C with OpenMP, compiled by gcc when the worker starts."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ext_work as work
import numpy as np
from protocol import Step, serve

SOURCE = Path(__file__).with_name("extensions.c")
LIBRARIES = ("gamma", "poisson")  # rows that one takes from a library, not writes
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC"]


def compiled() -> ctypes.CDLL:
    """The library: compiled with fast mathematics, linked without (see the C file)."""
    with tempfile.TemporaryDirectory() as folder:
        parts = f"{folder}/extensions.o", f"{folder}/extensions.so"
        subprocess.run(["gcc", *FLAGS, "-c", str(SOURCE), "-o", parts[0]], check=True)
        link = ["gcc", "-shared", "-fopenmp", parts[0], "-o", parts[1], "-lmvec", "-lm"]
        subprocess.run(link, check=True)
        return ctypes.CDLL(parts[1])


LIBRARY = compiled()


def setup(row: str) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    if row in LIBRARIES:
        raise NotImplementedError(f"{row}: C has no library for it")
    a = work.arrays(row)
    function = getattr(LIBRARY, row.replace(" duplicates", "").replace(" ", ""))
    names = ["out", *work.ROWS[row].operands, *(["index"] if "index" in a else [])]
    pointers = [ctypes.c_void_p(a[k].ctypes.data) for k in names]

    def step(keep: Any = a) -> None:
        function(*pointers)

    step()
    return step, lambda: None, {"probe": work.probe(row, a["out"])}


if __name__ == "__main__":
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True)
    serve(f"C by gcc {version.stdout.strip()}, NumPy {np.__version__}", setup)

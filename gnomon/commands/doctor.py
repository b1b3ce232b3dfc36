"""`gnomon doctor`: what this machine offers gnomon, and what it lacks."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np

from gnomon import __version__, config, shadow
from gnomon.dtype import float32
from gnomon.ground.lock import load_module
from gnomon.runtime.compiler import objects
from gnomon.runtime.compiler.host import baseline, host
from gnomon.runtime.devices.cuda import driver as drivers
from gnomon.runtime.devices.cuda import library
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries import blas, dnn

GOOD, POOR, BAD = "ok", "--", "!!"
Finding = tuple[str, str]

# The vector extensions that matter to speed, narrowest first.
EXTENSIONS = ("sse2", "avx", "avx2", "fma", "avx512f", "avx512bf16", "amx-tile", "neon", "sve")


def _python() -> Finding:
    found = f"{platform.python_version()} ({platform.python_implementation()})"
    return (GOOD if sys.version_info >= (3, 11) else BAD), f"{found}, {sys.executable}"


def _system() -> Finding:
    return GOOD, f"{platform.system()} {platform.release()}, {platform.machine()}"


def _numpy() -> Finding:
    return GOOD, np.__version__


def _llvmlite() -> Finding:
    llvmlite, binding = load_module("llvmlite"), load_module("llvmlite.binding")
    return GOOD, f"{llvmlite.__version__}, LLVM {'.'.join(map(str, binding.llvm_version_info))}"


def _processor() -> Finding:
    here = host()
    known = [name for name in EXTENSIONS if name in here.features]
    level = baseline().cpu
    level = "" if level == here.cpu else f", served as {level}"
    return GOOD, f"{here.cpu}{level}, vectors of {here.vector_bytes * 8} bits: {' '.join(known)}"


def _threads() -> Finding:
    count = threads.num_threads()
    whose = {"libgomp": "libgomp's", "own": "gnomon's own"}.get(threads.kind(), threads.kind())
    return GOOD, f"{count}, {whose} pool, on {os.cpu_count()} processors"


def _blas() -> Finding:
    if not blas.supports(float32):
        return POOR, "none: matrix products are compiled; pip install scipy-openblas32"
    return GOOD, f"OpenBLAS {metadata.version('scipy-openblas32')}"


def _onednn() -> Finding:
    reason = dnn.why_not()
    if reason:
        return POOR, f"not used: {reason}; convolutions go through matrix products"
    return GOOD, "used for convolution and pooling"


def _gpus() -> Finding:
    """The GPUs that the setting `gpu` gives."""
    wanted, driver = config.get("gpu"), drivers.find()
    if driver is None:
        return (GOOD, "the setting `gpu` is off") if wanted == "off" else (BAD, library.why())
    names = [driver.properties(k).name for k in range(driver.count())]
    return GOOD, f"{wanted}: {', '.join(names)}"


def _cache() -> Finding:
    folder = Path(config.get("cache_dir"))
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    try:  # what permissions say is not all: a file system may be read-only, or not take files
        with tempfile.TemporaryDirectory(dir=existing):
            return GOOD, str(folder)
    except OSError as error:
        why = error.strerror or error
        return POOR, f"{folder}: {existing} cannot be written ({why}); set GNOMON_CACHE_DIR"


def _kernels() -> Finding:
    """Whether the kernels of typical work are there, with the package or in the cache."""
    reason = objects.why_not()
    if reason:
        return POOR, f"none is kept between processes: {reason}"
    if objects.is_prepared():
        return GOOD, "those of typical work are there"
    return POOR, "each is compiled when it is first needed; gnomon cache warm prepares typical ones"


def _compiler() -> Finding:
    """Compile and run an expression, and compare with NumPy."""
    values = np.linspace(-2, 2, 1001, dtype=np.float32)
    source, result = shadow.Tensor(values), shadow.Tensor(np.zeros_like(values))
    result[:] = shadow.F("tanh")(source) * 2.0 + source
    error = float(np.abs(result.numpy() - (np.tanh(values) * 2 + values)).max())
    if error > 1e-5:
        return BAD, f"an expression came out wrong by {error:g}"
    return GOOD, "an expression was compiled and came out right"


def _package(name: str, use: str, extra: str) -> Finding:
    """Whether an optional package is installed, and what it serves."""
    try:
        return GOOD, f"{metadata.version(name)}, for {use}"
    except metadata.PackageNotFoundError:
        return POOR, f"not installed: no {use}; pip install 'gnomon[{extra}]'"


def _opencv() -> Finding:
    try:
        return GOOD, f"{load_module('cv2').__version__}, for mx.image, image records and im2rec"
    except ImportError as error:
        text = f"{error}: no mx.image, image records, im2rec; pip install 'gnomon[image]'"
        return POOR, text


def _mpi() -> Finding:
    """The library that mpi4py finds; it is not started."""
    use = "distributed kvstores"
    try:
        version = metadata.version("mpi4py")
        load_module("mpi4py").rc.initialize = False
        library = load_module("mpi4py.MPI").Get_library_version().split(chr(10))[0]
    except (ImportError, RuntimeError) as error:
        return POOR, f"{error}: no {use}; pip install 'gnomon[dist]'"
    return GOOD, f"mpi4py {version}, {' '.join(library.split())}, for {use}"


CHECKS: dict[str, Callable[[], Finding]] = {
    "Python": _python,
    "system": _system,
    "NumPy": _numpy,
    "llvmlite": _llvmlite,
    "processor": _processor,
    "threads": _threads,
    "BLAS": _blas,
    "oneDNN": _onednn,
    "GPUs": _gpus,
    "OpenCV": _opencv,
    "simplejpeg": lambda: _package("simplejpeg", "fast decoding of JPEGs", "image"),
    "fsspec": lambda: _package("fsspec", "files of other places (s3://, http://)", "remote"),
    "aiohttp": lambda: _package("aiohttp", "models over HTTP (gnomon serve)", "serve"),
    "onnx": lambda: _package("onnx", "models as ONNX files (gnomon onnx)", "onnx"),
    "graphviz": lambda: _package("graphviz", "drawings of networks", "viz"),
    "MPI": _mpi,
    "cache folder": _cache,
    "kernels": _kernels,
    "compiler": _compiler,
}


def examine() -> int:
    """Print a line per check; 0 when gnomon can work, 1 when it cannot."""
    print(f"gnomon {__version__} in {Path(__file__).parents[1]}")
    worst = 0
    for name, check in CHECKS.items():
        try:
            mark, text = check()
        except Exception as error:  # whatever is broken is what the user wants to know
            mark, text = BAD, f"{type(error).__name__}: {error}"
        worst = max(worst, int(mark == BAD))
        print(f"{mark} {name:<13}{text}")
    for variable in sorted(v for row in config.SETTINGS.values() for v in row.env):
        if os.environ.get(variable):
            print(f"   {variable}={os.environ[variable]}")
    return worst

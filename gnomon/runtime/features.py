"""What this build of gnomon can do, by MXNet's names: `mx.runtime.Features()`.

MXNet's names tell how its library was compiled; here instructions are those of the processor that
compiled code runs on, and libraries those that are installed.
"""

from __future__ import annotations

from collections import OrderedDict
from importlib.util import find_spec
from typing import NamedTuple

from gnomon.base import UnknownNameError, nearest
from gnomon.dtype import float32
from gnomon.runtime.compiler.host import host
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries import blas, dnn

# name -> what LLVM calls the instructions
_INSTRUCTIONS = {
    "CPU_SSE": "sse",
    "CPU_SSE2": "sse2",
    "CPU_SSE3": "sse3",
    "CPU_SSE4_1": "sse4.1",
    "CPU_SSE4_2": "sse4.2",
    "CPU_SSE4A": "sse4a",
    "CPU_AVX": "avx",
    "CPU_AVX2": "avx2",
    "SSE": "sse",
    "F16C": "f16c",
}
_NAMES = """
CUDA CUDNN NCCL CUDA_RTC TENSORRT CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX
CPU_AVX2 OPENMP SSE F16C JEMALLOC BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK MKLDNN OPENCV
CAFFE PROFILER DIST_KVSTORE CXX14 INT64_TENSOR_SIZE SIGNAL_HANDLER DEBUG TVM_OP
""".split()


class Feature(NamedTuple):
    """Something that a build has or has not."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


class Features(OrderedDict[str, Feature]):
    """All features by name.

    >>> Features().is_enabled("INT64_TENSOR_SIZE"), Features()["CUDA"]
    (True, ✖ CUDA)
    """

    def __init__(self) -> None:
        super().__init__((each.name, each) for each in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there; upper or lower case.

        Raises:
            UnknownNameError: there is no such feature.
        """
        name = feature_name.upper()
        if name not in self:
            known = ", ".join(self)
            raise UnknownNameError(
                f"Features: no feature is called {feature_name!r}{nearest(name, self)}; "
                f"there are {known}"
            )
        return self[name].enabled


def feature_list() -> list[Feature]:
    """All features in MXNet's order."""
    found = {name: word in host().features for name, word in _INSTRUCTIONS.items()}
    found["OPENMP"] = threads.kind() == "libgomp"
    found["BLAS_OPEN"] = blas.supports(float32)
    found["MKLDNN"] = dnn.available()
    found["OPENCV"] = find_spec("cv2") is not None
    found["DIST_KVSTORE"] = find_spec("mpi4py") is not None
    found["LAPACK"] = True  # linalg's: the wheel's, or the one that NumPy brings
    found["PROFILER"] = found["INT64_TENSOR_SIZE"] = True
    return [Feature(name, found.get(name, False)) for name in _NAMES]

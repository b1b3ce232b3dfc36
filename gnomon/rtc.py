"""`mx.rtc`: CUDA C++ that a program brings along; it needs a GPU, which gnomon has not.

Expressions of `gnomon.shadow` are compiled at run time, for processors; `gnomon.operator.CustomOp`
takes what they do not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from gnomon.base import DeviceError

__all__ = ["CudaKernel", "CudaModule"]


def _refuse(where: str) -> NoReturn:
    raise DeviceError(
        f"{where}: CUDA C++ is not compiled: write it as an expression of gnomon.shadow, which "
        "runs on processors and GPUs, or as a mx.operator.CustomOp"
    )


class CudaModule:
    """The kernels of a text in CUDA C++.

    Raises:
        DeviceError: always.
    """

    def __init__(
        self, source: str, options: Sequence[str] = (), exports: Sequence[str] = ()
    ) -> None:
        _refuse("CudaModule")

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """The kernel called `name`."""
        return CudaKernel(self, name, signature)


class CudaKernel:
    """One kernel of a module.

    Raises:
        DeviceError: always.
    """

    def __init__(self, handle: Any, name: str, dtypes: Any) -> None:
        _refuse("CudaKernel")

    def launch(
        self, args: Any, ctx: Any, grid_dims: Any, block_dims: Any, shared_mem: int = 0
    ) -> None:
        """Run it."""
        _refuse("CudaKernel.launch")

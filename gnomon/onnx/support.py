"""Which operators have a translation."""

from __future__ import annotations

from gnomon.base import ParamError, complaint
from gnomon.onnx.table import exports
from gnomon.onnx.writer import OPSET


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """The names of MXNet's operators that `export_model` writes, sorted.

    Raises:
        ParamError: an opset that is not written; there is one.

    >>> get_operator_support()[:3]
    ['Activation', 'BatchNorm', 'BilinearSampler']
    """
    if opset_version not in (None, OPSET):
        expected = f"{OPSET}, or None"
        raise ParamError(
            complaint("get_operator_support", "opset_version", expected, opset_version)
        )
    return sorted(exports())

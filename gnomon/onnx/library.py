"""The package `onnx`: what the formats are read and written with, and how types are told there."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import GnomonError
from gnomon.dtype import DType
from gnomon.ground.lock import load_module

# ONNX's numbers of element types, by gnomon's names of dtypes
ELEMENT = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}
NAMES = {number: name for name, number in ELEMENT.items()}


def onnx(part: str = "") -> Any:
    """The package `onnx`, or its module `part`.

    Raises:
        GnomonError: it is not installed.
    """
    try:
        return load_module(f"onnx.{part}" if part else "onnx")
    except ImportError as error:
        text = f"ONNX files need the package onnx (pip install 'gnomon[onnx]'): {error}"
        raise GnomonError(text) from error


def element(dtype: DType | str) -> int:
    """ONNX's number of a dtype.

    >>> element("int64")
    7
    """
    return ELEMENT[dtype if isinstance(dtype, str) else dtype.name]


def element_of(array: np.ndarray[Any, Any]) -> int:
    """ONNX's number of the element type of an array."""
    return element(dtypes.of(array.dtype))

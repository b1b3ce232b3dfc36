"""The values of weights: in the model's file, or in another of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import FormatError
from gnomon.ground.files import opened
from gnomon.onnx.library import NAMES, onnx

MOST = 1 << 31  # elements of a weight


def array(tensor: Any, path: str) -> np.ndarray[Any, Any]:
    """The values of a weight.

    Raises:
        FormatError: its type, its shape or its data are not what they should be.
    """
    where = f"{path!r}: weight {tensor.name!r}"
    if tensor.data_type not in NAMES:
        raise FormatError(f"{where}: element type {tensor.data_type} is none that gnomon knows")
    shape, count = tuple(tensor.dims), 1
    for size in shape:
        count *= size
    if min(shape, default=0) < 0 or count > MOST:
        raise FormatError(f"{where}: expected up to {MOST} elements, got shape {shape}")
    if tensor.data_location == onnx().TensorProto.EXTERNAL:
        return _external(tensor, Path(path), shape, count, where)
    try:
        values = onnx("numpy_helper").to_array(tensor)
    except Exception as error:  # whatever a broken message makes NumPy or onnx raise
        raise FormatError(f"{where}: {error}") from error
    return np.asarray(values).astype(_numpy(tensor.data_type), copy=False)


def _numpy(number: int) -> Any:
    return dtypes.of(NAMES[number]).numpy


def _external(
    tensor: Any, path: Path, shape: tuple[int, ...], count: int, where: str
) -> np.ndarray[Any, Any]:
    """The values of a weight that are in a file of the model's folder."""
    entries = {e.key: e.value for e in tensor.external_data}
    folder = path.parent.resolve()
    file = (folder / entries.get("location", "")).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        got = entries.get("location", "")
        raise FormatError(f"{where}: expected a file of the model's folder, got {got!r}")
    dtype = np.dtype(_numpy(tensor.data_type))
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", count * dtype.itemsize))
    except ValueError as error:
        raise FormatError(f"{where}: offset and length: {error}") from error
    size = file.stat().st_size
    if length != count * dtype.itemsize or offset < 0 or offset + length > size:
        expected = f"{count * dtype.itemsize} bytes within {size}"
        raise FormatError(f"{where}: expected {expected}, got {length} from {offset}")
    with opened(where, file, "rb") as stream:
        stream.seek(offset)
        return np.frombuffer(stream.read(length), dtype).reshape(shape)

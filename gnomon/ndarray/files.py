"""save and load: arrays in MXNet's binary format."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import engine
from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.context import cpu, gpu, present
from gnomon.ndarray.api import serialize
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import waits
from gnomon.ndarray.sparse.arrays import from_record, record


def save(fname: Any, data: Any) -> None:
    """Write an array, a list of arrays or a dict of them by name; the file is whole or not there.

    Raises:
        ParamError: `data` is something else.
        TypeError: something else is among them, or a name is no str.
        FileError: the file cannot be written.
    """
    named = data.items() if isinstance(data, dict) else None
    if not isinstance(data, (Array, dict, list, tuple)):
        expected = "an NDArray, or a list or a dict of them"
        raise ParamError(complaint("save", "data", expected, shown(data)))
    arrays = [data] if isinstance(data, Array) else [x for _, x in named] if named else list(data)
    for number, x in enumerate(arrays):
        if not isinstance(x, Array):
            got = f"{shown(x)} at {number}"
            raise TypeError(complaint("save", "data", "NDArrays, in a list or a dict", got))
    names = [name for name, _ in named] if named else []
    for name in names:
        check_kind("save", "data", name, str, "names that are strings")
    serialize.write(fname, [record_of(x) for x in arrays], names, [device_of(x) for x in arrays])


def load(fname: Any) -> Any:
    """The arrays of a file: a dict where they have names, else a list.

    Those that were saved on a GPU are on it again, if there is such a GPU; all others on `cpu(0)`.

    Raises:
        FormatError: the file is not such a file; nothing larger than it is allocated.
        FileError: the file cannot be read.
    """
    return _arrays(*serialize.read(fname))


def load_frombuffer(buf: bytes) -> Any:
    """The arrays of a file's bytes, as `load` gives those of a file.

    Raises:
        FormatError: the bytes are not such a file.
    """
    return _arrays(*serialize.read(bytes(buf)))


def _arrays(records: Any, names: Any, devices: Any) -> Any:
    """What a file holds, as arrays."""
    arrays = list(map(array_of, records, devices))
    return dict(zip(names, arrays, strict=True)) if names else arrays


def record_of(x: Any) -> Any:
    """An array as a file holds it, not copied."""
    if x.stype != "default":
        return record(x)
    x.wait_to_read()
    return x._numpy()


def device_of(x: Any) -> serialize.Device:
    """The device of an array as a file names it."""
    return x.context.device_typeid, x.context.device_id


def array_of(found: Any, device: serialize.Device) -> Any:
    """One record as an array, in its storage, on its GPU or `cpu(0)`."""
    kind, number = device
    ctx = present(gpu(number)) if kind == gpu().device_typeid else cpu()
    if found is None:
        return Array._around(np.empty((0,), np.float32), ctx)
    if isinstance(found, serialize.Sparse):
        return from_record(found, ctx)
    return Array._around(np.require(found, requirements=["C", "W", "O"]), ctx)


def waitall() -> None:
    """Sleep until nothing is pending on any device.

    Raises:
        EngineError: a function failed and was not reported yet.
    """
    engine.get().wait_for_all()
    for wait in waits:
        wait()

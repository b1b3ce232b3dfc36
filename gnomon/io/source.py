"""Iterators whose options are declared, as operators' parameters are, and the files they read."""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from gnomon.base import FormatError, ParamError, complaint, nearest
from gnomon.context import cpu
from gnomon.ground.files import is_remote, read_bytes
from gnomon.io.desc import DataBatch
from gnomon.io.iterator import HandedOn
from gnomon.ops.param import Param, declared, param, parse_fields


class SourceIter(HandedOn):
    """Base of iterators over files: options by name, as values or strings, become attributes.

    A subclass says `_following`. Between batches `getdata` and its like give the parts of the
    current one, arrays, as MXNet's iterators over files do.

    Unknown options are ignored, with a line in the log: many programs say some of other versions.

    Raises:
        ParamError: an option that is missing, a value that is not allowed.
    """

    fields: ClassVar[Mapping[str, Param]] = {}
    _repeats = False

    batch_size: int = param(low=1, doc="Rows in a batch.")
    prefetch_buffer: int = param(4, low=0, doc="Batches that are made ahead.")
    ctx: str = param("cpu", choices=("cpu", "gpu"), doc="The device that batches are for.")
    dtype: str | None = param(None, doc="Dtype of the data; float32 where None.")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.fields = declared(cls)

    def __init__(
        self, data_name: str = "data", label_name: str = "softmax_label", **options: Any
    ) -> None:
        if not self.fields:
            raise TypeError("MXDataIter: it is a base: see ImageRecordIter, CSVIter, MNISTIter")
        where = type(self).__name__
        known = {name: value for name, value in options.items() if name in self.fields}
        for name in (name for name in options if name not in known):
            hint = nearest(name, self.fields)
            logging.warning("%s: the unknown option %r is ignored%s", where, name, hint)
        values = parse_fields(where, self.fields, known)
        super().__init__(values.pop("batch_size"))
        self.__dict__.update(values)
        self.data_name = data_name
        self.label_name = label_name
        self.context = cpu()

    def _following(self) -> DataBatch | None:
        """The batch after the current one; None at the end."""
        raise TypeError(f"{type(self).__name__} does not say its batches")

    def debug_skip_load(self) -> None:
        """Give the batch that is current, or the next one, again and again: times what reads it."""
        self._repeats = True

    def iter_next(self) -> bool:
        if not self._repeats or self.current_batch is None:
            self.current_batch = self._following()
        return self.current_batch is not None

    def getdata(self) -> Any:
        return super().getdata()[0]

    def getlabel(self) -> Any:
        return super().getlabel()[0]


MXDataIter = SourceIter  # its public name


class Part:
    """Options of iterators that several workers share: each reads one part."""

    num_parts: int = param(1, low=1, doc="Parts that the data is cut into.")
    part_index: int = param(0, low=0, doc="The part to read, from 0.")

    def part(self, count: int, indexed: bool = False) -> range:
        """The rows of this part, of `count`; ParamError where there is no such part.

        Parts are as equal as they can be. Those by an index of a file are all of one size: the
        last ones have what is left, or nothing.
        """
        if self.part_index >= self.num_parts:
            expected = f"below num_parts={self.num_parts}"
            raise ParamError(
                complaint(type(self).__name__, "part_index", expected, self.part_index)
            )
        parts, index = self.num_parts, self.part_index
        if indexed:
            size = -(-count // parts)
            return range(count)[size * index : size * (index + 1)]
        return range(count * index // parts, count * (index + 1) // parts)


def read(where: str, path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file, unpacked where its name ends in .gz; `memory://x` by fsspec.

    Raises:
        FileError: it cannot be read.
        FormatError: it is damaged.
        GnomonError: fsspec is not installed.
    """
    data = read_bytes(where, path)
    if not os.fspath(path).endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{where}: {os.fspath(path)!r} is damaged: {error}") from error


def files(where: str, path: str) -> list[str]:
    """The file `path`, or all files in the folder `path`, in order of their names."""
    if is_remote(path) or not Path(path).is_dir():
        return [path]
    found = sorted(str(file) for file in Path(path).iterdir() if file.is_file())
    if not found:
        raise FormatError(f"{where}: there are no files in the folder {path!r}")
    return found

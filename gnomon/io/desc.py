"""What a batch looks like (`DataDesc`) and the batch itself (`DataBatch`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import DTypeError, complaint


class _NamedShape(NamedTuple):
    name: str
    shape: tuple[int, ...]


class DataDesc(_NamedShape):
    """Name, shape, dtype and layout of one input; as a tuple it is `(name, shape)`.

    The layout names the axes by letters; `N` is the axis along which batches are split.

    >>> desc = DataDesc("data", (32, 1, 8, 8))
    >>> desc == ("data", (32, 1, 8, 8)), desc.layout
    (True, 'NCHW')
    """

    dtype: Any
    layout: str | None

    def __new__(
        cls,
        name: str,
        shape: Sequence[int],
        dtype: Any = np.float32,
        layout: str | None = "NCHW",
    ) -> DataDesc:
        """Describe the input `name`; `shape` includes the batch axis."""
        self = super().__new__(cls, name, shape)
        self.dtype = dtype
        self.layout = layout
        return self

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Position of `N` in `layout`: 0 for None, -1 where there is no batch axis.

        >>> DataDesc.get_batch_axis("TNC")
        1
        """
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(
        shapes: Sequence[tuple[str, Sequence[int]]],
        types: Sequence[tuple[str, Any]] | None,
    ) -> list[DataDesc]:
        """Descriptions of the `(name, shape)` pairs, with dtypes from `(name, dtype)` pairs.

        >>> DataDesc.get_list([("data", (2, 3))], [("data", "int32")])
        [DataDesc[data,(2, 3),int32,NCHW]]
        """
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        dtypes = dict(types)
        missing = [name for name, _ in shapes if name not in dtypes]
        if missing:
            raise DTypeError(
                complaint("DataDesc.get_list", "types", f"a dtype for {missing}", sorted(dtypes))
            )
        return [DataDesc(name, shape, dtypes[name]) for name, shape in shapes]


class DataBatch:
    """One batch: lists of NDArrays for data and label, and how many rows at its end are padding.

    `bucket_key`, `provide_data` and `provide_label` are set by iterators whose batches differ
    in shape from one another.
    """

    def __init__(
        self,
        data: list[Any] | None,
        label: list[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[DataDesc] | None = None,
        provide_label: Sequence[DataDesc] | None = None,
    ) -> None:
        _check_list("data", data)
        _check_list("label", label)
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        shapes = None if self.data is None else [each.shape for each in self.data]
        labels = [each.shape for each in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {shapes} label shapes: {labels}"


def _check_list(argument: str, value: Any) -> None:
    if value is not None and not isinstance(value, (list, tuple)):
        raise DTypeError(
            complaint("DataBatch", argument, "a list of NDArrays or None", type(value).__name__)
        )

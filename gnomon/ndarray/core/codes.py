"""MXNet's numbers for data types, storages and requests, under the names that programs import."""

from __future__ import annotations

from typing import Any

from gnomon import dtype as dtypes

_DTYPE_MX_TO_NP: dict[int, Any] = {-1: None} | {each.flag: each.numpy.type for each in dtypes.PLAIN}
_DTYPE_NP_TO_MX = {kind: flag for flag, kind in _DTYPE_MX_TO_NP.items()}
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {number: name for name, number in _STORAGE_TYPE_STR_TO_ID.items()}
_STORAGE_TYPE_DEFAULT = 0
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}

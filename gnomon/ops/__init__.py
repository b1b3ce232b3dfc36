"""The vocabulary: every operator as one declaration."""

from __future__ import annotations

from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, Floats, param
from gnomon.ops.registry import find, names
from gnomon.ops.requests import OpReqType

__all__ = ["Dims", "Floats", "Op", "OpReqType", "find", "names", "op", "param"]

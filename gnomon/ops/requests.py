"""Request types: how an operator stores what it computed."""

from __future__ import annotations

import enum


class OpReqType(enum.IntEnum):
    """What to do with one output or gradient: nothing, write, write in place, or add to it."""

    kNullOp = 0
    kWriteTo = 1
    kWriteInplace = 2
    kAddTo = 3


kNullOp = OpReqType.kNullOp
kWriteTo = OpReqType.kWriteTo
kWriteInplace = OpReqType.kWriteInplace
kAddTo = OpReqType.kAddTo

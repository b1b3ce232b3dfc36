"""Request types, and the one way an operator stores what it computed."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from gnomon.base import GnomonError, complaint


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

#: how each request stores; a null request does not
SAVERS = {kWriteTo: "saveto", kWriteInplace: "saveto", kAddTo: "plusto"}


def check_requests(where: str, req: Sequence[Any], data: Sequence[Any]) -> None:
    """GnomonError unless there is one request for each place to write to."""
    if len(req) != len(data):
        raise GnomonError(complaint(where, "req", f"{len(data)} requests", f"{len(req)}"))

"""Request types, and the one way an operator stores what it computed."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gnomon.base import GnomonError, ParamError, complaint
from gnomon.expr.node import Buffer, Operand, as_expr
from gnomon.plan.statement import Saver, Store
from gnomon.runtime.kernels.workspace import without_workspace
from gnomon.runtime.statements.prepare import prepare

if TYPE_CHECKING:
    from gnomon.shadow import TBlob


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
SAVERS: dict[OpReqType, Saver] = {kWriteTo: "saveto", kWriteInplace: "saveto", kAddTo: "plusto"}


def check_requests(where: str, req: Sequence[Any], data: Sequence[Any]) -> None:
    """GnomonError unless there is one request for each place to write to."""
    if len(req) != len(data):
        raise GnomonError(complaint(where, "req", f"{len(data)} requests", f"{len(req)}"))


def _known(request: Any) -> OpReqType:
    """A request type; ParamError where it is none."""
    try:
        return OpReqType(request)
    except ValueError:
        expected = f"one of {', '.join(f'{r.name} ({int(r)})' for r in OpReqType)}"
        raise ParamError(complaint("assign_dispatch", "req", expected, repr(request))) from None


def assign_dispatch(out: TBlob | Buffer, req: OpReqType | int, exp: Operand) -> None:
    """Store `exp` in `out` as `req` says: not at all, written, or added.

    >>> import numpy as np
    >>> from gnomon.shadow import Tensor
    >>> out = Tensor(np.ones(3, np.float32))
    >>> assign_dispatch(out, kAddTo, out * 2.0)
    >>> assign_dispatch(out, kNullOp, out * 5.0)
    >>> out.numpy()
    array([3., 3., 3.], dtype=float32)

    Raises:
        ShapeError, DTypeError: `exp` does not fit; `out` is untouched.
        ParamError: `req` is no request type.
    """
    assign_all([out], [req], [exp])


def assign_all(
    outs: Sequence[TBlob | Buffer | None],
    requests: Sequence[OpReqType | int],
    values: Sequence[Operand],
) -> None:
    """`assign_dispatch` of several at once: all values are taken before anything is stored."""
    stores = []
    for out, request, value in zip(outs, requests, values, strict=True):
        saver = SAVERS.get(_known(request))
        if saver is not None and out is not None:
            dest = out if isinstance(out, Buffer) else out.tensor
            stores.append(Store(dest, saver, as_expr(value, dest.dtype)))
    for step in without_workspace(lambda: prepare(stores, "assign_dispatch")):
        step.run()

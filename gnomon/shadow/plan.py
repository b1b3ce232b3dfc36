"""Plan: what to compute at one index of an expression, apart from storing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import Later, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import whole
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.deferred import TRACED
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, check_expr
from gnomon.expr.term import Term
from gnomon.expr.walk import postorder
from gnomon.ground.record import Frozen, put
from gnomon.plan.statement import Store
from gnomon.runtime.kernels.workspace import without_workspace
from gnomon.runtime.statements import inspect
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow.container import TensorContainer, write
from gnomon.shape import prod

if TYPE_CHECKING:
    from gnomon.code import target as targets
else:
    targets = Later("gnomon.code.target")


@composite
class At(Chainer):
    """The element of `src` at an index that lies in memory, as the data of `where`."""

    src: Expr
    where: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (), self.src.dtype

    def at(self, i: Index) -> Term:
        return i.elem(self.src, [i.elem(self.where, (axis,)) for axis in range(self.src.ndim)])


class Plan(Frozen):
    """What to compute at an index: an expression seen as (rows, last axis).

    An element is computed by a kernel that takes the index as data, so one kernel does for all.

    >>> import numpy as np
    >>> from gnomon.shadow.tensor import Tensor
    >>> x = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> make_plan(Tensor(x) * 10.0).eval(1, 2)
    50.0
    """

    __slots__ = ("exp", "rows", "width")
    exp: Expr
    rows: int
    width: int

    def __init__(self, exp: Expr) -> None:
        check_expr("Plan", "exp", exp)
        put(self, "exp", exp)
        put(self, "width", exp.shape[-1] if exp.shape else 1)
        put(self, "rows", prod(exp.shape[:-1]))

    def __reduce__(self) -> Any:
        return Plan, (self.exp,)

    def eval(self, y: int, x: int) -> Any:
        """The element in row `y` at position `x`, as a Python number.

        Raises:
            IndexError: there is no such element.
        """
        index = self.index(y, x)
        leaves = (n for n in postorder([self.exp]) if isinstance(n, Buffer))
        device = next((leaf.device for leaf in leaves if leaf.device != TRACED), "cpu")
        where = TensorContainer((len(index),), dt.int64, device=device)
        value = TensorContainer((), self.exp.dtype, device=device)
        write(where, np.array(index, np.int64))
        stores = [Store(value, "saveto", At(self.exp, where))]
        for step in without_workspace(lambda: prepare(stores, "plan")):
            step.run()
        return value.numpy().item()

    def reval(self, y: int, x: int) -> np.ndarray[Any, Any]:
        """A 0-d view of the element: what an assignment writes to.

        Raises:
            TypeError: the expression is no tensor.
            IndexError: there is no such element.
        """
        if not isinstance(self.exp, Buffer):
            raise TypeError(complaint("Plan.reval", "exp", "a tensor", f"{self.exp!r}"))
        where: tuple[Any, ...] = (*self.index(y, x), ...)
        return np.asarray(self.exp.numpy()[where])

    def ptx(self, arch: str = "sm_90") -> str:
        """The PTX of the kernels that fill a fresh dense destination on an NVIDIA GPU.

        Raises:
            ParamError: `arch` is not a GPU from sm_70 on.
        """
        return inspect.shown(self.exp, targets.gpu(arch).cpu)

    def assembly(self, target: str = "aarch64") -> str:
        """The assembly of the same kernels for another processor, or for a GPU.

        Raises:
            ParamError: there is no such target; the message lists them.
        """
        targets.named(target)
        return inspect.shown(self.exp, target)

    def index(self, y: int, x: int) -> tuple[int, ...]:
        """The index of an element of the expression."""
        y, x = whole("Plan", "y", y), whole("Plan", "x", x)
        if not (0 <= y < self.rows and 0 <= x < self.width):
            expected = f"an element of {self.rows} rows of {self.width}"
            raise IndexError(complaint("Plan", "y, x", expected, (y, x)))
        outer = tuple(int(k) for k in np.unravel_index(y, self.exp.shape[:-1] or (1,)))
        return (*outer, x) if len(self.exp.shape) > 1 else (x,) * len(self.exp.shape)


@explained
def make_plan(e: Expr) -> Plan:
    """The plan of `e`."""
    return Plan(e)

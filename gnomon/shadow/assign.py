"""Assignment: the one place where something is computed, and where the tensor layer is strict.

A library product stands alone or scaled, over data or transposed data: it is worth a loop of its
own, so it should be seen to be one. Inside larger expressions `implicit_dot` computes the same in
their loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from gnomon.base import GnomonError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.composite import Call
from gnomon.expr.ext.reshape import Reshape
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.node import CHAINER, Buffer, Expr, Operand, Scalar, as_expr
from gnomon.expr.walk import postorder
from gnomon.plan.cut import core
from gnomon.plan.statement import SAVERS, Saver, Store
from gnomon.runtime.statements.dispatch import store, store_all

saveto: Saver = "saveto"
plusto: Saver = "plusto"
minusto: Saver = "minusto"
multo: Saver = "multo"
divto: Saver = "divto"

T = TypeVar("T")


def check_saver(saver: Any) -> None:
    """Raises a ValueError where something is no saver."""
    if not isinstance(saver, str) or saver not in SAVERS:
        expected = f"one of {', '.join(SAVERS)}"
        raise ValueError(complaint("assignment", "saver", expected, f"{saver!s:.60}"))


def assign(dest: Buffer, saver: Saver, value: Operand) -> None:
    """`dest saver value`, computed now, in one loop without temporaries.

    Raises:
        ShapeError, DTypeError: the value does not fit; the destination is untouched.
        GnomonError: a product inside a larger expression, or stored by `*=` or `/=`.
    """
    check_saver(saver)
    e = as_expr(value, dest.dtype)
    if e.exp_type & ~CHAINER:
        check_products(e, saver)
    store(dest, saver, e)


def storing(joined: Callable[[Any, Operand], Expr]) -> Callable[[T, Operand], T]:
    """The method of an in-place operator that has no saver: the value is stored as by `[:] =`."""

    def method(self: Any, value: Operand) -> Any:
        return self.assign(joined(self, value))

    return method


class Targets(Protocol):
    """What assigns to several tensors at once."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""

    @property
    def dtype(self) -> DType:
        """The dtype of the whole."""

    def targets(self, value: Expr) -> list[tuple[Buffer, Expr]]:
        """The tensors, each with its piece of `value`."""


def assign_all(dest: Targets, saver: Saver, value: Operand) -> None:
    """`dest saver value` of several tensors: the pieces are computed before any is stored.

    Raises:
        ShapeError, DTypeError: the value does not fit; the destinations are untouched.
        GnomonError: a product of a library, which stores into one tensor.
    """
    check_saver(saver)
    e = as_expr(value, dest.dtype)
    if e.exp_type & ~CHAINER:
        raise GnomonError(f"{e!r} holds a product, which stores into one tensor; see implicit_dot")
    if not isinstance(e, Scalar) and e.shape != dest.shape:
        expected = f"shape {dest.shape} of the destination"
        raise ShapeError(complaint("assignment", "value", expected, f"{e!r}"))
    store_all([Store(view, saver, piece) for view, piece in dest.targets(e)])


def check_products(e: Expr, saver: Saver) -> None:
    """Raises where a library's product stands elsewhere than alone, or over more than data."""
    root = core(e)
    root = root.src if isinstance(root, Reshape) else root
    if isinstance(root, Call):
        if saver in (multo, divto):
            raise GnomonError(f"{saver} takes no {root!r}; implicit_dot gives the same as a map")
        for operand in root.children:
            data = operand.src if isinstance(operand, Transpose) else operand
            if not isinstance(data, Buffer):
                expected = "a tensor or its .T (implicit_dot takes any expression)"
                raise GnomonError(complaint("dot", "operand", expected, f"{operand!r}"))
        return
    for node in postorder([e]):
        if isinstance(node, Call):
            raise GnomonError(
                f"{node!r} stands inside a larger expression; dot stands alone or scaled, "
                "implicit_dot goes anywhere"
            )

"""What the language does not have is refused by naming what there is instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, ParamError, ShapeError
from gnomon.expr.diff import vjp
from gnomon.shadow import Tensor, TensorContainer, fn

A, B = (Tensor(np.ones((2, 3), np.float32)) for _ in range(2))
OTHER = Tensor(np.ones((3, 2), np.float32))
CHOICE = Tensor(np.ones((2, 3), np.bool_))
UNALIGNED = np.zeros(9, np.uint8)[1:].view(np.float32)


def of_rows(expression: Any) -> None:
    expression[:] = 1.0


def named(name: str) -> Callable[..., Any]:
    def function(src: Any) -> Any:
        return src

    function.__name__ = name
    return function


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a % b": (lambda: A % B, TypeError, "has no %; there is fn.mod"),
    "2 % a": (lambda: 2 % A, TypeError, "has no %; there is fn.mod"),
    "a // b": (lambda: A // B, TypeError, r"there is fn.floor\(a / b\)"),
    "a @ b": (lambda: A @ B, TypeError, r"there is dot\(a, b\)"),
    "array @ a": (lambda: A.numpy() @ A, TypeError, r"there is dot\(a, b\)"),
    "a & b": (lambda: A & B, DTypeError, "bitwise_and.* integers for &, got float32"),
    "a | b": (lambda: A | B, DTypeError, "bitwise_or.* integers for"),
    "a ^ b": (lambda: (A + B) ^ B, DTypeError, "bitwise_xor.* integers for"),
    "~a": (lambda: ~A, DTypeError, "invert.* integers for ~"),
    "a <<= 1": (lambda: A.__ilshift__(1), DTypeError, "left_shift.* integers for <<"),
    "shifted truth": (lambda: (A < B).T >> 1, DTypeError, "right_shift.* integers for >>"),
    "bits of floats": (
        lambda: shadow.reduce(A, "bitwise_or"),
        DTypeError,
        "integers for bitwise_or",
    ),
    "divmod": (lambda: divmod(A, B), TypeError, "fn.floor"),
    "chosen rows": (lambda: A[[0, 1]], TypeError, "a whole number or a slice"),
    "part of a sum": (lambda: (A + B)[0], TypeError, "slice_ex"),
    "into a transpose": (lambda: of_rows(A.T), TypeError, "slice_ex, slice, flip or concat"),
    "a sum assigned to": (lambda: (A + B).assign(1.0), TypeError, "only tensors.* are assigned to"),
    "mask of truth values": (
        lambda: fn.where(CHOICE, A, B),
        DTypeError,
        "operand 0': expected dtype float32",
    ),
    "scalar below": (lambda: shadow.scalar(-1, "uint8"), DTypeError, "that uint8 holds, got -1"),
    "scalar above": (lambda: shadow.scalar(300, "uint8"), DTypeError, "that uint8 holds"),
    "half a scalar": (lambda: shadow.scalar(0.5, "int32"), DTypeError, "that int32 holds, got 0.5"),
    "unaligned": (lambda: Tensor(UNALIGNED), ShapeError, "alignment divides"),
    "extension take": (lambda: shadow.extension(named("take")), ParamError, "got take"),
    "extension Tensor": (lambda: shadow.extension(named("Tensor")), ParamError, "got Tensor"),
    "vjp of one": (lambda: vjp(A * A, B, A), TypeError, "vjp: argument 'outputs'"),
    "vjp of numbers": (lambda: vjp([A * A], [1.0], [A]), TypeError, "'out_grads'"),
    "vjp, too few": (lambda: vjp([A * A], [], [A]), ShapeError, "one for each of 1 outputs"),
    "vjp, other shape": (lambda: vjp([A * A], [OTHER], [A]), ShapeError, "of <mul 2x3 float32>"),
    "no axis at all": (lambda: shadow.flip(TensorContainer(()), 0), ShapeError, "with axes"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    make, error, words = CASES[case]
    with pytest.raises(error, match=words):
        make()


def test_numbers_beside_unsigned_ones() -> None:
    x = Tensor(np.array([5], np.uint8))
    out = TensorContainer((1,), "uint8")
    for make in (
        lambda: x + (-1), lambda: x * -1, lambda: 300 - x, lambda: fn.minimum(x, 300),
        lambda: out.assign(300), lambda: Tensor(np.zeros(2, np.int8)) + 1000,
    ):  # fmt: skip
        with pytest.raises(DTypeError, match=r"an integer that u?int8 holds, got"):
            make()
    for value, right in ((x >= 300, 0), (x > -1, 1), (x + 250, 255), (x - 5, 0)):
        out[:] = value
        assert out.numpy() == [right]
    assert out.numpy() == [0]


def test_numbers_are_explained() -> None:
    assert A.explain(3) == A.explain(3.0) != A.explain(3.0, shadow.plusto)

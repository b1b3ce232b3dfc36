"""Operators and methods that expressions do not have: each raises an error that names the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

INSTEAD = {
    "mod": ("%", "fn.mod(a, b)"),
    "floordiv": ("//", "fn.floor(a / b), for integers (a - fn.mod(a, b)) / b"),
    "divmod": ("divmod", "fn.floor(a / b), for integers (a - fn.mod(a, b)) / b, and fn.mod(a, b)"),
    "matmul": ("@", "dot(a, b), or implicit_dot(a, b) within an expression"),
    "getitem": ("[]", "slice_ex(a, begin, end, step), or a[i] and a[i:j] of a tensor"),
    "setitem": ("[] = ...", "slice_ex, slice, flip or concat of tensors to assign to"),
}

# methods of arrays elsewhere, and the functions that stand for them
FUNCTIONS = {
    "argmax": "reduce(e, 'argmax', axes)",
    "argmin": "reduce(e, 'argmin', axes)",
    "asnumpy": "numpy() of a tensor that it was stored into",
    "astype": "tcast(dtype, e)",
    "broadcast_to": "broadcast_to(e, shape)",
    "clip": "fn.clip(e, low, high)",
    "copy": "TensorContainer(e.shape), to store it into",
    "cumprod": "cumprod(e, axis)",
    "cumsum": "cumsum(e, axis)",
    "dot": "dot(a, b)",
    "eval": "TensorContainer(e.shape), to store it into",
    "flatten": "reshape(e, (size,))",
    "max": "reduce(e, 'max', axes)",
    "mean": "reduce(e, 'sum', axes) / count",
    "min": "reduce(e, 'min', axes)",
    "numpy": "numpy() of a tensor that it was stored into",
    "prod": "reduce(e, 'prod', axes)",
    "ravel": "reshape(e, (size,))",
    "reshape": "reshape(e, shape)",
    "round": "fn.round(e)",
    "sum": "reduce(e, 'sum', axes)",
    "swapaxes": "swapaxis(e, a, b)",
    "take": "take(indices, e)",
    "transpose": "transpose(e, axes)",
}


def absent(self: Any, name: str) -> NoReturn:
    """An attribute that expressions do not have.

    Raises:
        AttributeError: always; names what stands for a method that arrays have elsewhere.
    """
    told = f"{type(self).__name__!r} object has no attribute {name!r}"
    instead = FUNCTIONS.get(name)
    raise AttributeError(told + (f"; there is shadow's {instead}" if instead else ""))


def unassigned(self: Any, *_: Any, **__: Any) -> NoReturn:
    """`assign` of what is computed.

    Raises:
        TypeError: always.
    """
    raise TypeError(f"{self!r} has no assign: only tensors, and slices of them, are assigned to")


def unsupported(name: str) -> Callable[..., NoReturn]:
    """The method of an operator that there is not.

    Raises:
        TypeError: whenever it is called.
    """
    sign, instead = INSTEAD[name]

    def refuse(self: Any, *_: Any) -> NoReturn:
        raise TypeError(f"{self!r} has no {sign}; there is {instead}")

    return refuse


def without(kind: Any) -> None:
    """Give a class of expressions, which has none of these operators, what refuses them."""
    kind.assign = unassigned
    kind.__getattr__ = absent
    for name in INSTEAD:
        setattr(kind, f"__{name}__", unsupported(name))
        if name not in ("getitem", "setitem"):
            setattr(kind, f"__r{name}__", unsupported(name))

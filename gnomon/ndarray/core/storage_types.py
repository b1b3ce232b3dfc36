"""Kinds of storage beside the dense one: what the files below sparse arrays call them by.

State: `zeros` makes an empty array of a kind by its name; `ready` applies operators where an
operand is sparse, and goes to the `rules` when the first sparse array is made, so that programs
without any pay for one look; arrays of GPUs have a rule as well (`remote/way.py`), which comes
after it, for sparse arrays are computed with by operators on dense ones, wherever these lie. A rule
gives the outputs, or None where it does not apply. `row_gradient` gives the gradient of an operator
with `sparse_grad`; `cast` gives an array in another storage. They are filled in by
`sparse/arrays.py` and `sparse/apply.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.base import ParamError, complaint

zeros: dict[str, Callable[..., Any]] = {}
ready: Callable[..., Any] | None = None
rules: list[Callable[..., Any]] = []
cast: Callable[..., Any] | None = None
row_gradient: Callable[..., Any] | None = None


def begin() -> None:
    """From now on there are sparse arrays."""
    if ready is not None and ready not in rules:
        rules.insert(0, ready)


def made(stype: str, shape: Any, dtype: Any, ctx: Any) -> Any:
    """An array of zeros in the storage `stype`, which is not the dense one.

    Raises:
        ParamError: there is no such storage.
    """
    if stype not in zeros:
        expected = f"default, {', '.join(zeros)}"
        raise ParamError(complaint("NDArray", "stype", expected, repr(stype)))
    return zeros[stype](shape, dtype, ctx)

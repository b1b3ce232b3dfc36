"""Arrays whose elements this process cannot touch: who makes them, and computes with them.

`ways` has a module for each type of context whose memory is a device's own; arrays on contexts of
all other types are of the usual class. Such a module gives `new`, `zeros` and `around`, which make
arrays, `apply`, which applies operators, and `gradient`, which differentiates them. It is loaded
when the first array is made there, and nothing is asked of it before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gnomon.base import DeviceError, Later, complaint
from gnomon.context import Context

ways: dict[int, Any] = {Context.devstr2type["gpu"]: Later("gnomon.ndarray.remote.way")}
waits: list[Callable[[], object]] = []  # each returns when the devices of a way have nothing to do


def together(a: Context, b: Context) -> bool:
    """Whether arrays on both contexts may be operands of one operator: processors share memory."""
    return a == b or (a.device_typeid not in ways and b.device_typeid not in ways)


def check_operands(op: Any, inputs: Sequence[Any], outputs: Sequence[Any], ctx: Any = None) -> None:
    """Refuse operands that are not all in one memory, where the operator is to run on `ctx`.

    Raises:
        DeviceError: names the first operand, and one that is elsewhere, with both contexts.
    """
    names = [*op.inputs()[: len(inputs)], *["out"] * len(outputs), "ctx"]
    places = [*(x.context for x in (*inputs, *outputs)), *([] if ctx is None else [ctx])]
    for name, place in zip(names, places, strict=False):
        if not together(place, places[0]):
            raise DeviceError(
                f"operator {op.name} requires all inputs and outputs on the same context: "
                f"{names[0]!r} is on {places[0]}, {name!r} is on {place}"
            )


def check_together(where: str, argument: str, array: Any, ctx: Context, whose: str) -> None:
    """Refuse an array that may not be an operand together with one on `ctx`, which is `whose`.

    Raises:
        DeviceError: only a copy on the other device could be.
    """
    if not together(array.context, ctx):
        expected = f"an array on {ctx}, as {whose} is"
        raise DeviceError(complaint(where, argument, expected, f"one on {array.context}"))

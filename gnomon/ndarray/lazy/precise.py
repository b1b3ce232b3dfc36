"""Mixed precision of arrays: inputs cast to what the precision in force wants of an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gnomon.ops import registry
from gnomon.ops.precision import Precision, wanted


def adapted(
    precision: Precision, op: Any, inputs: Sequence[Any], invoke: Callable[..., Any]
) -> tuple[Any, Sequence[Any]]:
    """The operator and its inputs as they are computed; `invoke` applies a cast.

    States stay as they are, since the operator changes them; so do arrays in sparse storage.
    """
    rule = precision.rule(op)
    if rule is None:
        return op, inputs
    types = [x._dtype for x in inputs[: len(op.arguments())]]
    found = list(inputs)
    for k, dtype in enumerate(wanted(rule, types)):
        if dtype is not types[k] and inputs[k].stype == "default":
            cast = registry.find("amp_cast").parse({"dtype": dtype.name})
            found[k] = invoke(cast, (inputs[k],))
    return precision.scaled(op), found

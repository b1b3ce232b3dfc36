"""Which operators compute in which dtype: MXNet's lists, from `gnomon/data/precision.txt`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, complaint, shown
from gnomon.dtype import DType
from gnomon.ground.tables import table
from gnomon.ops import registry
from gnomon.ops.precision import WIDEST, Condition, Precision, precision

TARGETS = ("float16", "bfloat16")
CONDITIONS: tuple[Condition, ...] = (
    ("Activation", "act_type", ["softrelu"]),
    ("LeakyReLU", "act_type", ["elu", "selu"]),
)
LOSSES = (
    "SoftmaxOutput",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
)
_FLOAT32_PARAMS = ("", "gamma", "beta", "moving_mean", "moving_var")


@functools.cache
def _table() -> dict[str, list[str]]:
    return table("precision.txt")


def target(where: str, dtype: Any) -> DType:
    """The dtype to compute in.

    Raises:
        ParamError: it is neither float16 nor bfloat16.
    """
    try:
        found = dtypes.of(dtype)
    except DTypeError:
        found = None
    if found is None or found.name not in TARGETS:
        raise ParamError(complaint(where, "target_dtype", " or ".join(TARGETS), repr(dtype)))
    return found


def _listed(where: str, dtype: Any, group: str) -> list[str]:
    return list(_table()[f"{target(where, dtype).name} {group}"])


def list_lp16_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in the target dtype.

    >>> list_lp16_ops("bfloat16")
    ['Convolution', 'FullyConnected']
    """
    return _listed("list_lp16_ops", target_dtype, "target")


def list_fp32_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in float32."""
    return _listed("list_fp32_ops", target_dtype, "float32")


def list_lp16_fp32_ops(target_dtype: Any) -> list[str]:
    """Operators that compute in the dtype of what they are given."""
    return _listed("list_lp16_fp32_ops", target_dtype, "either")


def list_widest_type_cast(target_dtype: Any) -> list[str]:
    """Operators that compute in the widest dtype of their inputs."""
    return _listed("list_widest_type_cast", target_dtype, "widest")


def list_conditional_fp32_ops(target_dtype: Any) -> list[Condition]:
    """Operators that compute in float32 with some values of a parameter: (name, field, values)."""
    target("list_conditional_fp32_ops", target_dtype)
    return list(CONDITIONS)


def list_loss_output_functions(target_dtype: Any) -> list[str]:
    """Operators whose gradient begins with themselves, so that it is scaled there."""
    target("list_loss_output_functions", target_dtype)
    return list(LOSSES)


def list_lp16_use_fp32_params(target_dtype: Any) -> dict[str, list[str]] | None:
    """Operators in the target dtype with inputs that stay float32, by name; None for float16."""
    if target("list_lp16_use_fp32_params", target_dtype) is dtypes.float16:
        return None
    return {name: list(_FLOAT32_PARAMS) for name in ("BatchNormWithReLU", "BatchNorm")}


def chosen(
    where: str,
    dtype: Any,
    target_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional: Sequence[Condition] | None = None,
) -> Precision:
    """The precision with a program's own lists in place of the usual ones.

    Raises:
        ParamError: another dtype; a name that is no operator's, or stands in two lists.
    """
    wanted = target(where, dtype)
    names = [n for n, _, _ in _conditions(where, conditional) or ()]
    own = {"target_dtype_ops": target_ops, "fp32_ops": fp32_ops, "conditional_fp32_ops": names}
    mine: dict[Any, str] = {}  # a program's own choices, and the argument that says each
    for argument, given in own.items():
        _check(where, argument, given)
        for name in given or ():
            before = mine.setdefault(registry.find(name), argument)
            if before != argument:
                raise ParamError(complaint(where, argument, f"no operator of {before}", name))

    named = {n for key, row in _table().items() if key.startswith(f"{wanted.name} ") for n in row}

    def group(given: Sequence[str] | None, usual: str) -> list[str]:
        if given is not None:
            return list(given)
        known = [(n, registry.find(n)) for n in _listed(where, wanted, usual) if registry.has(n)]
        # of an operator under several names, its own one counts
        return [
            n for n, cls in known if cls not in mine and (n == cls.name or cls.name not in named)
        ]

    groups: dict[Any, list[str]] = {wanted: group(target_ops, "target")}
    groups[dtypes.float32] = group(fp32_ops, "float32")
    groups[WIDEST] = group(None, WIDEST)
    return precision(where, wanted, groups, CONDITIONS if conditional is None else conditional)


def _check(where: str, argument: str, given: Any) -> None:
    """Raises ParamError unless `given` is None, or names of operators."""
    if given is None:
        return
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ParamError(complaint(where, argument, "a list of names", shown(given)))
    for name in given:
        if not isinstance(name, str) or not registry.has(name):
            raise ParamError(complaint(where, argument, "names of operators", repr(name)))


def _conditions(where: str, given: Any) -> Sequence[Condition] | None:
    """`given` as it is, None or rows of (operator, parameter, values); else ParamError."""
    for row in given or ():
        if isinstance(row, str) or len(row) != 3:
            expected = "rows of (operator, parameter, values)"
            raise ParamError(complaint(where, "conditional_fp32_ops", expected, shown(row)))
        _check(where, "conditional_fp32_ops", [row[0]])
    return given  # type: ignore[no-any-return]

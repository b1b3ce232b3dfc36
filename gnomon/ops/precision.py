"""Mixed precision: which operators compute in which dtype, once a program has asked for it.

State: `current` is None until `mx.contrib.amp.init`, and a `Precision` for the rest of the process
from then on. `invoke` and the composition of symbols ask it what an operator's inputs are cast to.
A cast never reaches states of an operator, nor integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gnomon import dtype as dtypes
from gnomon.base import ParamError, complaint, nearest
from gnomon.dtype import DType
from gnomon.ops import registry
from gnomon.ops.op import Op

WIDEST = "widest"
Condition = tuple[str, str, Sequence[str]]


class Precision(NamedTuple):
    """What the inputs of operators are cast to.

    `rules` holds a dtype, or `WIDEST`: the widest dtype among the inputs. `conditions` holds, for
    some operators, a parameter and the values of it with which they compute in float32. The
    gradient that operators of `losses` begin with is multiplied by `loss_scale()`.
    """

    target: DType
    rules: Mapping[type[Op], DType | str]
    conditions: Mapping[type[Op], Sequence[tuple[str, Sequence[str]]]]
    losses: frozenset[type[Op]] = frozenset()
    loss_scale: Callable[[], float] | None = None

    def rule(self, op: Op) -> DType | str | None:
        """What the inputs of `op` are cast to; None where they stay as they are."""
        for name, values in self.conditions.get(type(op), ()):
            if str(getattr(op, name)) in values:
                return dtypes.float32
        return self.rules.get(type(op))

    def scaled(self, op: Op) -> Op:
        """`op`, whose gradient is scaled as the loss is."""
        if self.loss_scale is None or type(op) not in self.losses:
            return op
        factor: float = op.grad_scale * self.loss_scale()
        return op.with_parameters({**op.attrs(), "grad_scale": factor})


current: Precision | None = None


def precision(
    where: str,
    target: DType,
    groups: Mapping[DType | str, Iterable[str]],
    conditions: Iterable[Condition],
) -> Precision:
    """The precision with these operators in each group, by name; the first one counts.

    Raises:
        ParamError: an operator is conditional on a parameter that it has not.
    """
    rules: dict[type[Op], DType | str] = {}
    for rule, names in groups.items():
        for name in filter(registry.has, names):  # MXNet's lists have helpers of its own, too
            rules.setdefault(registry.find(name), rule)
    found: dict[type[Op], list[tuple[str, Sequence[str]]]] = {}
    for name, field, values in conditions:
        cls = registry.find(name)
        if field not in cls.fields:
            expected = f"a parameter of {name}{nearest(field, cls.fields)}"
            raise ParamError(complaint(where, "conditional_fp32_ops", expected, repr(field)))
        found.setdefault(cls, []).append((field, tuple(map(str, values))))
    return Precision(target, rules, found)


def widest(types: Iterable[DType]) -> DType | None:
    """The widest floating dtype; None where there is none. float16 and bfloat16 give float32."""
    found = {t for t in types if t.kind == "f"}
    if {dtypes.float16, dtypes.bfloat16} <= found:
        found.add(dtypes.float32)
    return max(found, key=lambda t: t.size, default=None)


def wanted(rule: DType | str | None, types: Sequence[DType]) -> list[DType]:
    """What inputs of these dtypes are cast to by a rule; integers, and float64, stay.

    >>> from gnomon.dtype import float16, float32, int32
    >>> wanted(float16, [float32, int32]), wanted(WIDEST, [float16, float32])
    ([float16, int32], [float32, float32])
    """
    if rule is None:
        return list(types)
    chosen = widest(types) if isinstance(rule, str) else rule
    keeps = () if isinstance(rule, str) else (dtypes.float64,)
    return [t if chosen is None or t.kind != "f" or t in keeps else chosen for t in types]

"""Custom: one operator name for everything users write in Python, told apart by `op_type`.

The record knows only properties (`OperatorProperty`) that were registered under an `op_type`;
`gnomon.operator` enters those of the classes that users register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from gnomon.base import ParamError, complaint
from gnomon.ops import registry
from gnomon.ops.op import describe
from gnomon.ops.param import param
from gnomon.ops.property import OperatorProperty, PropertyOp
from gnomon.registry import Registry

kinds: Registry[Callable[[], OperatorProperty]] = Registry("custom operator")


class Custom(PropertyOp):
    """An operator written in Python and registered under `op_type`; see `gnomon.operator`.

    The inputs, and all further parameters (as strings), are those of its class.
    """

    op_type: str = param(doc="The name that the operator was registered under.")

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """The operator with these parameters; never shared: a class may be registered anew."""
        return cls(**given)

    @classmethod
    def meant(cls, given: Mapping[str, Any]) -> tuple[OperatorProperty, dict[str, Any]]:
        op_type = given.get("op_type")
        if not op_type:
            expected = f"one of {', '.join(kinds.names()) or 'those that are registered'}"
            raise ParamError(complaint("Custom", "op_type", expected, op_type))
        values = {name: str(value) for name, value in given.items() if name != "op_type"}
        meaning = kinds.get(str(op_type))()
        try:
            meaning.init(values)
        except Exception as error:  # a user's code
            error.add_note(f"in the making of Custom(op_type={op_type!r}) with parameters {values}")
            raise
        return meaning, {"op_type": op_type, **values}


Custom.name, Custom.input_names = "Custom", ()
describe(Custom)
Custom.is_expression = False
registry.register(Custom)

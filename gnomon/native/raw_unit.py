"""Raw units: functions that know no objects and raise no errors, for all native code to call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.native.function import Lowering
from gnomon.native.ir import Value
from gnomon.native.kinds import BOOL, NONE, KitError, word_type
from gnomon.native.unit import Unit


class RawLowering(Lowering):
    """Lowers a function that needs nothing of Python."""

    def thing(self, thing: Any, node: ast.expr | None = None) -> Value:
        if thing is None:
            return Value("null", NONE)
        if isinstance(thing, bool):
            return Value(str(thing).lower(), BOOL)
        return super().thing(thing, node)

    def call(
        self, name: str, result: str, *given: Value, runs: str = "", fixed: int | None = None
    ) -> str:
        if name.startswith("Py"):
            raise KitError(f"{name}: a raw function has no objects")
        return super().call(name, result, *given, runs=runs, fixed=fixed)

    def boxed(self, value: Value) -> Value:
        raise KitError(f"{value.kind}: a raw function has no objects")

    def failure(self) -> str:
        raise KitError("a raw function raises no error")


class RawUnit(Unit):
    """The text of a raw unit, whose functions native code calls by their names."""

    lowering = RawLowering
    short = 20
    helpers, type_offset = "", None

    def __init__(self, functions: Sequence[Any]) -> None:
        self._entries = functions
        super().__init__(functions)

    def entry(self, function: Any, as_method: bool) -> str:
        self.function(function)
        return ""

    def head_of(self, function: Any) -> tuple[str, str]:
        if function in self._entries:
            return "external", f"@{function.__name__}"
        return super().head_of(function)

    def symbol(self, thing: Any, shown: str, space: Mapping[str, Any]) -> str:
        kind: Any = type(thing)
        if word_type(kind) is None:
            raise KitError(f"{shown}: a raw function has no objects")
        return super().symbol(thing, shown, space)

"""Initial values of a module's parameters: those given, and the initializer's for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.base import ParamError, ShapeError, complaint, nearest
from gnomon.context import current_context
from gnomon.initializer import InitDesc
from gnomon.ndarray.core.array import kept_zeros

WHERE = "Module.init_params"


def room_for(names: Sequence[str], arrays: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Arrays on the processor for parameters that live on devices."""
    return {
        name: kept_zeros(copies[0].shape, copies[0]._dtype, current_context(), copies[0].stype)
        for name, copies in zip(names, arrays, strict=True)
    }


def check_names(what: str, own: Mapping[str, Any], given: Mapping[str, Any] | None) -> None:
    """Raise unless all the given names are the module's own."""
    for name in given or ():
        if name not in own:
            expected = "names that the symbol has, or allow_extra"
            got = repr(name) + nearest(name, own)
            raise ParamError(complaint("Module.set_params", what, expected, got))


def check_given(
    own: Mapping[str, Any], given: Mapping[str, Any] | None, allow_missing: bool
) -> None:
    """Raise unless the given arrays can become the module's own; other names do not count."""
    if given is None:
        return
    for name, array in given.items():
        if name in own and tuple(array.shape) != tuple(own[name].shape):
            raise ShapeError(complaint(WHERE, name, f"shape {own[name].shape}", array.shape))
    missing = [name for name in own if name not in given]
    if missing and not allow_missing:
        raise ParamError(
            complaint(
                WHERE, "arg_params", f"arrays for {missing} too, or allow_missing", list(given)
            )
        )


def fill(
    own: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    initializer: Any,
    attrs: Mapping[str, Mapping[str, str]],
) -> None:
    """Copy the given arrays into the module's own, and initialize the others."""
    for name in sorted(own):
        if given is not None and name in given:
            if given[name] is not own[name]:
                given[name].copyto(own[name])
        elif initializer is not None:
            initializer(InitDesc(name, attrs.get(name)), own[name])

"""Nested lists of arrays as flat ones and back; the format says how they were nested.

0 stands for an array or a symbol of one output, -1 for None, a larger number for a symbol of so
many outputs, a list for a list.
"""

from __future__ import annotations

from typing import Any

from gnomon.base import complaint, shown
from gnomon.ndarray import NDArray
from gnomon.symbol import Symbol

Format = Any  # int or a list of formats
tensor_types = Symbol, NDArray  # what flows between blocks


class InputError(TypeError, ValueError):
    """Inputs or outputs of a hybrid block that are neither arrays nor symbols."""


def flatten(args: Any, where: str, what: str) -> tuple[list[Any], Format]:
    """The arrays, symbols and None in nested lists, and how they were nested.

    Raises:
        InputError: something else is among them.
    """
    if isinstance(args, NDArray):
        return [args], 0
    if isinstance(args, Symbol):
        return [args], len(args) if len(args) > 1 else 0
    if args is None:
        return [None], -1
    if not isinstance(args, (list, tuple)):
        expected = "NDArrays, symbols or None, in lists perhaps"
        raise InputError(complaint(where, what, expected, f"{shown(args)} ({type(args).__name__})"))
    flat, formats = [], []
    for each in args:
        parts, own = flatten(each, where, what)
        flat += parts
        formats.append(own)
    return flat, formats


def regroup(flat: list[Any], form: Format) -> tuple[Any, list[Any]]:
    """Flat things nested as `form` says, and what is left of them."""
    if isinstance(form, int):
        if form < 1:
            return (None if form < 0 else flat[0]), flat[1:]
        return flat[:form], flat[form:]
    found = []
    for each in form:
        part, flat = regroup(flat, each)
        found.append(part)
    return found, flat


def _flatten(args: Any, inout_str: str) -> tuple[list[Any], Format]:
    """`flatten` as libraries import it.

    Raises:
        InputError: something else is among the arrays, symbols and None.
    """
    return flatten(args, "HybridBlock", inout_str)


def _regroup(args: list[Any], fmt: Format) -> Any:
    """Flat things nested again, as libraries import it."""
    return regroup(args, fmt)[0]

"""Sequences as one array with a time axis, or as a list with an array a step; symbols alike."""

from __future__ import annotations

from typing import Any

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import ParamError, check_kind, complaint
from gnomon.symbol import Symbol

LAYOUTS = ("NTC", "TNC")


def time_axis(layout: str) -> int:
    """Where time is in `layout`: the sequence may have more axes behind N and T."""
    if not (isinstance(layout, str) and {"N", "T"} <= set(layout)):
        raise ParamError(complaint("unroll", "layout", "'NTC' or 'TNC'", repr(layout)))
    return layout.find("T")


def functions(sequence: Any) -> Any:
    """`mx.sym` or `mx.nd`, for a sequence in either form."""
    first = sequence[0] if isinstance(sequence, (list, tuple)) else sequence
    return sym if isinstance(first, Symbol) else nd


def batch_size(sequence: Any, layout: str) -> int:
    """How many sequences there are; 0 for symbols."""
    if functions(sequence) is sym:
        return 0
    if isinstance(sequence, (list, tuple)):
        return sequence[0].shape[layout.replace("T", "").find("N")]
    return sequence.shape[layout.find("N")]


def as_steps(length: int | None, sequence: Any, layout: str) -> list[Any]:
    """`sequence` as a list with an array a step.

    Raises:
        ParamError: it has not `length` steps.
    """
    axis = time_axis(layout)
    if isinstance(sequence, (list, tuple)):
        if (length is not None and len(sequence) != length) or not sequence:
            got = f"{len(sequence)} arrays"
            raise ParamError(complaint("unroll", "inputs", f"{length} arrays, one a step", got))
        return list(sequence)
    F = functions(sequence)
    if F is sym:
        if len(sequence.list_outputs()) != 1:
            got = f"a group of {len(sequence.list_outputs())}"
            expected = "a symbol with one output, or a list"
            raise ParamError(complaint("unroll", "inputs", expected, got))
    else:
        expected = "an array, a symbol, or a list of them"
        check_kind("unroll", "inputs", sequence, nd.NDArray, expected)
        steps = sequence.shape[axis]
        if length is not None and steps != length:
            expected = f"{length} steps along axis {axis} ({layout})"
            got = f"shape {sequence.shape}"
            raise ParamError(complaint("unroll", "inputs", expected, got))
        length = steps
    found = F.split(sequence, axis=axis, num_outputs=length, squeeze_axis=1)
    return list(found) if F is sym or isinstance(found, (list, tuple)) else [found]


def merged(sequence: Any, layout: str) -> Any:
    """`sequence` as one array."""
    if not isinstance(sequence, (list, tuple)):
        return sequence
    return functions(sequence).stack(*sequence, axis=time_axis(layout))


def formatted(length: int, sequence: Any, layout: str, merge: bool | None) -> Any:
    """`sequence` as one array or as a list, as `merge` says; as it is where that is None."""
    if merge is None:
        return sequence
    return merged(sequence, layout) if merge else as_steps(length, sequence, layout)


def masked(outputs: Any, layout: str, valid_length: Any) -> Any:
    """`outputs` as one array, 0 behind the end of each sequence."""
    F = functions(outputs)
    axis = time_axis(layout)
    whole = merged(outputs, layout)
    return F.SequenceMask(whole, valid_length, use_sequence_length=True, axis=axis)


def reversed_steps(steps: list[Any], valid_length: Any) -> list[Any]:
    """The steps from the last to the first; of shorter sequences what is valid, in front."""
    if valid_length is None:
        return steps[::-1]
    F = functions(steps)
    turned = F.SequenceReverse(F.stack(*steps, axis=0), valid_length, use_sequence_length=True)
    found = F.split(turned, axis=0, num_outputs=len(steps), squeeze_axis=True)
    return list(found) if len(steps) > 1 else [found]


def lasts(states: list[list[Any]], valid_length: Any) -> list[Any]:
    """The states at the end of each sequence, from those after each step."""
    F = functions(states[0])
    return [
        F.SequenceLast(F.stack(*each, axis=0), valid_length, use_sequence_length=True, axis=0)
        for each in zip(*states, strict=True)
    ]

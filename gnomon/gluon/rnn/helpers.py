"""What MXNet's cells are written with, under its names, for cells of programs that call it too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gnomon.gluon.rnn import sequence as seq
from gnomon.gluon.rnn.sequence import formatted


def _format_sequence(
    length: int, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int, Any, int]:
    """`inputs` as one array or as a list, the axis of time, `mx.nd` or `mx.sym`, the batch size."""
    F, axis = seq.functions(inputs), seq.time_axis(layout)
    rows = seq.batch_size(inputs, in_layout or layout)
    if not isinstance(inputs, (list, tuple)) and in_layout not in (None, layout):
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    return formatted(length, inputs, layout, merge), axis, F, rows


def _get_begin_state(cell: Any, F: Any, begin_state: Any, inputs: Any, batch_size: int) -> Any:
    """The given states, or zeros for these inputs."""
    return cell._begun(inputs, batch_size, begin_state)


def _mask_sequence_variable_length(
    F: Any, data: Any, length: int, valid_length: Any, time_axis: int, merge: bool
) -> Any:
    """`data`, 0 behind the end of each sequence, as one array or as a list."""
    layout = "NTC" if time_axis == 1 else "TNC"
    return formatted(length, seq.masked(data, layout, valid_length), layout, merge)


def _reverse_sequences(sequences: Any, unroll_step: int, valid_length: Any = None) -> list[Any]:
    """The steps from the last to the first; of shorter sequences what is valid, in front."""
    return seq.reversed_steps(seq.as_steps(unroll_step, sequences, "TNC"), valid_length)


def _cells_state_info(cells: Iterable[Any], batch_size: int) -> list[Any]:
    """The states of several cells."""
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _cells_begin_state(cells: Iterable[Any], **kwargs: Any) -> list[Any]:
    """The states of several cells before the first step."""
    return [state for cell in cells for state in cell.begin_state(**kwargs)]

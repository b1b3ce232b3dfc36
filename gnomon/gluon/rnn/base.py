"""What all cells share: states, and unrolling over time."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from types import NoneType
from typing import Any

from gnomon import ndarray as nd
from gnomon.base import GnomonError, ParamError, ShapeError, check_kind, complaint, shown
from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.rnn.sequence import as_steps, batch_size, formatted, functions, lasts, masked

How = tuple[str, bool | None, Any]  # layout, merge_outputs, valid_length
Unrolled = tuple[Any, list[Any]]


class RecurrentCell(Block):
    """Base of cells: called with an input and states it gives an output and new states."""

    _dtype: Any = "float32"

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Begin to count steps anew, before the cell is used for another sequence."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._children.values():
            cell.reset()

    def cast(self, dtype: Any) -> None:
        """Have parameters, and in programs the first states, of another type."""
        super().cast(dtype)
        self._dtype = dtype

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state a dict with its `shape` and `__layout__`."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info(batch_size)")

    def begin_state(self, batch_size: int = 0, func: Any = nd.zeros, **kwargs: Any) -> list[Any]:
        """The states before the first step: `func(name=..., shape=..., **kwargs)` for each."""
        self._refuse_modified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(name=name, **{**info, **kwargs}))
        return states

    def _refuse_modified(self) -> None:
        if self._modified:
            owner = f"{type(self).__name__} {self.name!r}"
            raise GnomonError(f"{owner}.begin_state: a modifier cell wraps this cell: ask that one")

    def _begun(self, inputs: Any, rows: int, begin_state: Any) -> Sequence[Any]:
        """The given states, or zeros for so many sequences as these inputs are."""
        if begin_state is not None:
            return begin_state
        F = functions(inputs)
        if F is not nd:
            return self.begin_state(func=F.zeros, batch_size=rows, dtype=self._dtype)
        first = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        how = {"ctx": first.context, "dtype": first.dtype}
        return self.begin_state(func=nd.zeros, batch_size=rows, **how)

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> Unrolled:
        """Outputs and final states of `length` steps.

        Args:
            inputs: one array with the axes of `layout`, or a list with an array a step.
            begin_state: the first states; zeros by default.
            merge_outputs: whether the outputs are one array or a list; by default as they come.
            valid_length: for each sequence how long it is: outputs behind are 0, and the final
                states are those at its end.
        """
        where = f"{type(self).__name__}.unroll"
        check_kind(where, "length", length, (Integral, NoneType), "an int")
        self.reset()
        return self._unrolled(length, inputs, begin_state, (layout, merge_outputs, valid_length))

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        """What `unroll` does, behind the reset."""
        layout, merge_outputs, valid_length = how
        steps = as_steps(length, inputs, layout)
        states = self._begun(steps, batch_size(steps, layout), begin_state)
        outputs, after = [], []
        for each in steps:
            output, states = self(each, states)
            outputs.append(output)
            after.append(states)
        found: Any = outputs
        if valid_length is not None:
            states = lasts(after, valid_length)
            found = masked(outputs, layout, valid_length)
        return formatted(length, found, layout, merge_outputs), list(states)

    def forward(self, inputs: Any, states: Any) -> Any:
        """The output of one step, and the states after it."""
        self._counter += 1
        try:
            return super().forward(inputs, states)
        except (IndexError, TypeError):
            count = len(self.state_info())
            listed = isinstance(states, (list, tuple))
            if states is not None and (not listed or len(states) == count):
                raise
            where = f"{type(self).__name__} {self.name!r}"
            got = f"{len(states)} of them" if listed else shown(states)
            expected = f"{count} of them, as of begin_state"
        raise ShapeError(complaint(where, "states", expected, got))

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        simple = {"tanh": F.tanh, "relu": F.relu, "sigmoid": F.sigmoid, "softsign": F.softsign}
        if isinstance(activation, str):
            if activation in simple:
                return simple[activation](inputs, **kwargs)
            return F.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """Base of cells that can be compiled."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise NotImplementedError(f"{name} must define hybrid_forward(self, F, inputs, states)")


def check_single(where: str, cell: Any, kinds: tuple[type, ...]) -> None:
    """Raise where `cell`, or one in it, is one of `kinds`, which cannot be stepped."""
    check_kind(where, "base_cell", cell, Block, "a cell")
    if isinstance(cell, kinds):
        expected = "a cell that can be stepped (wrap those in it)"
        raise ParamError(complaint(where, "base_cell", expected, repr(cell)))
    for child in cell._children.values():
        check_single(where, child, kinds)

"""Cells made of cells: one after the other, and both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gnomon.gluon.rnn.base import How, HybridRecurrentCell, RecurrentCell, Unrolled
from gnomon.gluon.rnn.helpers import _cells_begin_state, _cells_state_info
from gnomon.gluon.rnn.sequence import (
    as_steps,
    batch_size,
    formatted,
    functions,
    masked,
    merged,
    reversed_steps,
)


class Compound(RecurrentCell):
    """What cells made of cells share: their states are those of the cells, in order."""

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The states of all cells."""
        return _cells_state_info(self._children.values(), batch_size)

    def begin_state(self, batch_size: int = 0, **kwargs: Any) -> list[Any]:
        """The states of all cells before the first step."""
        self._refuse_modified()
        return _cells_begin_state(self._children.values(), batch_size=batch_size, **kwargs)

    def _dealt(self, states: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
        """Each cell with its own of `states`."""
        begin = 0
        for cell in self._children.values():
            count = len(cell.state_info())
            yield cell, list(states[begin : begin + count])
            begin += count


class Stacked(Compound):
    """What both kinds of sequences of cells share."""

    def add(self, cell: Any) -> None:
        """Put `cell` behind the others."""
        self.register_child(cell)

    def __len__(self) -> int:
        return len(self._children)

    def __getitem__(self, i: Any) -> Any:
        return list(self._children.values())[i]

    def __repr__(self) -> str:
        rows = "\n".join(f"({k}): {cell!r}" for k, cell in self._children.items())
        return f"{type(self).__name__}(\n{rows}\n)"

    def _stepped(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        after: list[Any] = []
        for cell, mine in self._dealt(states):
            inputs, new = cell(inputs, mine)
            after += new
        return inputs, after

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        layout, merge_outputs, valid_length = how
        states = self._begun(inputs, batch_size(inputs, layout), begin_state)
        after: list[Any] = []
        last = next(reversed(self._children.values()), None)
        for cell, mine in self._dealt(states):
            merge = merge_outputs if cell is last else None
            inputs, new = cell.unroll(length, inputs, mine, layout, merge, valid_length)
            after += new
        return inputs, after


class SequentialRNNCell(Stacked):
    """Cells one after the other, each on the output of the one before.

    >>> import gnomon as mx
    >>> stack = SequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(8))
    >>> stack.add(mx.gluon.rnn.GRUCell(5))
    >>> stack.initialize()
    >>> output, states = stack(mx.nd.ones((2, 3)), stack.begin_state(batch_size=2))
    >>> output.shape, [s.shape for s in states]
    ((2, 5), [(2, 8), (2, 8), (2, 5)])
    """

    def __call__(self, inputs: Any, states: Any) -> Any:
        self._counter += 1
        return self._stepped(inputs, states)

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"SequentialRNNCell {self.name!r} may hold cells that cannot be compiled: use "
            "HybridSequentialRNNCell"
        )


class HybridSequentialRNNCell(Stacked, HybridRecurrentCell):
    """Cells that can be compiled, one after the other."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        return self._stepped(inputs, states)


class BidirectionalCell(Compound, HybridRecurrentCell):
    """Two cells over the same steps, the second from the last to the first, side by side.

    It cannot be stepped, only unrolled.

    Args:
        l_cell, r_cell: the cells of the two directions.
        output_prefix: begins the names of the outputs of symbols.
    """

    def __init__(self, l_cell: Any, r_cell: Any, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("BidirectionalCell: cannot be stepped: call unroll")

    def __repr__(self) -> str:
        l_cell, r_cell = self._children.values()
        return f"{type(self).__name__}(forward={l_cell!r}, backward={r_cell!r})"

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        layout, merge_outputs, valid_length = how
        steps = as_steps(length, inputs, layout)
        turned = reversed_steps(steps, valid_length)
        states = self._begun(steps, batch_size(steps, layout), begin_state)
        (l_cell, l_begin), (r_cell, r_begin) = self._dealt(states)
        ahead, l_states = l_cell.unroll(length, steps, l_begin, *how)
        back, r_states = r_cell.unroll(length, turned, r_begin, layout, False, valid_length)
        merge = not isinstance(ahead, list) if merge_outputs is None else merge_outputs
        outputs = self._joined(length, ahead, back, layout, merge, valid_length)
        if valid_length is not None:
            outputs = formatted(length, masked(outputs, layout, valid_length), layout, merge)
        return outputs, [*l_states, *r_states]

    def _joined(
        self, length: int, ahead: Any, back: Any, layout: str, merge: bool, valid_length: Any
    ) -> Any:
        """Both directions side by side, in the order of time."""
        F = functions(ahead)
        back = reversed_steps(as_steps(length, back, layout), valid_length)
        if merge:
            parts = merged(ahead, layout), merged(back, layout)
            return F.concat(*parts, dim=2, name=f"{self._output_prefix}out")
        pairs = zip(as_steps(length, ahead, layout), back, strict=True)
        return [
            F.concat(a, b, dim=1, name=f"{self._output_prefix}t{t}")
            for t, (a, b) in enumerate(pairs)
        ]

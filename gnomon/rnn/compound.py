"""Cells made of cells: one after the other, and both directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gnomon import symbol as sym
from gnomon.base import GnomonError, check_kind
from gnomon.rnn.base import Arrays, BaseRNNCell, RNNParams, as_steps, time_axis
from gnomon.symbol import Symbol


class CompoundCell(BaseRNNCell):
    """What cells made of cells share: their states and weights are those of the cells, in order."""

    def __init__(self, prefix: str, params: RNNParams | None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._override_cell_params = params is not None
        self._cells: list[BaseRNNCell] = []

    def _take(self, cell: BaseRNNCell) -> None:
        check_kind(type(self).__name__, "cell", cell, BaseRNNCell, "a cell")
        self._cells.append(cell)
        if self._override_cell_params:
            if not cell._own_params:
                raise GnomonError(
                    f"{type(self).__name__}: params are given to this cell and to the cell "
                    f"{cell._prefix!r} in it: give them to one"
                )
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)

    def reset(self) -> None:
        super().reset()
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Any = sym.zeros, **kwargs: Any) -> list[Symbol]:
        self._refuse_modified("begin_state")
        return [state for cell in self._cells for state in cell.begin_state(func, **kwargs)]

    def unpack_weights(self, args: Mapping[str, Any]) -> Arrays:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return dict(args)

    def pack_weights(self, args: Mapping[str, Any]) -> Arrays:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return dict(args)

    def _dealt(self, states: Sequence[Any]) -> Iterator[tuple[BaseRNNCell, Sequence[Any]]]:
        """Each cell with its own of `states`."""
        begin = 0
        for cell in self._cells:
            count = len(cell.state_info)
            yield cell, states[begin : begin + count]
            begin += count


class SequentialRNNCell(CompoundCell):
    """Cells one after the other, each on the output of the one before.

    >>> from gnomon.rnn.cell import GRUCell, LSTMCell
    >>> stack = SequentialRNNCell()
    >>> stack.add(LSTMCell(8, prefix="l0_"))
    >>> stack.add(GRUCell(5, prefix="l1_"))
    >>> outputs, _ = stack.unroll(2, sym.Variable("x"), merge_outputs=True)
    >>> outputs.infer_shape(x=(4, 2, 3))[1], stack.state_shape
    ([(4, 2, 5)], [(0, 8), (0, 8), (0, 5)])
    """

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__("", params)

    def add(self, cell: BaseRNNCell) -> None:
        """Put `cell` behind the others."""
        self._take(cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        after: list[Symbol] = []
        for cell, mine in self._dealt(states):
            inputs, new = cell(inputs, mine)
            after += new
        return inputs, after

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        states = self.begin_state() if begin_state is None else begin_state
        after: list[Any] = []
        for cell, mine in self._dealt(states):
            merge = merge_outputs if cell is self._cells[-1] else None
            inputs, new = cell.unroll(length, inputs, mine, layout, merge)
            after += new
        return inputs, after


class BidirectionalCell(CompoundCell):
    """Two cells over the same steps, the second from the last to the first, side by side.

    It cannot be stepped, only unrolled; its final states are two lists.

    Args:
        l_cell, r_cell: the cells of the two directions.
        params: as for every cell.
        output_prefix: begins the names of the outputs.
    """

    def __init__(
        self,
        l_cell: BaseRNNCell,
        r_cell: BaseRNNCell,
        params: RNNParams | None = None,
        output_prefix: str = "bi_",
    ) -> None:
        super().__init__("", params)
        self._output_prefix = output_prefix
        self._take(l_cell)
        self._take(r_cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        raise NotImplementedError("BidirectionalCell: cannot be stepped: call unroll")

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        inputs = as_steps(length, inputs, layout)
        states = self.begin_state() if begin_state is None else begin_state
        (l_cell, l_begin), (r_cell, r_begin) = self._dealt(states)
        ahead, l_states = l_cell.unroll(length, inputs, l_begin, layout, merge_outputs)
        back, r_states = r_cell.unroll(length, inputs[::-1], r_begin, layout, merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(ahead, Symbol) and isinstance(back, Symbol)
        return self._joined(length, ahead, back, layout, merge_outputs), [l_states, r_states]

    def _joined(self, length: int, ahead: Any, back: Any, layout: str, merge: bool) -> Any:
        """Both directions side by side, in the order of time."""
        if merge:
            back = sym.reverse(back, axis=time_axis(layout))
            return sym.Concat(ahead, back, dim=2, name=f"{self._output_prefix}out")
        pairs = zip(
            as_steps(length, ahead, layout), as_steps(length, back, layout)[::-1], strict=True
        )
        return [
            sym.Concat(a, b, dim=1, name=f"{self._output_prefix}t{t}")
            for t, (a, b) in enumerate(pairs)
        ]

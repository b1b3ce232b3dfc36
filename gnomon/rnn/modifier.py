"""Cells that change what another cell gives: dropout, zoneout, residual connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnomon import symbol as sym
from gnomon.base import ParamError, check_kind, complaint
from gnomon.rnn.base import Arrays, BaseRNNCell, RNNParams, as_steps, formatted, merged
from gnomon.rnn.compound import BidirectionalCell, SequentialRNNCell
from gnomon.symbol import Symbol

Step = tuple[Symbol, list[Symbol]]


class DropoutCell(BaseRNNCell):
    """Dropout on the input, as a cell without states.

    Args:
        dropout: the share of the input that is dropped in training.
        prefix, params: as for every cell.
    """

    def __init__(
        self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None
    ) -> None:
        super().__init__(prefix, params)
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return []

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        output = sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs
        return output, list(states)

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        inputs = formatted(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super()._unrolled(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """Base of cells that wrap another cell: states, parameters and weights are that cell's."""

    def __init__(self, base_cell: BaseRNNCell) -> None:
        check_kind(type(self).__name__, "base_cell", base_cell, BaseRNNCell, "a cell")
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return self.base_cell.state_info

    def reset(self) -> None:
        super().reset()
        if hasattr(self, "base_cell"):
            self.base_cell.reset()

    def begin_state(self, init_sym: Any = sym.zeros, **kwargs: Any) -> list[Symbol]:
        self._refuse_modified("begin_state")
        return self._lent(self.base_cell.begin_state, init_sym, **kwargs)

    def _lent(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        """A method of the base cell, which acts as if nothing wrapped it meanwhile."""
        self.base_cell._modified = False
        try:
            return method(*args, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, Any]) -> Arrays:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, Any]) -> Arrays:
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Zoneout: in training, parts of the outputs and states stay as they were a step before.

    Args:
        base_cell: the cell, which steps.
        zoneout_outputs, zoneout_states: the share that stays.
    """

    def __init__(
        self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ) -> None:
        _check_steps(base_cell)
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states

    def reset(self) -> None:
        super().reset()
        self.prev_output: Symbol | None = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        output, after = self.base_cell(inputs, states)
        if self.zoneout_outputs:
            before = sym.zeros((0, 0)) if self.prev_output is None else self.prev_output
            output = _mixed(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            pairs = zip(after, states, strict=True)
            after = [_mixed(self.zoneout_states, new, old) for new, old in pairs]
        self.prev_output = output
        return output, after


def _check_steps(cell: BaseRNNCell) -> None:
    """Raise unless `cell` can be stepped."""
    cells = cell._cells if isinstance(cell, SequentialRNNCell) else [cell]
    for each in cells:
        if isinstance(each, BidirectionalCell) or hasattr(each, "unfuse"):
            expected = "a cell that steps (unfuse() a fused one; wrap each of two directions)"
            got = type(each).__name__
            raise ParamError(complaint("ZoneoutCell", "base_cell", expected, got))


def _mixed(share: float, new: Symbol, old: Symbol) -> Symbol:
    """`new`, but in training `old` in a `share` of the places."""
    return sym.where(sym.Dropout(sym.ones_like(new), p=share), new, old)


class ResidualCell(ModifierCell):
    """The output of a cell plus its input.

    Args:
        base_cell: the cell, whose output has the shape of its input.
    """

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> Step:
        output, after = self.base_cell(inputs, states)
        return _plus(output, inputs), after

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        given = (length, inputs, begin_state, layout, merge_outputs)
        outputs, states = self._lent(self.base_cell.unroll, *given)
        if isinstance(outputs, Symbol):
            return _plus(outputs, merged(inputs, layout)), states
        pairs = zip(outputs, as_steps(length, inputs, layout), strict=True)
        return [_plus(output, each) for output, each in pairs], states


def _plus(output: Symbol, inputs: Symbol) -> Symbol:
    return sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")

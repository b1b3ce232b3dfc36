"""Cells that change what another cell gives: dropout, zoneout, residual connections."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon import ndarray as nd
from gnomon.base import GnomonError, check_kind, complaint
from gnomon.gluon.rnn.base import How, HybridRecurrentCell, RecurrentCell, Unrolled, check_single
from gnomon.gluon.rnn.compound import BidirectionalCell
from gnomon.gluon.rnn.sequence import as_steps, formatted, functions, masked, merged
from gnomon.ops.fields import Field


class DropoutCell(HybridRecurrentCell):
    """Dropout on the input, as a cell without states.

    Args:
        rate: the share of the input that is dropped in training.
        axes: axes along which all elements share one fate.
        prefix, params: as for every block.
    """

    _fields: ClassVar = {"axes": Field("Dropout.axes", optional=True)}

    def __init__(
        self, rate: float, axes: Any = (), prefix: str | None = None, params: Any = None
    ) -> None:
        super().__init__(prefix, params)
        self._rate, self._axes = rate, axes

    def _alias(self) -> str:
        return "dropout"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """None: []."""
        return []

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        if self._rate > 0:
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        layout, merge_outputs, _ = how  # steps behind a sequence's end are dropped as all others
        inputs = formatted(length, inputs, layout, merge_outputs)
        if not isinstance(inputs, (list, tuple)):
            return self(inputs, [])[0], []
        return super()._unrolled(length, inputs, [], (layout, merge_outputs, None))


class ModifierCell(HybridRecurrentCell):
    """Base of cells that wrap another cell: states and parameters are that cell's."""

    def __init__(self, base_cell: Any) -> None:
        check_kind(type(self).__name__, "base_cell", base_cell, RecurrentCell, "a cell")
        if base_cell._modified:
            expected = "a cell that no other modifier wraps"
            where = type(self).__name__
            raise GnomonError(complaint(where, "base_cell", expected, repr(base_cell)))
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell!r})"

    @property
    def params(self) -> Any:
        """The parameters of the cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The states of the cell."""
        return self.base_cell.state_info(batch_size)

    def begin_state(  # type: ignore[override]
        self, func: Any = nd.zeros, **kwargs: Any
    ) -> list[Any]:
        """The states of the cell before the first step; `batch_size` goes by its name."""
        self._refuse_modified()
        return self._lent(self.base_cell.begin_state, func=func, **kwargs)

    def _lent(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        """A method of the base cell, which acts as if nothing wrapped it meanwhile."""
        self.base_cell._modified = False
        try:
            return method(*args, **kwargs)
        finally:
            self.base_cell._modified = True


class ZoneoutCell(ModifierCell):
    """Zoneout: in training, parts of the outputs and states stay as they were a step before.

    Args:
        base_cell: the cell, which steps.
        zoneout_outputs, zoneout_states: the share that stays.
    """

    _fields: ClassVar = {
        "zoneout_outputs": Field("Dropout.p", optional=True),
        "zoneout_states": Field("Dropout.p", optional=True),
    }

    def __init__(
        self, base_cell: Any, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ) -> None:
        check_single("ZoneoutCell", base_cell, (BidirectionalCell,))
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def _alias(self) -> str:
        return "zoneout"

    def __repr__(self) -> str:
        shares = f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}"
        return f"{type(self).__name__}({shares}, {self.base_cell!r})"

    def reset(self) -> None:
        super().reset()
        self._prev_output: Any = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, after = self.base_cell(inputs, states)
        if self.zoneout_outputs:
            before = F.zeros_like(output) if self._prev_output is None else self._prev_output
            output = _mixed(F, self.zoneout_outputs, output, before)
        if self.zoneout_states:
            pairs = zip(after, states, strict=True)
            after = [_mixed(F, self.zoneout_states, new, old) for new, old in pairs]
        self._prev_output = output
        return output, after


def _mixed(F: Any, share: float, new: Any, old: Any) -> Any:
    """`new`, but in training `old` in a `share` of the places."""
    return F.where(F.Dropout(F.ones_like(new), p=share), new, old)


class ResidualCell(ModifierCell):
    """The output of a cell plus its input.

    Args:
        base_cell: the cell, whose output has the shape of its input.
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, after = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), after

    def _unrolled(self, length: int, inputs: Any, begin_state: Any, how: How) -> Unrolled:
        layout, _, valid_length = how
        outputs, states = self._lent(self.base_cell.unroll, length, inputs, begin_state, *how)
        F = functions(outputs)
        if isinstance(outputs, (list, tuple)):
            if valid_length is not None:
                inputs = masked(inputs, layout, valid_length)
            pairs = zip(outputs, as_steps(length, inputs, layout), strict=True)
            return [F.elemwise_add(a, b) for a, b in pairs], states
        whole = merged(inputs, layout)
        whole = whole if valid_length is None else masked(whole, layout, valid_length)
        return F.elemwise_add(outputs, whole), states

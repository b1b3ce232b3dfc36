"""What all cells of symbols share: parameters by name, states, unrolling over time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import GnomonError, ParamError, check_kind, complaint
from gnomon.ground.arguments import CheckedArguments
from gnomon.ops.param import checked_count
from gnomon.symbol import Symbol

Arrays = dict[str, Any]


class RNNParams:
    """Variables by name, so that cells which share them use the same ones.

    >>> params = RNNParams("lstm_")
    >>> params.get("i2h_weight").name, params.get("i2h_weight") is params.get("i2h_weight")
    ('lstm_i2h_weight', True)
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable called prefix + `name`; `kwargs` make it where it is new."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = sym.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell(CheckedArguments):
    """Base of cells: called with an input and states it gives an output and new states.

    Args:
        prefix: begins the names of all that the cell makes.
        params: an RNNParams that is shared with other cells; a new one by default.
    """

    _gate_names: Sequence[str] = ()
    _num_hidden: int

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        kinds = RNNParams, NoneType
        check_kind(type(self).__name__, "params", params, kinds, "RNNParams or None")
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Begin to count steps anew, before the cell is used for another graph."""
        self._init_counter = -1
        self._counter = -1

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """The output of one step, and the states after it."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__(inputs, states)")

    @property
    def params(self) -> RNNParams:
        """The parameters; asking for them shares them."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state a dict with its `shape` (0 for the batch) and `__layout__`."""
        raise NotImplementedError(f"{type(self).__name__} must define state_info")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shape of each state."""
        return [info["shape"] for info in self.state_info]

    def begin_state(self, func: Any = sym.zeros, **kwargs: Any) -> list[Symbol]:
        """The states before the first step: `func(name=..., shape=..., **kwargs)` for each."""
        self._refuse_modified("begin_state")
        states = []
        for info in self.state_info:
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(name=name, **{**info, **kwargs}))
        return states

    def _refuse_modified(self, what: str) -> None:
        if self._modified:
            owner = type(self).__name__
            raise GnomonError(f"{owner}.{what}: a modifier cell wraps this cell: ask that one")

    def _next_name(self) -> str:
        """The name of the next step."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    # --- weights ---

    def unpack_weights(self, args: Mapping[str, Any]) -> Arrays:
        """`args` with the weights and biases of all gates apart, each a copy."""
        args = dict(args)
        for title in self._packed_names():
            if self._gate_names:
                whole = args.pop(title.format(""))
                for k, gate in enumerate(self._gate_names):
                    part = whole[k * self._num_hidden : (k + 1) * self._num_hidden]
                    args[title.format(gate)] = part.copy()
        return args

    def pack_weights(self, args: Mapping[str, Any]) -> Arrays:
        """`args` with the weights and biases of all gates joined: undoes `unpack_weights`."""
        args = dict(args)
        for title in self._packed_names():
            if self._gate_names:
                parts = [args.pop(title.format(gate)) for gate in self._gate_names]
                args[title.format("")] = nd.concat(*parts, dim=0)
        return args

    def _packed_names(self) -> list[str]:
        """The names of weights and biases, with a place for the gate's."""
        kinds = [(group, kind) for group in ("i2h", "h2h") for kind in ("weight", "bias")]
        return [f"{self._prefix}{group}{{}}_{kind}" for group, kind in kinds]

    # --- unrolling ---

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """Outputs and final states of `length` steps.

        Args:
            inputs: one symbol with the axes of `layout`, or a list with a symbol a step.
            begin_state: the first states; zeros by default.
            merge_outputs: whether the outputs are one symbol or a list; as they come by default.
        """
        self.reset()
        return self._unrolled(length, inputs, begin_state, layout, merge_outputs)

    def _unrolled(
        self, length: int, inputs: Any, begin_state: Any, layout: str, merge_outputs: bool | None
    ) -> tuple[Any, list[Any]]:
        """What `unroll` does, behind the reset."""
        inputs = as_steps(length, inputs, layout)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for each in inputs:
            output, states = self(each, states)
            outputs.append(output)
        return formatted(length, outputs, layout, merge_outputs), states

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        if isinstance(activation, str):
            return sym.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)


def as_steps(length: int, inputs: Any, layout: str) -> list[Symbol]:
    """`inputs` as a list with a symbol for each of `length` steps."""
    axis = time_axis(layout)
    if not isinstance(inputs, Symbol):
        if inputs is None or len(inputs) != length:
            got = None if inputs is None else f"{len(inputs)} symbols"
            expected = f"a symbol, or a list of {length}, one a step"
            raise ParamError(complaint("unroll", "inputs", expected, got))
        return list(inputs)
    if len(inputs.list_outputs()) != 1:
        got = f"a group of {len(inputs.list_outputs())}"
        raise ParamError(complaint("unroll", "inputs", "a symbol with one output, or a list", got))
    return list(sym.split(inputs, axis=axis, num_outputs=length, squeeze_axis=1))


def merged(inputs: Any, layout: str) -> Symbol:
    """`inputs`, a symbol or a list with one a step, as one symbol with the axes of `layout`."""
    if isinstance(inputs, Symbol):
        return inputs
    axis = time_axis(layout)
    return sym.concat(*[sym.expand_dims(each, axis=axis) for each in inputs], dim=axis)


def formatted(length: int, outputs: Any, layout: str, merge: bool | None) -> Any:
    """`outputs` as one symbol or as a list, as `merge` says; as they are where it is None."""
    if merge is None:
        return outputs
    return merged(outputs, layout) if merge else as_steps(length, outputs, layout)


def time_axis(layout: str) -> int:
    """Where time is in `layout`, which is NTC or TNC."""
    if layout not in ("NTC", "TNC"):
        raise ParamError(complaint("unroll", "layout", "'NTC' or 'TNC'", repr(layout)))
    return layout.find("T")


def unrolled_by_hand(
    cell: BaseRNNCell,
    length: int,
    inputs: Any = None,
    begin_state: Any = None,
    input_prefix: str = "",
    layout: str = "NTC",
) -> tuple[Any, list[Any]]:
    """`cell.unroll`, under the name of old: without `inputs` they are variables, one a step."""
    warnings.warn("rnn_unroll is deprecated: call cell.unroll", DeprecationWarning, stacklevel=2)
    if inputs is None:
        length = checked_count("rnn_unroll", "length", length)
        inputs = [sym.Variable(f"{input_prefix}t{t}_data") for t in range(length)]
    return cell.unroll(length, inputs, begin_state, layout)

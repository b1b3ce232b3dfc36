"""Layers of recurrent networks, all of a network in one operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.gluon.block import HybridBlock
from gnomon.gluon.parameter import Parameter
from gnomon.gluon.rnn.cells import GRUCell, LSTMCell, RNNCell
from gnomon.gluon.rnn.compound import BidirectionalCell, HybridSequentialRNNCell
from gnomon.gluon.rnn.modifier import DropoutCell
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field
from gnomon.ops.param import checked_count
from gnomon.symbol import Symbol

__all__ = ["GRU", "LSTM", "RNN"]

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class _RNNLayer(HybridBlock):
    """Base of the layers: called with a sequence it gives the outputs of all steps.

    Called with states too, `layer(inputs, states)`, it gives (outputs, final states). With
    `use_sequence_length`, `sequence_length` says how long each sequence is.

    Args:
        hidden_size: numbers of a state.
        num_layers: layers, each on the output of the one before.
        layout: axes of inputs and outputs, "TNC" or "NTC".
        dropout: share of the outputs between layers that is dropped in training.
        bidirectional: run each layer in both directions.
        input_size: numbers of an input; 0 leaves that to the first one.
        i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer: where the parameters begin.
        dtype: of the parameters.
        projection_size, h2r_weight_initializer: the size of projected states of an LSTM, and where
            their matrices begin.
    """

    _mode: str  # the kind of cell

    _fields: ClassVar = {
        "hidden_size": Whole(1),
        "dropout": Field("RNN.p"),
        "input_size": Whole(0),
    }

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
        *,
        use_sequence_length: bool = False,
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            where = type(self).__name__
            raise ParamError(complaint(where, "layout", "'TNC' or 'NTC'", repr(layout)))
        num_layers = checked_count(type(self).__name__, "num_layers", num_layers)
        self._hidden_size, self._num_layers = hidden_size, num_layers
        self._layout, self._dropout, self._dir = layout, dropout, 1 + bool(bidirectional)
        self._input_size, self._dtype = input_size, dtype
        self._use_sequence_length = use_sequence_length
        self._size = hidden_size  # of a state, and of the output in one direction
        self._more: dict[str, Any] = {}  # parameters of the operator
        self._inits = {
            "i2h_weight": i2h_weight_initializer,
            "h2h_weight": h2h_weight_initializer,
            "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer,
        }
        if projection_size is not None:
            if self._mode != "lstm":
                where = type(self).__name__
                expected = "None: only states of an LSTM are projected"
                raise ParamError(complaint(where, "projection_size", expected, projection_size))
            self._size = checked_count(type(self).__name__, "projection_size", projection_size)
            self._more["projection_size"] = self._size
            self._inits["h2r_weight"] = h2r_weight_initializer
        self._places = self._all_places()
        for number, place in enumerate(self._places):
            self._register(place, input_size if number < self._dir else self._size * self._dir)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_inits" in state:
            return
        projected, own = self._projection_size, self.__dict__  # a pickle of MXNet
        names = ["i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"]
        names += [] if projected is None else ["h2r_weight"]
        clips = [f"lstm_state_clip_{kind}" for kind in ("min", "max", "nan")]
        self._inits = {name: own[f"_{name}_initializer"] for name in names}
        self._more = {name: own[f"_{name}"] for name in clips if self._mode == "lstm"}
        self._more |= {} if projected is None else {"projection_size": projected}
        self._size = self._hidden_size if projected is None else projected
        self._places = self._all_places()

    def _all_places(self) -> list[str]:
        """What the names of the parameters of each layer, in each direction, begin with."""
        return [f"{side}{k}" for k in range(self._num_layers) for side in "lr"[: self._dir]]

    def _register(self, place: str, inputs: int) -> None:
        """Make the parameters of one layer in one direction."""
        rows = GATES[self._mode] * self._hidden_size
        shapes = {
            "i2h_weight": (rows, inputs),
            "h2h_weight": (rows, self._size),
            "h2r_weight": (self._size, self._hidden_size),
        }
        for name, init in self._inits.items():
            full = f"{place}_{name}"
            how = {"shape": shapes.get(name, (rows,)), "init": init, "dtype": self._dtype}
            setattr(self, full, self.params.get(full, allow_deferred_init=True, **how))

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters under the names of single cells, as MXNet's files have them."""
        start = f"{prefix}." if prefix else ""
        found = {}
        for name, param in self._reg_params.items():
            place, kind = name.split("_", 1)
            cell = f"{place[0]}_cell." if self._dir == 2 else ""
            found[f"{start}_unfused.{place[1:]}.{cell}{kind}"] = param
        return found

    def __repr__(self) -> str:
        inputs = self.l0_i2h_weight.shape[1]
        text = f"{inputs or None} -> {self._hidden_size}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout else ""
        text += ", bidirectional" if self._dir == 2 else ""
        return f"{type(self).__name__}({text})"

    # --- states ---

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """For each state its shape (layers * directions, batch, size), layout and dtype."""
        sizes = (self._size, self._hidden_size)[: 1 + (self._mode == "lstm")]
        shapes = ((self._num_layers * self._dir, batch_size, size) for size in sizes)
        return [{"shape": s, "__layout__": "LNC", "dtype": self._dtype} for s in shapes]

    def begin_state(self, batch_size: int = 0, func: Any = nd.zeros, **kwargs: Any) -> list[Any]:
        """The states before the first step: `func(name=..., shape=..., **kwargs)` for each."""
        return [
            func(name=f"{self.prefix}h0_{k}", **{**info, **kwargs})
            for k, info in enumerate(self.state_info(batch_size))
        ]

    def cast(self, dtype: Any) -> None:
        """Have parameters and states of another type."""
        super().cast(dtype)
        self._dtype = dtype

    # --- computing ---

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> Any:
        given = states is not None
        if not given:
            states = _Begun(self._begun(inputs))
        else:
            states = [states] if isinstance(states, (nd.NDArray, Symbol)) else list(states)
        self._check(inputs, states)
        if self._use_sequence_length != (sequence_length is not None):
            expected = "lengths, with use_sequence_length" if self._use_sequence_length else None
            where = f"{type(self).__name__} {self.name!r}"
            raise ParamError(complaint(where, "sequence_length", expected, sequence_length))
        more = () if sequence_length is None else (sequence_length,)
        found = super().__call__(inputs, states, *more)
        return tuple(found) if given else found

    def forward(self, x: Any, *args: Any) -> Any:
        """The outputs, and the states where some are given; hooks are told the same."""
        found = super().forward(x, *args)
        return found[0] if args and isinstance(args[0], _Begun) else found

    def _begun(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, Symbol):
            return self.begin_state(0, func=sym.zeros)
        rows = inputs.shape[self._layout.find("N")]
        return self.begin_state(rows, ctx=inputs.context, dtype=inputs.dtype)

    def _check(self, inputs: Any, states: Sequence[Any]) -> None:
        """Raise unless the inputs fit the parameters, and the states the inputs."""
        where = f"{type(self).__name__} {self.name!r}"
        if isinstance(inputs, Symbol):
            return
        if len(inputs.shape) != 3:
            expected = f"three axes, {self._layout}"
            raise ShapeError(complaint(where, "inputs", expected, f"shape {inputs.shape}"))
        features = self._reg_params["l0_i2h_weight"].shape[1]
        if features > 0 and inputs.shape[2] != features:
            expected = f"{features} features, the last axis"
            raise ShapeError(complaint(where, "inputs", expected, f"shape {inputs.shape}"))
        wanted = [info["shape"] for info in self.state_info(inputs.shape[self._layout.find("N")])]
        got = [tuple(state.shape) for state in states]
        if got != wanted:
            raise ShapeError(complaint(where, "states", f"shapes {wanted}", f"shapes {got}"))

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, sequence_length: Any = None, **params: Any
    ) -> Any:
        swapped = self._layout == "NTC"
        if swapped:
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        matrices = [name for name in self._inits if name.endswith("weight")]
        kinds = matrices, ("i2h_bias", "h2h_bias")
        parts = [params[f"{p}_{name}"] for k in kinds for p in self._places for name in k]
        flat = [F.reshape(part, shape=(-1,)) for part in parts]
        more = () if sequence_length is None else (sequence_length,)
        found = F.RNN(
            inputs,
            F._internal._rnn_param_concat(*flat, dim=0),
            *states,
            *more,
            use_sequence_length=sequence_length is not None,
            state_size=self._hidden_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            **self._more,
        )
        outputs, *after = found
        if swapped:
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return outputs, after

    # --- single cells ---

    def _unfuse(self) -> HybridSequentialRNNCell:
        """The same network of single cells that share the parameters.

        Raises:
            GnomonError: states are projected.
        """
        if "projection_size" in self._more:
            expected = "None: there is no such cell with these parameters"
            got = self._size
            raise GnomonError(complaint(type(self).__name__, "projection_size", expected, got))
        stack = HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            for level in range(self._num_layers):
                names = self._places[level * self._dir : (level + 1) * self._dir]
                size = self._input_size if level == 0 else self._hidden_size * self._dir
                cells = [self._single(f"{name}_", size) for name in names]
                stack.add(BidirectionalCell(*cells) if self._dir == 2 else cells[0])
                if self._dropout and level + 1 < self._num_layers:
                    stack.add(DropoutCell(self._dropout))
        return stack

    def _single(self, prefix: str, input_size: int) -> Any:
        """The cell of one layer in one direction."""
        how: dict[str, Any] = {f"{name}_initializer": init for name, init in self._inits.items()}
        how.update(input_size=input_size, prefix=prefix)
        if self._mode == "lstm":
            return LSTMCell(self._hidden_size, **how)
        if self._mode == "gru":
            return GRUCell(self._hidden_size, **how)
        return RNNCell(self._hidden_size, self._mode[4:], **how)


class _Begun(list[Any]):
    """States that the layer begins with by itself, so that it gives none."""


class RNN(_RNNLayer):
    """Layers of plain recurrent cells.

    >>> import gnomon as mx
    >>> layer = RNN(5, num_layers=2, activation="tanh")
    >>> layer.initialize()
    >>> x = mx.nd.ones((3, 2, 4))
    >>> outputs, states = layer(x, layer.begin_state(batch_size=2))
    >>> layer(x).shape, outputs.shape, states[0].shape
    ((3, 2, 5), (3, 2, 5), (2, 2, 5))

    Args:
        activation: "relu" or "tanh".
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        if activation not in ("relu", "tanh"):
            got = shown(activation)
            raise ParamError(complaint("RNN", "activation", "'relu' or 'tanh'", got))
        self._mode = f"rnn_{activation}"
        how = layout, dropout, bidirectional, input_size
        weights = i2h_weight_initializer, h2h_weight_initializer
        biases = i2h_bias_initializer, h2h_bias_initializer
        super().__init__(hidden_size, num_layers, *how, *weights, *biases, dtype, **kwargs)


class LSTM(_RNNLayer):
    """Layers of long short-term memory.

    Args:
        state_clip_min, state_clip_max, state_clip_nan: limits of the cells' states.
        projection_size, h2r_weight_initializer: the size of projected outputs and states, and where
            their matrices begin.

    >>> import gnomon as mx
    >>> layer = LSTM(5, projection_size=3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((3, 2, 4))).shape, [s.shape for s in layer.begin_state(2)]
    ((3, 2, 3), [(1, 2, 3), (1, 2, 5)])
    """

    _mode = "lstm"

    _fields: ClassVar = {
        "state_clip_min": Field("RNN.lstm_state_clip_min"),
        "state_clip_max": Field("RNN.lstm_state_clip_max"),
        "state_clip_nan": Field("RNN.lstm_state_clip_nan"),
    }

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        how = layout, dropout, bidirectional, input_size
        weights = i2h_weight_initializer, h2h_weight_initializer
        biases = i2h_bias_initializer, h2h_bias_initializer
        kwargs["projection_size"] = projection_size
        kwargs["h2r_weight_initializer"] = h2r_weight_initializer
        super().__init__(hidden_size, num_layers, *how, *weights, *biases, dtype, **kwargs)
        self._more.update(
            lstm_state_clip_min=state_clip_min,
            lstm_state_clip_max=state_clip_max,
            lstm_state_clip_nan=state_clip_nan,
        )


class GRU(_RNNLayer):
    """Layers of gated recurrent units."""

    _mode = "gru"

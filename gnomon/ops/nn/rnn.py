"""RNN: several recurrent layers, in one or both directions, with all weights in one vector.

The vector holds the weights of every layer and direction (from the input, from the state, of the
projection), then their biases in the same order. The layers' own results are hidden outputs, which
the gradient reads; so are the masks of dropout between the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.dtype import DType
from gnomon.expr import call, ext, fn
from gnomon.expr.call.cell import CELLS
from gnomon.expr.call.rnn import Layer, slot
from gnomon.expr.node import Expr, cast
from gnomon.ground.record import record
from gnomon.ops.case import case
from gnomon.ops.create import full
from gnomon.ops.infer import Free, Shape, Shapes, Types, times
from gnomon.ops.op import Draws, Op, op
from gnomon.ops.param import count, param

BIASES = ("b_in", "b_hid")
SIZES = 4 * 3 * (2 + 2 + 2) + 2 * 3  # numbers of a projected layer of the cases


@record(slots=False)
class Place:
    """A layer in one direction: its number among all, and where its weights begin."""

    layer: Layer
    number: int
    starts: dict[str, int]

    def shape(self, name: str) -> Shape:
        """The shape of one of its weights."""
        return self.layer.weights.get(name, (self.layer.width,))

    @property
    def groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of its matrices and of its biases."""
        return tuple(self.layer.weights), BIASES

    def weight(self, parameters: Expr, name: str) -> Expr:
        """One of its weights in the vector of all."""
        start, shape = self.starts[name], self.shape(name)
        return ext.reshape(ext.slice_(parameters, (start,), (start + times(shape),)), shape)


@op("RNN", inputs=("data", "parameters", "state", "state_cell", "sequence_length"))
class RNN(Op):
    """Recurrent layers over `data` (steps, batch, channels).

    `state` (and for LSTM `state_cell`) is (layers * directions, batch, state_size). With
    `use_sequence_length` what lies behind the end of a sequence is 0 in the output, and the final
    states are those at its end. With `projection_size` (LSTM) outputs and `state` have that size.
    """

    state_size: int = param(low=1, doc="Numbers of a state.")
    num_layers: int = count(doc="Layers, each on the output of the one before.")
    bidirectional: bool = param(False, doc="Run each layer in both directions.")
    mode: str = param(choices=tuple(CELLS), doc="The kind of cell.")
    p: float = param(0.0, low=0, high=1, doc="Dropout between the layers, in training.")
    state_outputs: bool = param(False, doc="Show the final states.")
    projection_size: int | None = param(None, low=1, doc="Size of a projected LSTM state.")
    lstm_state_clip_min: float | None = param(None, doc="Least value of an LSTM cell's state.")
    lstm_state_clip_max: float | None = param(None, doc="Greatest value of such a state.")
    lstm_state_clip_nan: bool = param(False, doc="Put a state of NaN at the least value.")
    use_sequence_length: bool = param(False, doc="Take `sequence_length`, one number a sequence.")

    cases = (
        case((3, 2, 2), (2 * SIZES,), (2, 2, 2), (2, 2, 3), state_size=3, mode="lstm",
             projection_size=2, num_layers=2, state_outputs=True, low=-1, high=1),
        case((3, 2, 2), (2 * SIZES,), (2, 2, 2), (2, 2, 3), [2.0, 3.0], state_size=3, mode="lstm",
             projection_size=2, num_layers=1, bidirectional=True, use_sequence_length=True,
             low=-1, high=1, differentiable=(0, 1, 2, 3)),
        case((3, 1, 2), (SIZES,), (1, 1, 2), (1, 1, 3), state_size=3, mode="lstm", num_layers=1,
             projection_size=2, lstm_state_clip_min=-0.2, lstm_state_clip_max=0.2,
             low=-1, high=1),
    )  # fmt: skip

    def check(self) -> None:
        if self.projection_size is not None and not self.has_cell:
            got = self.projection_size
            raise ParamError(complaint("RNN", "projection_size", "None, but for lstm", got))
        if (self.lstm_state_clip_min is None) != (self.lstm_state_clip_max is None):
            raise ParamError(
                complaint("RNN", "lstm_state_clip_min", "both limits or none", self._clip)
            )

    @property
    def _clip(self) -> tuple[float, float, bool] | None:
        low, high = self.lstm_state_clip_min, self.lstm_state_clip_max
        if low is None or high is None or not self.has_cell:
            return None
        return low, high, self.lstm_state_clip_nan

    @property
    def has_cell(self) -> bool:
        """Whether there is a state beside the output."""
        return CELLS[self.mode].has_cell

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1

    def arguments(self) -> tuple[str, ...]:
        names = ["data", "parameters", "state"]
        names += ["state_cell"] if self.has_cell else []
        return (*names, *(["sequence_length"] if self.use_sequence_length else []))

    def outputs(self) -> tuple[str, ...]:
        count = self.num_layers * self.directions
        states = ("state_output", "statecell_output")[: 1 + self.has_cell]
        kept = [f"kept{k}" for k in range(count)]
        masks = [f"mask{k}" for k in range(1, self.num_layers)] if self.p else []
        return ("output", *states, *kept, *masks)

    @property
    def num_visible_outputs(self) -> int:
        return 1 + self.state_outputs * (1 + self.has_cell)

    @property
    def width(self) -> int:
        """Numbers of an output of a layer in one direction."""
        return self.projection_size or self.state_size

    def places(self, steps: int, batch: int, channels: int) -> list[Place]:
        """The layers and directions, in order."""
        count, found = self.directions, []
        for k in range(self.num_layers * count):
            inputs = channels if k < count else self.width * count
            sizes = steps, batch, inputs, self.state_size
            reverse, projection = k % count == 1, self.projection_size
            layer = Layer(self.mode, reverse, *sizes, self._clip, projection=projection)
            found.append(Place(layer, k, {}))
        start = 0
        for place, name in _in_vector(found):
            place.starts[name] = start
            start += times(place.shape(name))
        return found

    def shapes(self, s: Shapes) -> None:
        steps, batch, channels = s.rank("data", 3)
        states = (self.num_layers * self.directions, batch)
        s["state"] = s["state_output"] = (*states, self.width)
        if self.has_cell:
            s["state_cell"] = s["statecell_output"] = (*states, self.state_size)
        if self.use_sequence_length:
            s["sequence_length"] = (batch,)
        width = self.directions * self.width
        s["output"] = (steps, batch, width)
        if min(steps, batch, channels) < 0:
            return
        places = self.places(steps, batch, channels)
        s["parameters"] = (sum(times(p.shape(name)) for p, name in _in_vector(places)),)
        for place in places:
            s[f"kept{place.number}"] = (place.layer.areas().size,)
        for k in range(1, self.num_layers if self.p else 1):
            s[f"mask{k}"] = (steps, batch, width)

    def types(self, t: Types) -> None:
        t.same(*(name for name in t.names if name != "sequence_length"))
        if self.use_sequence_length and t["sequence_length"] is None:
            t["sequence_length"] = t.need("data")

    def free(self, data: Shape, *others: Shape) -> Free:
        said, (steps, batch, _) = [data[0] + 1], data  # one state more than steps
        for y in dict.fromkeys(p.layer for p in self.places(*data)):
            for areas in (y.areas(), replace(y, wanted=False).areas(), y.gradients()):
                said += [*areas.starts.values(), areas.size]
            said.append(y.areas().starts.get("c", 0) + steps * batch * self.state_size)  # the last
        return Free(data[:2], data[2:], tuple(said))

    def forward(
        self,
        *inputs: Expr,
        train: bool = False,
        random: Draws | None = None,
        used: Sequence[bool] | None = None,
    ) -> tuple[Expr, ...]:
        given = dict(zip(self.arguments(), inputs, strict=True))
        y = given["data"]
        places = self._wanted(self.places(*y.shape), used)
        kept: list[Expr] = []
        masks: list[Expr] = []
        for level in range(self.num_layers):
            if level and self.p:
                masks.append(self._mask(y, train, random))
                y = y * masks[-1] if train else y
            run = [self._run(p, given, y) for p in self._level(places, level)]
            kept += run
            y = self._joined(self._level(places, level), run, given)
        states = [self._final(places, kept, name) for name in ("h", "c")[: 1 + self.has_cell]]
        return (y, *states, *map(self._shown, places, kept), *masks)

    def _shown(self, place: Place, kept: Expr) -> Expr:
        """What a layer has kept; zeros in place of what is not read."""
        if place.layer.wanted:
            return kept
        return full((replace(place.layer, wanted=True).areas().size,), 0, kept.dtype)

    def _wanted(self, places: list[Place], used: Sequence[bool] | None) -> list[Place]:
        """The layers as they are run: those whose gates are not read do not keep them."""
        if used is None:
            return places
        read = dict(zip(self.outputs(), used, strict=True))
        return [replace(p, layer=replace(p.layer, wanted=read[f"kept{p.number}"])) for p in places]

    def _level(self, places: list[Place], level: int) -> list[Place]:
        return places[level * self.directions : (level + 1) * self.directions]

    def _mask(self, y: Expr, train: bool, random: Draws | None) -> Expr:
        if not train:
            return full(y.shape, 1, y.dtype)
        assert random is not None, "training is given a source of numbers"
        scale = 1 / (1 - self.p) if self.p < 1 else 0.0
        whole: Expr = fn.lt(random.uniform(y.shape, y.dtype), 1 - self.p) * scale
        return whole

    def _run(self, place: Place, given: dict[str, Expr], y: Expr) -> Expr:
        weights = self._weights(place, given)
        w_in, w_hid, b_in, b_hid = (weights[name] for name in ("w_in", "w_hid", *BIASES))
        h = slot(given["state"], place.number)
        c = slot(given["state_cell"], place.number) if self.has_cell else None
        length = self._length(given, y.dtype)
        w_out = weights.get("w_out")
        return call.Recurrence(y, w_in, w_hid, b_in, b_hid, h, c, length, place.layer, w_out)

    def _weights(self, place: Place, given: dict[str, Expr]) -> dict[str, Expr]:
        """The matrices and biases of a layer, by name."""
        return {n: place.weight(given["parameters"], n) for names in place.groups for n in names}

    def _length(self, given: dict[str, Expr], dtype: DType) -> Expr | None:
        found = given.get("sequence_length")
        return None if found is None else cast(found, dtype)

    def _joined(self, places: list[Place], kept: list[Expr], given: dict[str, Expr]) -> Expr:
        """The output of a layer: both directions side by side, 0 behind a sequence's end."""
        parts = [_outputs(p.layer, k) for p, k in zip(places, kept, strict=True)]
        y = parts[0] if len(parts) == 1 else ext.concat(parts, 2)
        on = self._inside(y, given)
        return y if on is None else fn.where(on, y, 0.0)

    def _inside(self, y: Expr, given: dict[str, Expr]) -> Expr | None:
        """1 where a sequence is not over yet."""
        length = self._length(given, y.dtype)
        if length is None:
            return None
        time = ext.iota(y.shape, 0, y.dtype)
        whole: Expr = fn.gt(ext.broadcast_axis(length, y.shape, 1), time)
        return whole

    def _final(self, places: list[Place], kept: list[Expr], name: str) -> Expr:
        """The final states of all layers and directions."""
        parts = []
        for place, found in zip(places, kept, strict=True):
            layer = place.layer
            states = layer.areas().of(found, name)
            parts.append(ext.slice_(states, (layer.last,), (layer.last + 1,)))
        return parts[0] if len(parts) == 1 else ext.concat(parts, 0)

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, *, train: bool = True
    ) -> tuple[Expr | None, ...]:
        given = dict(zip(self.arguments(), inputs, strict=True))
        made = dict(zip(self.outputs(), outputs, strict=True))
        places = self.places(*given["data"].shape)
        ends = dict(zip(("output", "state_output", "statecell_output"), out_grads, strict=False))
        grads: dict[int, Expr] = {}
        g: Any = ends["output"]
        for level in reversed(range(self.num_layers)):
            mine = self._level(places, level)
            on = self._inside(g, given)
            g = g if on is None else fn.where(on, g, 0.0)
            for d, place in enumerate(mine):
                grads[place.number] = self._back(place, d, g, level, given, made, ends)
            g = _sum([p.layer.gradients().of(grads[p.number], "data") for p in mine])
            if level and self.p:
                g = g * made[f"mask{level}"]
        return (g, *self._collected(places, grads), *([None] if self.use_sequence_length else []))

    def _back(
        self,
        place: Place,
        direction: int,
        g: Expr,
        level: int,
        given: dict[str, Expr],
        made: dict[str, Expr],
        ends: dict[str, Any],
    ) -> Expr:
        """The gradients of one layer in one direction."""
        size, weights = self.width, self._weights(place, given)
        below = given["data"]
        if level:
            mine = range((level - 1) * self.directions, level * self.directions)
            places = [self.places(*below.shape)[k] for k in mine]
            below = self._joined(places, [made[f"kept{k}"] for k in mine], given)
            below = below * made[f"mask{level}"] if self.p else below
        lead = (None,) * 2
        dy = ext.slice_(g, (*lead, direction * size), (*lead, (direction + 1) * size))
        h, c = (
            None if ends.get(name) is None else slot(ends[name], place.number)
            for name in ("state_output", "statecell_output")
        )
        return call.RecurrenceGradient(
            below,
            weights["w_in"],
            weights["w_hid"],
            made[f"kept{place.number}"],
            dy,
            h,
            c,
            self._length(given, below.dtype),
            place.layer,
            weights.get("w_out"),
        )

    def _collected(self, places: list[Place], grads: dict[int, Expr]) -> Iterator[Expr]:
        """The gradients of `parameters`, `state` and `state_cell`, in the order of their parts."""
        found = [p.layer.gradients().of(grads[p.number], name) for p, name in _in_vector(places)]
        yield ext.concat([ext.reshape(e, (times(e.shape),)) for e in found], 0)
        for name in ("h0", "c0")[: 1 + self.has_cell]:
            found = [p.layer.gradients().of(grads[p.number], name) for p in places]
            rows = [ext.reshape(e, (1, *e.shape)) for e in found]
            yield rows[0] if len(rows) == 1 else ext.concat(rows, 0)


def _in_vector(places: list[Place]) -> Iterator[tuple[Place, str]]:
    """The weights of layers by name, as they follow each other: all matrices, then all biases."""
    for group in range(2):
        for place in places:
            for name in place.groups[group]:
                yield place, name


def _outputs(layer: Layer, kept: Expr) -> Expr:
    """The states after the steps, by their time."""
    begin, end = layer.slots(before=False)
    return ext.slice_(layer.areas().of(kept, "h"), (begin,), (end,))


def _sum(terms: list[Expr]) -> Expr:
    whole = terms[0]
    for term in terms[1:]:
        whole = whole + term
    return whole

"""RNN with projected states: LSTMs whose output is a product of each step's with a matrix.

Steps are taken one by one on NumPy arrays; the gradient takes them again. The vector of parameters
holds the matrices of every layer and direction (from the input, from the state, the projection),
then their biases. Formulas: Sak, Senior and Beaufays, arXiv:1402.1128.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, times
from gnomon.ops.nn.rnn import RNN
from gnomon.ops.op import describe

STATES = ("state_output", "statecell_output")
SIZES = 4 * 3 * (2 + 2 + 2) + 2 * 3  # of a layer of the cases


@dataclass(frozen=True)
class Weights:
    """The weights of a layer in one direction, or their gradients; both biases are one here."""

    into: Array
    again: Array
    out: Array
    bias: Array


@dataclass(frozen=True)
class Step:
    """What the gradient of a step reads: states before, gates, the cell's state, its output."""

    time: int
    h: Array
    c: Array
    gates: Sequence[Array]
    cell: Array
    raw: Array


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)


class ProjectedRNN(HostOp, RNN):
    """`RNN` with `projection_size`."""

    name = "RNN"
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

    @property
    def is_random(self) -> bool:
        return self.p > 0

    @property
    def width(self) -> int:
        """The size of a projected state."""
        assert self.projection_size is not None, "RNN.parse asks for that"
        return self.projection_size

    def outputs(self) -> tuple[str, ...]:
        masks = [f"mask{k}" for k in range(1, self.num_layers)] if self.p else []
        return ("output", *STATES, *masks)

    def shapes(self, s: Shapes) -> None:
        steps, batch, channels = s.rank("data", 3)
        count, size = self.num_layers * self.directions, self.width
        s["state"] = s["state_output"] = (count, batch, size)
        s["state_cell"] = s["statecell_output"] = (count, batch, self.state_size)
        if self.use_sequence_length:
            s["sequence_length"] = (batch,)
        for name in s.names:
            if name == "output" or name.startswith("mask"):
                s[name] = (steps, batch, self.directions * size)
        if channels >= 0:
            s["parameters"] = (sum(times(e) for part in self.forms(channels) for e in part),)

    def forms(self, channels: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """The shapes of all matrices, then of all biases."""
        rows, size = 4 * self.state_size, self.width
        matrices: list[tuple[int, ...]] = []
        for level in range(self.num_layers):
            inputs = self.directions * size if level else channels
            one: list[tuple[int, ...]] = [(rows, inputs), (rows, size), (size, self.state_size)]
            matrices += one * self.directions
        return matrices, [(rows,)] * (2 * self.num_layers * self.directions)

    def weights(self, parameters: Array, channels: int) -> list[Weights]:
        """Those of each layer and direction."""
        matrices, biases = self.forms(channels)
        ends = np.cumsum([times(shape) for shape in (*matrices, *biases)])
        parts = np.split(parameters, ends[:-1])
        found = [p.reshape(e) for p, e in zip(parts, (*matrices, *biases), strict=True)]
        first = len(matrices)
        return [
            Weights(into, again, out, found[first + 2 * k] + found[first + 2 * k + 1])
            for k, (into, again, out) in enumerate(zip(*[iter(found[:first])] * 3, strict=True))
        ]

    def compute(
        self, *inputs: Array, train: bool, random: np.random.Generator | None = None
    ) -> tuple[Array, ...]:
        given = dict(zip(self.arguments(), inputs, strict=True))
        shape = (*given["data"].shape[:2], self.directions * self.width)
        masks = [np.ones(shape, given["data"].dtype) for _ in self.outputs()[3:]]
        if train and random is not None:
            kept = 1 - self.p
            masks = [(random.random(shape) < kept) / kept if kept else 0 * m for m in masks]
        y, h, c, _ = self.followed(given, masks)
        return y, h, c, *masks

    def followed(self, given: dict[str, Array], masks: Sequence[Array]) -> tuple[Any, ...]:
        """The output, the final states, and the steps of each layer and direction."""
        y, ends, traces = given["data"], [], []
        weights = self.weights(given["parameters"], y.shape[2])
        for level in range(self.num_layers):
            y = y * masks[level - 1] if level and masks else y
            made = []
            for d in range(self.directions):
                k = level * self.directions + d
                start = given["state"][k], given["state_cell"][k]
                out, h, c, steps = self.taken(y, weights[k], *start, d, given)
                made.append(out)
                ends.append((h, c))
                traces.append((y, steps))
            y = np.concatenate(made, 2)
        h, c = (np.stack(each) for each in zip(*ends, strict=True))
        return y, h, c, traces

    def going(self, given: dict[str, Array], time: int) -> Any:
        """Which sequences have a step at this time, as a column."""
        length = given.get("sequence_length")
        return True if length is None else (length > time)[:, None]

    def taken(
        self, x: Array, w: Weights, h: Array, c: Array, direction: int, given: dict[str, Array]
    ) -> tuple[Array, Array, Array, list[Step]]:
        """All steps of one layer in one direction."""
        into, steps = x @ w.into.T + w.bias, []
        y = np.zeros((*x.shape[:2], len(w.out)), x.dtype)
        order = range(len(x))
        for t in reversed(order) if direction else order:
            z = np.split(into[t] + h @ w.again.T, 4, axis=1)
            i, f, g, o = _sigmoid(z[0]), _sigmoid(z[1]), np.tanh(z[2]), _sigmoid(z[3])
            cell = self.clipped(f * c + i * g)
            raw = o * np.tanh(cell)
            steps.append(Step(t, h, c, (i, f, g, o), cell, raw))
            on = self.going(given, t)
            new = raw @ w.out.T
            y[t] = np.where(on, new, 0)
            h, c = np.where(on, new, h), np.where(on, cell, c)
        return y, h, c, steps

    def clipped(self, cell: Array) -> Array:
        """The cell's state between its limits."""
        if self._clip is None:
            return cell
        low, high, nan = self._clip
        cell = np.where(np.isnan(cell), low, cell) if nan else cell
        return np.clip(cell, low, high)

    # the gradient ---------------------------------------------------------------------------

    def gradient(self, grads: Any, inputs: Any, outputs: Any) -> dict[str, Array]:
        given = dict(zip(self.arguments(), inputs, strict=True))
        masks, weights = outputs[3:], self.weights(given["parameters"], given["data"].shape[2])
        traces = self.followed(given, masks)[3]
        dy, *ends = (*grads, None, None)[:3]
        found: list[Any] = [None] * len(weights)
        starts: list[Any] = [None] * len(weights)
        dy = np.zeros_like(outputs[0]) if dy is None else dy
        for level in reversed(range(self.num_layers)):
            below: Any = 0
            for d, part in enumerate(np.split(dy, self.directions, axis=2)):
                k = level * self.directions + d
                firsts = (given[name][k] for name in ("state", "state_cell"))
                last = [
                    np.zeros_like(first) if end is None else end[k]
                    for first, end in zip(firsts, ends, strict=True)
                ]
                dx, found[k], starts[k] = self.back(traces[k], weights[k], part, last, given)
                below = below + dx
            dy = below * masks[level - 1] if level and masks else below
        matrices = [m.ravel() for g in found for m in (g.into, g.again, g.out)]
        whole = np.concatenate([*matrices, *(b for g in found for b in (g.bias, g.bias))])
        h, c = (np.stack(each) for each in zip(*starts, strict=True))
        return {"data": dy, "parameters": whole, "state": h, "state_cell": c}

    def back(
        self, trace: Any, w: Weights, dy: Array, last: Sequence[Array], given: dict[str, Array]
    ) -> tuple[Array, Weights, tuple[Array, Array]]:
        """Gradients of the input, the weights and the first states of a layer in one direction."""
        x, steps = trace
        dh, dc = last
        dz = np.zeros((*x.shape[:2], len(w.bias)), x.dtype)
        again, out = np.zeros_like(w.again), np.zeros_like(w.out)
        for step in reversed(steps):
            t, on = step.time, self.going(given, step.time)
            i, f, g, o = step.gates
            top, bent = np.where(on, dh + dy[t], 0), np.tanh(step.cell)
            out += top.T @ step.raw
            raw = top @ w.out
            cell = np.where(on, dc, 0) + raw * o * (1 - bent * bent)
            if self._clip is not None:
                whole = f * step.c + i * g
                cell = cell * ((self._clip[0] < whole) & (whole < self._clip[1]))
            parts = cell * g * i * (1 - i), cell * step.c * f * (1 - f), cell * i * (1 - g * g)
            dz[t] = np.concatenate([*parts, raw * bent * o * (1 - o)], 1)
            again += dz[t].T @ step.h
            dh, dc = dz[t] @ w.again + np.where(on, 0, dh), cell * f + np.where(on, 0, dc)
        rows = dz.reshape(-1, dz.shape[2])
        into = rows.T @ x.reshape(-1, x.shape[2])
        return dz @ w.into, Weights(into, again, out, rows.sum(0)), (dh, dc)


describe(ProjectedRNN)
ProjectedRNN.is_expression = False
RNN.projecting = ProjectedRNN
RNN.cases = ProjectedRNN.cases

"""CTCLoss: how unlikely a network makes label sequences, over all ways to align them with time.

A label becomes states, blanks around each of its symbols. `steps` are the probabilities of all ways
to each state, time by time; backwards in time the same is computed of the sequences reversed. All of
it is in logarithms, which are kept small, for the whole batch at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import op
from gnomon.ops.param import param

NEVER = -np.inf
LEAST = -1e30  # a logarithm that is finite, and of nothing


@dataclass(frozen=True)
class Aligned:
    """Logarithms of probabilities (time, batch, classes), and the states of each label.

    `states` (batch, states) are classes, of which `sizes` are used; `times` are the lengths of the
    sequences. `fits` tells where there is a way at all.
    """

    logs: Array
    states: Array
    times: Array
    sizes: Array
    blank: int

    @property
    def fits(self) -> Array:
        """Whether a sequence is long enough for its label: blanks must part equal symbols."""
        symbols = self.states[:, 1::2]
        used = np.arange(symbols.shape[1]) < (self.sizes[:, None] - 1) // 2
        again = (symbols[:, 1:] == symbols[:, :-1]) & used[:, 1:]
        return np.asarray(self.times >= (self.sizes - 1) // 2 + again.sum(1))

    def reversed(self) -> Aligned:
        """The same backwards in time."""
        steps = np.arange(len(self.logs))[:, None]
        at = np.where(steps < self.times, self.times - 1 - steps, steps)
        logs = np.take_along_axis(self.logs, at[..., None], 0)
        return Aligned(logs, self.flipped(self.states), self.times, self.sizes, self.blank)

    def flipped(self, states: Array) -> Array:
        """What belongs to states, (..., batch, states), with the used ones in reverse order."""
        order = np.arange(states.shape[-1])
        at = np.where(order < self.sizes[:, None], self.sizes[:, None] - 1 - order, order)
        return np.asarray(np.take_along_axis(states, np.broadcast_to(at, states.shape), -1))

    def emitted(self, logs: Array) -> Array:
        """Of logarithms (batch, classes), those of each state's class, (batch, states)."""
        return np.asarray(np.take_along_axis(logs, self.states, 1))

    def steps(self) -> Iterator[tuple[Array, Array]]:
        """All ways that lead to each state (batch, states), time by time; to be read at once.

        They are less their maximum over the states, which is counted up beside (batch,).
        """
        batch, states = self.states.shape
        kind = self.logs.dtype
        # two states before the first one, so that a step comes from three neighbouring ones
        found = np.full((batch, states + 2), NEVER, kind)
        found[:, 2:4] = self.emitted(self.logs[0])[:, :2]
        offset = np.zeros(batch)
        yield found[:, 2:], offset
        apart = (self.states != self.blank)[:, 2:] & (self.states[:, 2:] != self.states[:, :-2])
        skips = np.where(np.pad(apart, ((0, 0), (2, 0))), 0, NEVER)[:, :states].astype(kind)
        ways, top = np.empty((3, batch, states), kind), np.empty((batch, states), kind)
        for logs in self.logs[1:]:
            ways[0], ways[1] = found[:, 2:], found[:, 1:-1]
            np.add(found[:, :-2], skips, out=ways[2])
            np.maximum(ways[0], ways[1], out=top)
            np.maximum(top, ways[2], out=top)
            np.maximum(top, LEAST, out=top)
            np.subtract(ways, top, out=ways)
            np.exp(ways, out=ways)
            ways[0] += ways[1]
            ways[0] += ways[2]
            np.log(ways[0], out=ways[0])
            top += self.emitted(logs)
            top += ways[0]
            highest = np.maximum(top.max(1), LEAST)
            offset += highest
            np.subtract(top, highest[:, None], out=found[:, 2:])
            yield found[:, 2:], offset

    def totals(self, keep: tuple[Array, Array] | None = None) -> Array:
        """The logarithm of the probability of each label; `keep` gets all that `steps` gives."""
        rows = np.arange(len(self.times))
        last = np.maximum(self.times - 1, 0)
        found = np.full(len(rows), NEVER)
        for t, (ways, offset) in enumerate(self.steps()):
            if keep is not None:
                keep[0][t], keep[1][t] = ways, offset
            ends = np.flatnonzero(last == t)
            if len(ends):
                sizes = self.sizes[ends]
                before = np.where(sizes > 1, ways[ends, np.maximum(sizes - 2, 0)], NEVER)
                found[ends] = np.logaddexp(ways[ends, sizes - 1], before) + offset[ends]
        return found

    def gradient(self) -> Array:
        """The gradient of each loss with respect to the unnormalised logarithms."""
        steps, batch, classes = self.logs.shape
        forward = np.empty((steps, *self.states.shape), self.logs.dtype)
        offsets = np.empty((steps, batch))
        total = self.totals((forward, offsets))
        rows = np.arange(batch)
        places = (rows[:, None] * classes + self.states).ravel()
        used = np.arange(self.states.shape[1]) < self.sizes[:, None]
        found = np.exp(self.logs)
        for k, (ways, offset) in enumerate(self.reversed().steps()):
            t = self.times - 1 - k
            live = np.flatnonzero(t >= 0)
            at = np.maximum(t, 0), rows
            share = forward[at] + self.flipped(ways)
            share -= self.emitted(self.logs[at])
            share += (offsets[at] + offset - total)[:, None].astype(share.dtype)
            share = np.where(used, np.exp(share), 0)
            counted = np.bincount(places, share.ravel(), batch * classes)
            found[t[live], live] -= counted.reshape(batch, classes)[live]
        inside = np.arange(steps)[:, None] < self.times
        return np.where((inside & self.fits)[..., None], found, 0)


@op(
    "CTCLoss",
    inputs=("data", "label", "data_lengths", "label_lengths"),
    outputs=("output0",),
    aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"),
)
class CTCLoss(HostOp):
    """-log of the probability of each label (batch, symbols) by `data` (time, batch, classes).

    `data` are logarithms before the softmax. A label ends at its first 0 where the blank is the
    first class, at its first -1 where it is the last one, or as `label_lengths` says. The loss of a
    label that is too long for its sequence is 0.
    """

    use_data_lengths: bool = param(False, doc="There are `data_lengths`, (batch,).")
    use_label_lengths: bool = param(False, doc="There are `label_lengths`, (batch,).")
    blank_label: str = param("first", choices=("first", "last"), doc="Which class is the blank.")
    cases = (
        case((6, 2, 4), [[1, 2, 0], [3, 3, 1]], differentiable=(0,)),
        case((4, 2, 3), [[0, 1, -1], [1, -1, -1]], blank_label="last", differentiable=(0,)),
        case((5, 3, 4), [[1, 2], [3, 3], [1, 1]], [5, 4, 2], [2, 1, 2], use_data_lengths=True,
             use_label_lengths=True, differentiable=(0,)),
        case((3, 1, 3), [[0, 0]], differentiable=(0,)),
    )  # fmt: skip

    def arguments(self) -> tuple[str, ...]:
        asked = (self.use_data_lengths, self.use_label_lengths)
        more = zip(("data_lengths", "label_lengths"), asked, strict=True)
        return ("data", "label", *(name for name, wanted in more if wanted))

    def shapes(self, s: Shapes) -> None:
        batch = s.rank("data", 3)[1]
        s["label"] = (batch, -1)
        for name in (*self.arguments()[2:], "output0"):
            s[name] = (batch,)

    def types(self, t: Types) -> None:
        t.same("data", "output0")
        t.check("data", "f")

    def aligned(self, data: Array, label: Array, lengths: tuple[Array, ...]) -> Aligned:
        """The inputs as the algorithm takes them.

        Raises:
            GnomonError: a symbol is no class, or a length is none.
        """
        steps, batch, classes = data.shape
        given = dict(zip(self.arguments()[2:], lengths, strict=True))
        blank, end = (0, 0) if self.blank_label == "first" else (classes - 1, -1)
        label = label.astype(np.int64)
        over = np.pad(label, ((0, 0), (0, 1)), constant_values=end) <= end
        sizes = self.lengths(given, "label_lengths", over.argmax(1), label.shape[1])
        times = self.lengths(given, "data_lengths", np.full(batch, steps), steps)
        used = np.arange(label.shape[1]) < sizes[:, None]
        symbols = np.where(used, label, blank)
        if symbols.size and not 0 <= symbols.min() <= symbols.max() < classes:
            expected, got = f"classes from 0 to {classes - 1}", f"{symbols.min()}, {symbols.max()}"
            raise GnomonError(complaint(self.name, "label", expected, got))
        states = np.full((batch, 2 * label.shape[1] + 1), blank)
        states[:, 1::2] = symbols
        top = data.max(2, keepdims=True)
        logs = data - top - np.log(np.exp(data - top).sum(2, keepdims=True, dtype=np.float64))
        return Aligned(logs.astype(data.dtype), states, times, 2 * sizes + 1, blank)

    def lengths(self, given: dict[str, Array], name: str, otherwise: Array, most: int) -> Array:
        """Lengths that were given, or others; GnomonError where one is above `most` or below 0."""
        found = given.get(name, otherwise).astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() <= most:
            got = f"{found.min()}, {found.max()}"
            raise GnomonError(complaint(self.name, name, f"lengths from 0 to {most}", got))
        return found

    def compute(self, data: Array, label: Array, *lengths: Array) -> Array:
        if not data.size:
            return np.zeros(data.shape[1], data.dtype)
        found = self.aligned(data, label, lengths)
        return np.where(found.fits, -found.totals(), 0)

    def gradient(self, grad: Array, inputs: tuple[Array, ...]) -> dict[str, Array]:
        data, label, *lengths = inputs
        if not data.size:
            return {}
        slope = self.aligned(data, label, tuple(lengths)).gradient()
        return {"data": slope * grad[:, None]}

    def reference(self, data: Array, label: Array, *lengths: Array) -> Array:
        found = self.aligned(data, label, lengths)
        chances = [self.enumerated(found, k) for k in range(data.shape[1])]
        return np.array([-np.log(p) if p else 0 for p in chances])

    def enumerated(self, found: Aligned, k: int) -> float:
        """The probability of a label as the sum over all paths that mean it."""
        wanted = found.states[k, 1 : found.sizes[k] : 2].tolist()
        steps, classes = int(found.times[k]), found.logs.shape[2]
        total = 0.0
        for path in np.ndindex(*(classes,) * steps):
            merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
            if [c for c in merged if c != found.blank] == wanted:
                total += float(np.exp(sum(found.logs[t, k, c] for t, c in enumerate(path))))
        return total

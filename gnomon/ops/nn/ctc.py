"""CTCLoss: how unlikely a network makes label sequences, over all ways to align them with time.

A label becomes states, blanks around each of its symbols. `forward_logs` is the probability of all
ways to a state at a time; backwards in time the same is computed of the sequences reversed. All of
it is in logarithms and float64, for the whole batch at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import op
from gnomon.ops.param import param

NEVER = -np.inf


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

    def emitted(self) -> Array:
        """The logarithm of the probability of each state's class, (time, batch, states)."""
        at = np.broadcast_to(self.states, (len(self.logs), *self.states.shape))
        return np.asarray(np.take_along_axis(self.logs, at, 2))

    def forward_logs(self) -> Array:
        """Of each time and state: all ways that lead there, (time, batch, states)."""
        emitted = self.emitted()
        found = np.full(emitted.shape, NEVER)
        found[0, :, :2] = emitted[0, :, :2]
        skips = (self.states != self.blank)[:, 2:] & (self.states[:, 2:] != self.states[:, :-2])
        for t in range(1, len(found)):
            before, now = found[t - 1], found[t]
            now[:] = before
            now[:, 1:] = np.logaddexp(now[:, 1:], before[:, :-1])
            now[:, 2:] = np.logaddexp(now[:, 2:], np.where(skips, before[:, :-2], NEVER))
            now += emitted[t]
        return found

    def total(self, forward: Array) -> Array:
        """The logarithm of the probability of each label."""
        rows = np.arange(len(self.times))
        last = forward[np.maximum(self.times - 1, 0), rows]
        ends = last[rows, self.sizes - 1]
        before = last[rows, np.maximum(self.sizes - 2, 0)]
        return np.asarray(np.where(self.sizes > 1, np.logaddexp(ends, before), ends))

    def gradient(self) -> Array:
        """The gradient of each loss with respect to the unnormalised logarithms."""
        forward, back = self.forward_logs(), self.reversed()
        backward = self.flipped(back.forward_logs())
        steps = np.arange(len(self.logs))[:, None]
        inside = steps < self.times
        at = np.where(inside, self.times - 1 - steps, steps)
        backward = np.take_along_axis(backward, at[..., None], 0)
        share = np.exp(forward + backward - self.emitted() - self.total(forward)[:, None])
        used = np.arange(self.states.shape[1]) < self.sizes[:, None]
        share = np.where(used & inside[..., None], share, 0)
        classes = self.logs.shape[2]
        place = np.arange(self.logs[..., 0].size).reshape(inside.shape)[..., None] * classes
        counted = np.bincount((place + self.states).ravel(), share.ravel(), self.logs.size)
        found = np.exp(self.logs) - counted.reshape(self.logs.shape)
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
        return Aligned(logs, states, times, 2 * sizes + 1, blank)

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
        return np.where(found.fits, -found.total(found.forward_logs()), 0)

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

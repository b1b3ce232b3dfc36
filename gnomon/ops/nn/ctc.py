"""CTCLoss: how unlikely a network makes label sequences, over all ways to align them with time.

A label becomes states, blanks around each of its symbols. `forwards` is the probability of all ways
to a state at a time, `backwards` that of all ways behind it; both are native code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.dtype import float64
from gnomon.ground.record import cached_property, record
from gnomon.native.serve import served
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp, pooled
from gnomon.ops.infer import Shapes, one_dtype
from gnomon.ops.nn.ctc_ways import LOG_HUGE, NEVER, backwards, forwards
from gnomon.ops.op import op
from gnomon.ops.param import param

MOST = (1 << 31) - 1  # above all classes
LEAST = -1e12  # of a logarithm: below it the number beside an exponent has fewer than 4 digits


@record(frozen=False, slots=False)
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

    @cached_property
    def fits(self) -> Array:
        """Whether a sequence is long enough for its label: blanks must part equal symbols."""
        symbols = self.states[:, 1::2]
        used = np.arange(symbols.shape[1]) < (self.sizes[:, None] - 1) // 2
        again = (symbols[:, 1:] == symbols[:, :-1]) & used[:, 1:]
        return np.asarray(self.times >= (self.sizes - 1) // 2 + again.sum(1))

    @cached_property
    def chance(self) -> tuple[Array, Array]:
        """The probabilities of classes as numbers and exponents."""
        numbers, powers = (pooled(self.logs.shape, kind) for kind in (np.float64, np.int64))
        np.exp(self.logs, out=numbers)
        powers.fill(0)
        small = (self.logs < -LOG_HUGE) & (self.logs > -math.inf)
        logs = np.maximum(self.logs[small], LEAST)
        raised = np.ceil(logs / LOG_HUGE)
        numbers[small], powers[small] = np.exp(logs - raised * LOG_HUGE), raised
        return numbers, powers

    @property
    def places(self) -> tuple[int, ...]:
        """Where probabilities, states, times and sizes lie."""
        arrays = (*self.chance, self.states, self.times, self.sizes)
        return tuple(a.ctypes.data for a in arrays)

    @property
    def counts(self) -> tuple[int, ...]:
        """Of labels, states and classes, and which one is the blank."""
        return len(self.times), self.states.shape[1], self.logs.shape[2], self.blank

    @cached_property
    def ways(self) -> tuple[Array, Array]:
        """All ways to each state, (time, batch, states), as numbers and exponents."""
        shape = (len(self.logs), *self.states.shape)
        found, raised = (pooled(shape, kind) for kind in (np.float64, np.int64))
        run = served(forwards, backwards)[0]
        run(*self.places, found.ctypes.data, raised.ctypes.data, *self.counts)
        return found, raised

    @cached_property
    def totals(self) -> tuple[Array, Array]:
        """The probability of each label, as numbers and exponents."""
        found, raised = self.ways
        rows, last = np.arange(len(self.times)), np.maximum(self.times - 1, 0)
        ends = self.sizes - 1
        one, power = found[last, rows, ends], raised[last, rows, ends]
        before = np.maximum(ends - 1, 0)
        two = np.where(ends > 0, found[last, rows, before], 0)
        top = np.maximum(power, np.where(two > 0, raised[last, rows, before], NEVER))
        other = np.where(two > 0, raised[last, rows, before], NEVER)
        scales = [np.maximum((p - top) * LOG_HUGE, -1e3) for p in (power, other)]
        return one * np.exp(scales[0]) + two * np.exp(scales[1]), top

    @property
    def losses(self) -> Array:
        """-log of the probability of each label; 0 where its sequence is too short."""
        number, power = self.totals
        return np.where(self.fits & (self.times > 0), -np.log(number) - power * LOG_HUGE, 0)

    def gradient(self, found: Array) -> None:
        """Fill `found` with the gradient of each loss by the unnormalised logarithms."""
        number, power = self.totals
        inverse, lowered = 1 / np.where(number > 0, number, 1), -power
        room = np.empty(4 * self.states.shape[1])
        np.exp(self.logs, out=found)
        run = served(forwards, backwards)[1]
        arrays = [a.ctypes.data for a in (*self.ways, inverse, lowered, found, room)]
        run(*self.places, *arrays, *self.counts)
        inside = np.arange(len(self.logs))[:, None] < self.times
        found[~(inside & self.fits)] = 0


@op(
    "CTCLoss",
    inputs=("data", "label", "data_lengths", "label_lengths"),
    outputs=("output0", "output1"),
    aliases=("ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"),
)
class CTCLoss(HostOp):
    """-log of the probability of each label (batch, symbols) by `data` (time, batch, classes).

    `data` are logarithms before the softmax. A label ends at its first 0 where the blank is the
    first class, at its first -1 where it is the last one, or as `label_lengths` says. The loss of a
    label that is too long for its sequence is 0. The hidden output is the gradient of each loss in
    training, where one is expected, and else 0.
    """

    use_data_lengths: bool = param(False, doc="There are `data_lengths`, (batch,).")
    use_label_lengths: bool = param(False, doc="There are `label_lengths`, (batch,).")
    blank_label: str = param("first", choices=("first", "last"), doc="Which class is the blank.")
    num_visible_outputs = 1
    cases = (
        case((6, 2, 4), [[1, 2, 0], [3, 3, 1]], differentiable=(0,)),
        case((4, 2, 3), [[0, 1, -1], [1, -1, -1]], blank_label="last", differentiable=(0,)),
        case((5, 3, 4), [[1, 2], [3, 3], [1, 1]], [5, 4, 2], [2, 1, 2], use_data_lengths=True,
             use_label_lengths=True, differentiable=(0,)),
        case((3, 1, 3), [[0, 0]], differentiable=(0,)),
    )  # fmt: skip
    types = one_dtype("data", "output0", kinds="f", output1=float64)

    def arguments(self) -> tuple[str, ...]:
        asked = (self.use_data_lengths, self.use_label_lengths)
        more = zip(("data_lengths", "label_lengths"), asked, strict=True)
        return ("data", "label", *(name for name, wanted in more if wanted))

    def shapes(self, s: Shapes) -> None:
        batch = s.rank("data", 3)[1]
        s["label"] = (batch, -1)
        for name in (*self.arguments()[2:], "output0"):
            s[name] = (batch,)
        s["output1"] = s["data"]

    def aligned(self, data: Array, label: Array, lengths: tuple[Array, ...]) -> Aligned:
        """The inputs as the algorithm takes them.

        Raises:
            GnomonError: a symbol is no class, or a length is none.
        """
        steps, batch, classes = data.shape
        told = dict(zip(self.arguments()[2:], lengths, strict=True))
        blank, end = (0, 0) if self.blank_label == "first" else (classes - 1, -1)
        label = np.where(np.abs(label) <= MOST, label, MOST).astype(np.int64)  # NaN is no class
        symbols = np.logical_and.accumulate(label > end, 1).sum(1)
        sizes = self.lengths(told, "label_lengths", symbols, label.shape[1])
        times = self.lengths(told, "data_lengths", np.full(batch, steps), steps)
        used = np.arange(label.shape[1]) < sizes[:, None]
        symbols = np.where(used, label, blank)
        if symbols.size and not 0 <= symbols.min() <= symbols.max() < classes:
            expected, got = f"classes from 0 to {classes - 1}", f"{symbols.min()}, {symbols.max()}"
            raise GnomonError(complaint(self.name, "label", expected, got))
        states = np.full((batch, 2 * label.shape[1] + 1), blank, np.int64)
        states[:, 1::2] = symbols
        logs, powers = pooled(data.shape, np.float64), pooled(data.shape, np.float64)
        np.subtract(data, data.max(2, keepdims=True), out=logs, dtype=np.float64)
        logs -= np.log(np.exp(logs, out=powers).sum(2, keepdims=True))
        return Aligned(logs, states, times, 2 * sizes + 1, blank)

    def lengths(self, given: dict[str, Array], name: str, otherwise: Array, most: int) -> Array:
        """Lengths that were given, or others; GnomonError where one is above `most` or below 0."""
        found = given.get(name, otherwise).astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() <= most:
            got = f"{found.min()}, {found.max()}"
            raise GnomonError(complaint(self.name, name, f"lengths from 0 to {most}", got))
        return found

    def compute(
        self, data: Array, label: Array, *lengths: Array, train: bool, room: Sequence[Array]
    ) -> tuple[Array, Array]:
        slope = room[1]
        slope.fill(0)
        if not data.size:
            return np.zeros(data.shape[1]), slope
        found = self.aligned(data, label, lengths)
        if train:
            found.gradient(slope)
        return found.losses, slope

    def gradient(
        self, grad: Array, inputs: tuple[Array, ...], output1: Array, *, train: bool
    ) -> dict[str, Array]:
        if not train:
            room = (output1, np.empty_like(output1))
            output1 = self.compute(*inputs, train=True, room=room)[1]
        return {"data": output1 * grad[:, None]}

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

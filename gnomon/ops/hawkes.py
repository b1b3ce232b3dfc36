"""The likelihood of marked point processes that excite themselves (Hawkes)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.dtype import int32
from gnomon.ground.record import record
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import op


@record(frozen=False, slots=False)
class Processes:
    """Processes (N, K) as events come: their states, when each mark came last, the time now.

    `slope` is the derivative of the state by `beta`.
    """

    beta: Array
    state: Array
    last: Array = field(init=False)
    slope: Array = field(init=False)
    now: Array = field(init=False)

    def __post_init__(self) -> None:
        self.last, self.slope = np.zeros_like(self.state), np.zeros_like(self.state)
        self.now = np.zeros(len(self.state))

    def waited(self, at: tuple[Array, ...], now: Array) -> tuple[Array, Array]:
        """How long it is since these marks came last, and what of their states is left."""
        wait = now - self.last[at]
        return wait, np.exp(-self.beta[at[-1]] * wait)

    def events(self, lags: Array, marks: Array, lengths: Array) -> Iterator[tuple[Array, ...]]:
        """The event of each process that has one next, step by step: processes and marks."""
        for j in range(lags.shape[1]):
            rows = np.flatnonzero(lengths > j)
            at = rows, marks[rows, j]
            self.now[rows] += lags[rows, j]
            yield at
            wait, left = self.waited(at, self.now[rows])
            state = self.state[at]
            self.slope[at] = (self.slope[at] - state * wait) * left
            self.state[at] = 1 + state * left
            self.last[at] = self.now[rows]


@op(
    "_contrib_hawkesll",
    inputs=("lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time"),
    outputs=("output", "out_state"),
)
class HawkesLikelihood(HostOp):
    """The logarithm of the likelihood (N,) of events, and the states (N, K) at `max_time` (N,).

    Process n has events after `lags` (N, T), of `marks` (N, T), the first `valid_length` (N,) of
    them. Mark k comes with intensity `lda[n, k] + alpha[k] beta[k] s exp(-beta[k] d)`, where d is
    the time since it came last and s its state then, `state` (N, K) at first. There are gradients
    of `lda`, `alpha` and `beta`, through the likelihood alone. (Hawkes, 1971; Laub et al., 2015.)
    """

    cases = (
        case(np.array([[1.0, 2], [0.5, 1.5], [1, 1]]), [0.2, 0.3], [1.0, 2.0], (3, 2),
             np.array([[0.3, 0.5, 0.2, 0.1], [0.2, 0.9, 0.4, 3], [1, 1, 1, 1.0]]),
             np.array([[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]], "i4"), [4, 2, 0.0],
             [5, 4, 3.0], low=0.1, high=1, differentiable=()),
    )  # fmt: skip

    def shapes(self, s: Shapes) -> None:
        s.same("lda", "state", "out_state")
        s.same("lags", "marks")
        s["lda"], s["lags"] = (-1, -1), (-1, -1)
        n, k = s.need("lda")
        s["alpha"] = s["beta"] = (k,)
        for name in ("valid_length", "max_time", "output"):
            s[name] = (n,)
        s["lags"] = (n, -1)
        s["lda"] = (s.need("lags")[0], s.need("alpha")[0])

    def types(self, t: Types) -> None:
        t["marks"] = int32
        t.same(*(name for name in (*self.inputs(), *self.outputs()) if name != "marks"))
        t.check("lda", "f")

    def checked(self, lda: Array, marks: Array, lengths: Array) -> None:
        """GnomonError where a mark is none, or a length longer than there are events."""
        used = np.arange(marks.shape[1]) < lengths[:, None]
        if used.any() and not 0 <= marks[used].min() <= marks[used].max() < lda.shape[1]:
            expected = f"numbers from 0 to {lda.shape[1] - 1}"
            raise GnomonError(complaint(self.name, "marks", expected, marks[used].max()))
        if lengths.size and lengths.max() > marks.shape[1]:
            expected = f"up to {marks.shape[1]} events"
            raise GnomonError(complaint(self.name, "valid_length", expected, lengths.max()))

    def compute(self, *inputs: Array) -> tuple[Array, Array]:
        lda, alpha, beta, state, lags, marks, lengths, until = inputs
        self.checked(lda, marks, lengths)
        found = np.zeros(len(lda))
        processes = Processes(beta, state.astype(np.float64))
        for at in processes.events(lags, marks, lengths):
            rows, k = at
            wait, left = processes.waited(at, processes.now[rows])
            pushed = alpha[k] * processes.state[at]
            found[rows] += np.log(lda[at] + beta[k] * pushed * left)
            found[rows] -= lda[at] * wait + pushed * (1 - left)
        wait = until[:, None] - processes.last
        left = np.exp(-beta * wait)
        found -= (lda * wait + alpha * processes.state * (1 - left)).sum(1)
        return found, processes.state * left

    def gradient(self, grad: Array, inputs: tuple[Array, ...]) -> dict[str, Array]:
        lda, alpha, beta, state, lags, marks, lengths, until = inputs
        of_lda, of_alpha, of_beta = np.zeros((3, *lda.shape))
        processes = Processes(beta, state.astype(np.float64))
        for at in processes.events(lags, marks, lengths):
            rows, k = at
            wait, left = processes.waited(at, processes.now[rows])
            s, ds = processes.state[at], processes.slope[at]
            rate = lda[at] + alpha[k] * beta[k] * s * left
            of_lda[at] += 1 / rate - wait
            of_alpha[at] += beta[k] * s * left / rate - s * (1 - left)
            up = alpha[k] * left * (s + beta[k] * (ds - s * wait))
            of_beta[at] += up / rate - alpha[k] * (ds * (1 - left) + s * wait * left)
        wait = until[:, None] - processes.last
        left, s, ds = np.exp(-beta * wait), processes.state, processes.slope
        of_lda -= wait
        of_alpha -= s * (1 - left)
        of_beta -= alpha * (ds * (1 - left) + s * wait * left)
        weighted = [g * grad[:, None] for g in (of_lda, of_alpha, of_beta)]
        return {"lda": weighted[0], "alpha": weighted[1].sum(0), "beta": weighted[2].sum(0)}

    def reference(self, *inputs: Array) -> tuple[Array, Array]:
        lda, alpha, beta, state, lags, marks, lengths, until = inputs
        found, states = np.zeros(len(lda)), state.copy()
        for n, k in np.ndindex(*lda.shape):
            count = int(lengths[n])
            times = np.cumsum(lags[n, :count])[marks[n, :count] == k]
            found[n] -= lda[n, k] * until[n]
            before, s = 0.0, states[n, k]
            for t in [*times, until[n]]:
                left = np.exp(-beta[k] * (t - before))
                found[n] -= alpha[k] * s * (1 - left)
                if t != until[n]:
                    found[n] += np.log(lda[n, k] + alpha[k] * beta[k] * s * left)
                s, before = s * left + (t != until[n]), t
            states[n, k] = s
        return found, states

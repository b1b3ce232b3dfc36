"""The binary confusion table, and the scores that follow from it."""

from __future__ import annotations

import math

import numpy as np

from gnomon.ground.record import record


@record(frozen=False, slots=False)
class Counts:
    """Counts of a two-class problem: true and false positives and negatives."""

    tp: int = 0
    fp: int = 0
    tn: int = 0
    fn: int = 0

    @property
    def total(self) -> int:
        """How many predictions were counted."""
        return self.tp + self.fp + self.tn + self.fn

    def count(self, truth: np.ndarray, guess: np.ndarray) -> None:
        """Count arrays of 0 and 1."""
        self.tp += int((truth & guess).sum())
        self.fp += int((~truth & guess).sum())
        self.tn += int((~truth & ~guess).sum())
        self.fn += int((truth & ~guess).sum())

    def parts(self) -> list[Counts]:
        """Where a pickle of MXNet has made this: its counts since the last resets, and all."""
        names = "true_positives", "false_positives", "true_negatives", "false_negatives"
        held = vars(self)
        return [Counts(*(held[start + name] for name in names)) for start in ("", "global_")]

    def f1(self) -> float:
        """Harmonic mean of precision and recall, 0 where it is undefined."""
        found = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / found if found else 0.0

    def mcc(self) -> float:
        """Matthews correlation coefficient; empty margins count as 1."""
        margins = (self.tp + self.fp, self.tp + self.fn, self.tn + self.fp, self.tn + self.fn)
        spread = math.prod(float(margin) for margin in margins if margin)
        return (self.tp * self.tn - self.fp * self.fn) / math.sqrt(spread)

"""The binary confusion table, and the scores that follow from it."""

from __future__ import annotations

import math

import numpy as np

from gnomon.ground.record import record


@record(frozen=False, slots=False)
class Counts:
    """Counts of a two-class problem: true and false positives and negatives."""

    true_positives: int = 0
    false_positives: int = 0
    true_negatives: int = 0
    false_negatives: int = 0

    @property
    def total_examples(self) -> int:
        """How many predictions were counted."""
        return (
            self.true_positives + self.false_positives + self.true_negatives + self.false_negatives
        )

    def count(self, truth: np.ndarray, guess: np.ndarray) -> None:
        """Count arrays of 0 and 1."""
        self.true_positives += int((truth & guess).sum())
        self.false_positives += int((~truth & guess).sum())
        self.true_negatives += int((~truth & ~guess).sum())
        self.false_negatives += int((truth & ~guess).sum())

    def parts(self) -> list[Counts]:
        """Where a pickle of MXNet has made this: its counts since the last resets, and all."""
        names = "true_positives", "false_positives", "true_negatives", "false_negatives"
        held = vars(self)
        return [Counts(*(held[start + name] for name in names)) for start in ("", "global_")]

    @property
    def precision(self) -> float:
        """The share of true ones among what was called positive, 0 where there is nothing."""
        found = self.true_positives + self.false_positives
        return self.true_positives / found if found else 0.0

    @property
    def recall(self) -> float:
        """The share of positives that were called so, 0 where there are none."""
        found = self.true_positives + self.false_negatives
        return self.true_positives / found if found else 0.0

    @property
    def fscore(self) -> float:
        """Harmonic mean of precision and recall, 0 where it is undefined."""
        found = 2 * self.true_positives + self.false_positives + self.false_negatives
        return 2 * self.true_positives / found if found else 0.0

    def matthewscc(self) -> float:
        """Matthews correlation coefficient; empty margins count as 1."""
        tp, fp = self.true_positives, self.false_positives
        tn, fn = self.true_negatives, self.false_negatives
        margins = (tp + fp, tp + fn, tn + fp, tn + fn)
        spread = math.prod(float(margin) for margin in margins if margin)
        return (tp * tn - fp * fn) / math.sqrt(spread)

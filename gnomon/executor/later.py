"""Updates behind a backward pass in one native call, where nothing was asked for in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.context import Context
from gnomon.executor.latest import latest
from gnomon.executor.train_step import Follower, Joined, TrainStep, joined, push

KEPT = 8  # updates, of as many sets of arrays


class Updates:
    """Pushes updates on a context, each in one call with the backward pass before it if it can."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._alone: dict[Follower, Joined] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"ctx": self.ctx, "_alone": {}}  # programs hold addresses of this process

    def __call__(self, update: Follower, numbers: Sequence[float]) -> bool:
        """Push an update with its numbers; always True, as for `optimizer.fused.Join`."""
        pushed, latest.pushed = latest.pushed, None
        if pushed is None or not pushed.follow(update, numbers):
            self._push(update, numbers)
        return True

    def _push(self, update: Follower, numbers: Sequence[float]) -> None:
        whole = self._alone.get(update)
        if whole is None:
            if len(self._alone) >= KEPT:
                self._alone.clear()
            whole = joined([update.step], update.reads, update.writes, "update")
            self._alone[update] = whole
        made = TrainStep(whole.program, [(update, numbers)], (), (), [], update)
        push(made, self.ctx, whole.const, whole.mutate)

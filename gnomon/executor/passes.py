"""`Passes`: an executor whose forward and backward pass are pushed apart, with results elsewhere.

For who gives outputs away and wants them to stay as they are: what is bound is overwritten by the
next run. Between its forward pass and its backward pass nothing else may run on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon import config
from gnomon.context import Context
from gnomon.executor.arena import Arena
from gnomon.executor.executor import Executor
from gnomon.executor.inputs import Input
from gnomon.executor.latest import latest
from gnomon.executor.network import Bound
from gnomon.executor.programs.draws import Positions
from gnomon.executor.programs.layout import Mode
from gnomon.executor.train_step import Feed, Gift


class Passes(Executor):
    """A symbol on arrays, always in one mode; its backward pass is that of the last forward.

    `inputs` are those of the arguments that calls feed. In an `arena` of others, nothing stays
    there from a forward pass to its backward pass: both are one call. Then the first outputs may be
    `losses`, so many, which nothing asks for; from the others no gradient flows.
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Context,
        bound: Bound,
        inputs: Sequence[Any],
        train: bool,
        arena: Arena | None = None,
        losses: int | None = None,
    ) -> None:
        self._train = train
        self._fed = inputs
        super().__init__(symbol, ctx, bound, {}, arena, losses=losses)
        self._only = self._run(self._mode(train))
        given = [self._heads.get(e) for e in self._net.heads]
        self._head_arrays = [(k, x) for k, x in enumerate(given) if x is not None]

    def _mode(self, train: bool) -> Mode:
        return Mode(self._train, self._differentiates, config.get("passes"))

    @property
    def draws(self) -> list[str]:
        """The name of the operator of each draw of random numbers."""
        return self._only.layout.draws.owners

    @property
    def is_resized(self) -> bool:
        """Whether programs of its graph for other sizes have told what it does."""
        return self._only.layout.resized is not None

    @property
    def is_poisoned(self) -> bool:
        """Whether what ran on it last failed."""
        return self.arena.var.failure is not None

    @property
    def may_go_back(self) -> bool:
        """Whether the backward pass may come next, if need be with another forward pass."""
        return self.arena.content is self._only or self._only.layout.repeatable

    def forward_into(
        self,
        given: Sequence[Any],
        dests: Sequence[Any],
        drawn: Positions | None = None,
    ) -> None:
        """Compute the outputs of `given`, behind losses, into dense arrays of their layouts.

        Random numbers are those at `drawn`, else the next ones.

        Raises:
            ShapeError: an input of another shape; nothing is written.
        """
        feeds, run = list(zip(self._fed, given, strict=True)), self._only
        shown = self.outputs[len(self.outputs) - len(dests) :]
        latest.pushed = None
        if self._monitor is None:
            self._last = run
            run.forward(feeds, list(zip(shown, dests, strict=True)), drawn)
            self.arena.content = run if run.mode.differentiate else None  # which keeps its memory
        else:
            self.forward_on(feeds)
            for dest, output in zip(dests, shown, strict=True):
                dest[:] = output

    def both_into(
        self,
        given: Sequence[Any],
        heads: Sequence[Any],
        dests: Sequence[Any],
        grads: Sequence[Gift],
        drawn: Positions | None = None,
    ) -> None:
        """Compute the outputs of `given` behind the losses into `dests`, and the gradients.

        `heads` are the gradients of losses that are none by themselves, `grads` pairs of what is
        bound, and where it is copied. Random numbers are those at `drawn`.
        """
        feeds, run = list(zip(self._fed, given, strict=True)), self._only
        feeds += [(x, heads[k]) for k, x in self._head_arrays]
        shown = self.outputs[len(self.outputs) - len(dests) :]
        gifts = [*zip(shown, dests, strict=True), *grads]
        latest.pushed = run.forward_backward(feeds, gifts, drawn)
        self.arena.content = None

    def backward_into(self, heads: Sequence[Any], gifts: Sequence[Gift]) -> None:
        """Compute the gradients, given those of the outputs; `gifts` are copied out behind."""
        if self._monitor is not None or self.arena.content is not self._only:
            self.backward(list(heads))
            for grad, dest in gifts:
                dest[:] = grad
            return
        feeds: list[Feed] = [(x, heads[k]) for k, x in self._head_arrays]
        for array in self._fed:
            pending = array._pending_in
            if type(pending) is Input and pending.source is not None:
                feeds.append((array, pending.source))
        latest.pushed = self._only.backward_on(feeds, gifts)
        self.arena.content = self._only.left

"""`Predictor`: batches computed by executors that are bound once, and shared out to their requests.

State: executors by number of items and shapes of an item, the one used last at the end; the first
that is bound gives the working memory to all. One thread at a time computes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

from gnomon.serving.model import Bound, Model, Shapes
from gnomon.serving.tensors import Values


class Request(Protocol):
    """What is computed: tensors by name, `rows` items of shapes `items`."""

    @property
    def inputs(self) -> dict[str, Values]:
        """Its tensors by name."""

    @property
    def rows(self) -> int:
        """How many items it has."""

    @property
    def items(self) -> Shapes:
        """The shapes of an item of each input, in the model's order."""


class Predictor:
    """The executors of one worker for `model`."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._sizes = model.options.sizes()
        self._bound: OrderedDict[tuple[int, Shapes], Bound] = OrderedDict()
        self._memory: Any = None  # the executor whose working memory all share

    def warm(self) -> None:
        """Bind and run each size of a batch, where the shapes of an item are known.

        The largest first: its working memory is enough for all.
        """
        if self.model.fixed is not None:
            for rows in reversed(self._sizes):
                self._executor(rows, self.model.fixed).compute()

    def predict(self, requests: Sequence[Request]) -> list[dict[str, Values]]:
        """The outputs of each request, by name: parts of those of the whole batch.

        Raises:
            GnomonError: an operator fails, or the network does not take these shapes.
        """
        first, batch = requests[0], self.model.options.batch
        count = sum(request.rows for request in requests)
        rows = next(size for size in self._sizes if size >= count)
        bound = self._executor(rows, first.items)
        for name, memory in bound.inputs.items():
            if batch:
                _fill(memory, [request.inputs[name] for request in requests])
            else:
                memory[...] = first.inputs[name]
        outputs = bound.compute()
        return _shares(outputs, requests, rows) if batch else [outputs]

    def _executor(self, rows: int, items: Shapes) -> Bound:
        """That for `rows` items, bound now if it is not; the one that rested longest gives way."""
        key = rows, items
        found = self._bound.get(key)
        if found is None:
            self._check(items)
            found = self._bound[key] = self.model.bind(rows, items, self._memory)
            self._memory = self._memory or found.executor
            if len(self._bound) > self.model.options.kept:
                self._bound.popitem(last=False)
        self._bound.move_to_end(key)
        return found

    def _check(self, items: Shapes) -> None:
        if not any(items == known for _, known in self._bound):
            self.model.check_rows(items)


def _fill(memory: Values, parts: Sequence[Values]) -> None:
    """Put the parts one behind the other, and zeros behind them: old items must not fail again."""
    begin = 0
    for part in parts:
        memory[begin : begin + len(part)] = part
        begin += len(part)
    memory[begin:] = 0


def _shares(
    outputs: dict[str, Values], requests: Sequence[Request], rows: int
) -> list[dict[str, Values]]:
    """The part of each request, of all outputs, which have the items of `rows` in order."""
    shares, begin = [], 0
    for request in requests:
        end = begin + request.rows
        shares.append(
            {
                name: values[begin * len(values) // rows : end * len(values) // rows]
                for name, values in outputs.items()
            }
        )
        begin = end
    return shares

"""What an estimator does with one batch."""

from __future__ import annotations

from typing import Any

from gnomon import autograd
from gnomon.gluon.utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Trains on a batch and scores one; a subclass does it otherwise."""

    def _get_data_and_label(
        self, batch: Any, ctx: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any]]:
        """The data and the labels of a batch, cut over the contexts."""
        data, label = batch[0], batch[1]
        return split_and_load(data, ctx, batch_axis), split_and_load(label, ctx, batch_axis)

    def evaluate_batch(
        self, estimator: Any, val_batch: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """(data, labels, predictions, losses) of a batch, for each context."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        loss = [estimator.val_loss(p, y) for p, y in zip(pred, label, strict=True)]
        return data, label, pred, loss

    def fit_batch(
        self, estimator: Any, train_batch: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """The same, and the gradients of the parameters; handlers update these."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(p, y) for p, y in zip(pred, label, strict=True)]
        autograd.backward(loss)
        return data, label, pred, loss

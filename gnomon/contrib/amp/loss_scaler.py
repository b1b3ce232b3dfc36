"""The factor on losses that keeps gradients of half precision from becoming 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gnomon import ndarray as nd

LARGEST = 2.0**24


class LossScaler:
    """A factor that is halved when a gradient is not finite, and doubled after 2,000 good steps.

    As in MXNet, a step decides the factor of the next one but one.

    >>> scaler = LossScaler()
    >>> scaler.loss_scale
    65536.0
    """

    def __init__(self) -> None:
        self._loss_scale = self._next_loss_scale = 2.0**16
        self._scale_seq_len = 2000
        self._unskipped = 0

    @property
    def loss_scale(self) -> float:
        """The factor of the next step."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Any]) -> bool:
        """Whether a gradient of these parameters is not finite; the factor follows it."""
        grads = [g for p in params if p.grad_req != "null" for g in p.list_grad()]
        found = not _all_finite(grads)
        self._loss_scale = self._next_loss_scale
        self._unskipped = 0 if found else self._unskipped + 1
        if found:
            self._next_loss_scale = self._loss_scale / 2
        elif self._unskipped >= self._scale_seq_len:
            self._next_loss_scale = min(self._loss_scale * 2, LARGEST)
            self._unskipped = 0
        return found


def _all_finite(grads: list[Any]) -> bool:
    """Whether all elements of arrays are finite; one wait for those of a device."""
    places: dict[Any, list[Any]] = {}
    for grad in grads:
        dense = grad if grad.stype == "default" else grad.data
        places.setdefault(grad.context, []).append(dense)
    answers = [nd.multi_all_finite(*each, num_arrays=len(each)) for each in places.values()]
    return all(bool(answer.asscalar()) for answer in answers)

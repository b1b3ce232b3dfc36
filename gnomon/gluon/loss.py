"""Losses: what training makes small, one number a sample.

All of them weigh what each sample gives by `sample_weight`, whose axes are those of the loss or are
1, and by the constant `weight`; most are means over all axes but `batch_axis`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gnomon import ndarray as nd
from gnomon.base import ParamError, ShapeError, complaint, shown
from gnomon.gluon.block import HybridBlock
from gnomon.ops.fields import Field

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]

SMALL = 1e-12  # added where a logarithm or a quotient would be infinite


def _apply_weighting(
    F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None
) -> Any:
    """`loss` times the weights; libraries of losses import it by this name."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    return loss if weight is None or weight == 1.0 else loss * weight


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """`x` in the shape of `y`; libraries of losses import it by this name."""
    return F.reshape_like(x, y)


class Loss(HybridBlock):
    """Base of losses.

    Args:
        weight: a constant factor; None for none.
        batch_axis: the axis of the samples.
    """

    _fields: ClassVar = {
        "batch_axis": Field("mean.axis"),
    }

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight = weight.item() if isinstance(weight, np.number) else weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _weighted(self, F: Any, loss: Any, sample_weight: Any, factor: float = 1.0) -> Any:
        """`loss` times the weights and `factor`."""
        weight = 1.0 if self._weight is None else self._weight
        return _apply_weighting(F, loss, weight * factor, sample_weight)

    def _mean(self, F: Any, loss: Any, sample_weight: Any, factor: float = 1.0) -> Any:
        """The weighted mean of each sample."""
        loss = self._weighted(F, loss, sample_weight, factor)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """Half the square of the difference: `0.5 * weight * (label - pred)**2`.

    >>> from gnomon import nd
    >>> L2Loss()(nd.array([[1, 2], [3, 4]]), nd.array([[1, 4], [3, 4]])).asnumpy()
    array([1., 0.], dtype=float32)
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(F.reshape_like(label, pred) - pred)
        return self._mean(F, loss, sample_weight, 0.5)


class L1Loss(Loss):
    """The absolute difference of `label` and `pred`."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self._mean(F, F.abs(F.reshape_like(label, pred) - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The cross entropy of two classes; `label` is how likely the second one is.

    `pos_weight` weighs the second class, against the first.

    Args:
        from_sigmoid: `pred` are probabilities; else what a sigmoid makes probabilities of.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self,
        from_sigmoid: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(
        self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None
    ) -> Any:
        label = F.reshape_like(label, pred)
        form = self._of_chances if self._from_sigmoid else self._of_scores
        return self._mean(F, form(F, pred, label, pos_weight), sample_weight)

    def _of_scores(self, F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        rest = F.Activation(-F.abs(pred), act_type="softrelu")
        if pos_weight is None:
            return F.relu(pred) - pred * label + rest
        more = 1 + F.broadcast_mul(label, pos_weight - 1)
        return pred - pred * label + more * (rest + F.relu(-pred))

    def _of_chances(self, F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        yes = F.log(pred + SMALL) * label
        if pos_weight is not None:
            yes = F.broadcast_mul(yes, pos_weight)
        return -(yes + F.log(1.0 - pred + SMALL) * (1.0 - label))


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """The cross entropy of several classes.

    >>> from gnomon import nd
    >>> SoftmaxCrossEntropyLoss()(nd.array([[0, 0], [9, 0]]), nd.array([1, 0])).asnumpy().round(3)
    array([0.693, 0.   ], dtype=float32)

    Args:
        axis: the axis of the classes.
        sparse_label: labels are numbers of classes; else probabilities of all.
        from_logits: `pred` are logarithms of probabilities; else what a softmax makes them of.
        weight, batch_axis: as for `Loss`.
    """

    _fields: ClassVar = {
        "axis": Field("log_softmax.axis"),
    }

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            chances = F.reshape_like(label, pred)
            loss = -F.sum(pred * chances, axis=self._axis, keepdims=True)
        return self._mean(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence: how far the probabilities `pred` are from `label`, summed.

    Args:
        from_logits: `pred` are logarithms of probabilities; else what a softmax makes them of.
        axis: the axis of the classes.
        weight, batch_axis: as for `Loss`.
    """

    _fields: ClassVar = {
        "axis": Field("log_softmax.axis", optional=True),
    }

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = self._weighted(F, label * (F.log(label + SMALL) - pred), sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification: of sequences whose labels are not aligned.

    The last class is the blank. Labels behind the end of a sequence are -1, or `label_lengths` say
    where it ends, as `pred_lengths` does for predictions.

    Args:
        layout: axes of `pred`: "NTC" or "TNC".
        label_layout: axes of `label`: "NT" or "TN".
        weight: as for `Loss`.
    """

    def __init__(
        self,
        layout: str = "NTC",
        label_layout: str = "NT",
        weight: float | None = None,
        **kwargs: Any,
    ) -> None:
        for argument, given, known in (
            ("layout", layout, ("NTC", "TNC")),
            ("label_layout", label_layout, ("NT", "TN")),
        ):
            if given not in known:
                raise ParamError(complaint("CTCLoss", argument, f"one of {known}", shown(given)))
        self._layout, self._label_layout = layout, label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        if self._layout == "NTC":
            pred = F.swapaxes(pred, dim1=0, dim2=1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, dim1=0, dim2=1)
        lengths = {"data_lengths": pred_lengths, "label_lengths": label_lengths}
        loss = F.CTCLoss(
            pred,
            label,
            **{name: each for name, each in lengths.items() if each is not None},
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return self._weighted(F, loss, sample_weight)


class HuberLoss(Loss):
    """The absolute difference less `rho / 2`; below `rho` a square that joins it smoothly.

    Args:
        rho: where both meet.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.abs(F.reshape_like(label, pred) - pred)
        square = (0.5 / self._rho) * F.square(loss)
        loss = F.where(loss > self._rho, loss - 0.5 * self._rho, square)
        return self._mean(F, loss, sample_weight)


class HingeLoss(Loss):
    """`max(0, margin - pred * label)`, for labels 1 and -1.

    Args:
        margin: how far on its side a prediction has to be.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def _hinge(self, F: Any, pred: Any, label: Any) -> Any:
        return F.relu(self._margin - pred * F.reshape_like(label, pred))

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self._mean(F, self._hinge(F, pred, label), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """The square of `HingeLoss`."""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self._mean(F, F.square(self._hinge(F, pred, label)), sample_weight)


class LogisticLoss(Loss):
    """`log(1 + exp(-pred * label))`, for labels 1 and -1.

    Args:
        label_format: "signed", or "binary" for labels 1 and 0.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self,
        weight: float | None = None,
        batch_axis: int = 0,
        label_format: str = "signed",
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            expected = "'signed' or 'binary'"
            raise ParamError(
                complaint("LogisticLoss", "label_format", expected, repr(label_format))
            )
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        label = F.reshape_like(label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        rest = F.Activation(-F.abs(pred), act_type="softrelu")
        return self._mean(F, F.relu(pred) - pred * label + rest, sample_weight)


class TripletLoss(Loss):
    """How much nearer `pred` is to `negative` than to `positive`, plus a margin, at least 0.

    Args:
        margin: how much nearer it should be to `positive`.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(
        self, F: Any, pred: Any, positive: Any, negative: Any, sample_weight: Any = None
    ) -> Any:
        near, far = (F.square(F.reshape_like(x, pred) - pred) for x in (positive, negative))
        loss = F.sum(near - far, axis=self._batch_axis, exclude=True)
        return self._weighted(F, F.relu(loss + self._margin), sample_weight)


class PoissonNLLLoss(Loss):
    """The negative logarithm of a Poisson distribution's likelihood; one mean for the whole batch.

    Args:
        from_logits: `pred` is the logarithm of the distribution's mean; else the mean.
        compute_full: add Stirling's term for targets above 1.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(
        self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08
    ) -> Any:
        target = F.reshape_like(target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            large = F.broadcast_maximum(target, F.ones_like(target))  # below, the term is dropped
            stirling = large * F.log(large) - large + 0.5 * F.log(2 * math.pi * large)
            loss = loss + stirling * (target > 1)
        return F.mean(self._weighted(F, loss, sample_weight))


class CosineEmbeddingLoss(Loss):
    """Of pairs of vectors: 1 less their cosine, or for the label -1 the cosine above a margin.

    The loss has the shape (pairs, 1).

    Args:
        margin: the cosine that unlike vectors may have.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(
        self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None
    ) -> Any:
        input1 = F.reshape_like(input1, input2)
        label = F.reshape(label, shape=(-1, 1))
        cosine = F.reshape(self._cosine(F, input1, input2), shape=(-1, 1))
        alike = (1 - cosine) * (label == 1)
        unlike = F.relu((cosine - self._margin) * (label == -1))
        return self._weighted(F, alike + unlike, sample_weight)

    def _cosine(self, F: Any, a: Any, b: Any) -> Any:
        lengths = F.norm(a, axis=-1) * F.norm(b, axis=-1)
        return F.sum(a * b, axis=-1) / F.broadcast_maximum(lengths, F.full((1,), SMALL))


class SDMLLoss(Loss):
    """Smoothed deep metric learning: each of `x1` is nearest to the one of `x2` in its place.

    Args:
        smoothing_parameter: how likely all others together are.
        weight, batch_axis: as for `Loss`.
    """

    def __init__(
        self,
        smoothing_parameter: float = 0.3,
        weight: float | None = 1.0,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        a, b = F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0)
        distances = F.sum(F.square(F.broadcast_sub(a, b)), axis=2)
        return self.kl_loss(F.log_softmax(-distances, axis=1), self._labels(F, x1, distances))

    def _labels(self, F: Any, x1: Any, distances: Any) -> Any:
        """How likely each of `x2` is for each of `x1`."""
        if F is not nd:
            raise ShapeError("SDMLLoss: needs to know the batch size: do not hybridize it")
        count, rest = x1.shape[0], self.smoothing_parameter
        gold = F.eye(count, ctx=distances.context, dtype=distances.dtype)
        return gold * (1 - rest) + (1 - gold) * (rest / max(count - 1, 1))

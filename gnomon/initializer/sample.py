"""Initializers that draw random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon import random
from gnomon.base import ParamError, ShapeError, complaint, shown
from gnomon.initializer.base import Initializer, register


@register
class Uniform(Initializer):
    """Uniform numbers from -scale to scale."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: Any) -> None:
        random.uniform(-self.scale, self.scale, out=arr)


@register
class Normal(Initializer):
    """Normal numbers with mean 0 and standard deviation sigma."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: Any) -> None:
        random.normal(0, self.sigma, out=arr)


@register
class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns (whichever are fewer) of length `scale`.

    All axes after the first are taken as one. Saxe et al., arXiv:1312.6120.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type
        _check_choice("Orthogonal", "rand_type", rand_type, ("uniform", "normal"))

    def _init_weight(self, _: str, arr: Any) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        sample = random.uniform if self.rand_type == "uniform" else random.normal
        low = -1.0 if self.rand_type == "uniform" else 0.0  # the range, or mean and deviation
        draw = sample(low, 1.0, shape=shape)
        left, _, right = np.linalg.svd(draw.asnumpy(), full_matrices=False)
        basis = left if left.shape == shape else right
        arr[:] = (self.scale * basis).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Numbers whose variance keeps signals at one scale through layers (Glorot and Bengio, 2010).

    The range (`uniform`) or standard deviation (`gaussian`) is `sqrt(magnitude / n)` with n the
    number of inputs (`in`), of outputs (`out`), or their mean (`avg`). Weights: (outputs, inputs,
    *kernel).
    """

    def __init__(
        self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3
    ) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)
        _check_choice("Xavier", "rnd_type", rnd_type, ("uniform", "gaussian"))
        _check_choice("Xavier", "factor_type", factor_type, ("avg", "in", "out"))

    def _init_weight(self, name: str, arr: Any) -> None:
        if len(arr.shape) < 2:
            raise ShapeError(complaint(type(self).__name__, name, "2 axes or more", arr.shape))
        kernel = math.prod(arr.shape[2:])
        inputs, outputs = arr.shape[1] * kernel, arr.shape[0] * kernel
        count = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}[self.factor_type]
        scale = math.sqrt(self.magnitude / count)
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, out=arr)
        else:
            random.normal(0, scale, out=arr)


@register
class MSRAPrelu(Xavier):
    """Xavier for layers followed by PReLU of the given slope (He et al., arXiv:1502.01852)."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


def _check_choice(where: str, argument: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParamError(complaint(where, argument, f"one of {choices}", shown(value)))

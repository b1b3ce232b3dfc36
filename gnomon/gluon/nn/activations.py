"""Activation layers."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon import initializer
from gnomon.base import ParamError, complaint
from gnomon.gluon.block import HybridBlock
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """A function of each element: 'relu', 'sigmoid', 'tanh', 'softrelu' or 'softsign'.

    >>> import gnomon as mx
    >>> Activation("relu")(mx.nd.array([-1, 2])).asnumpy()
    array([0., 2.], dtype=float32)
    """

    _fields: ClassVar = {
        "activation": Field("Activation.act_type"),
    }

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """`x` where it is above 0, else `alpha * x`.

    >>> import gnomon as mx
    >>> LeakyReLU(0.5)(mx.nd.array([-1, 2])).asnumpy()
    array([-0.5,  2. ], dtype=float32)

    Raises:
        ParamError: `alpha` is below 0.
    """

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        if alpha < 0:
            raise ParamError(complaint("LeakyReLU", "alpha", "at least 0", alpha))
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """A leaky ReLU whose slope is learned: one for each channel (axis 1), or for all."""

    _fields: ClassVar = {
        "in_channels": Whole(1),
    }

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        init = initializer.Constant(0.25) if alpha_initializer is None else alpha_initializer
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """`x` where it is above 0, else `alpha * (exp(x) - 1)`."""

    _fields: ClassVar = {
        "alpha": Field("LeakyReLU.slope"),
    }

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The exponential linear unit of self-normalizing networks."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """`x` times the normal distribution's probability below `x`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """`x * sigmoid(beta * x)`."""

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * F.sigmoid(self._beta * x, name="fwd")

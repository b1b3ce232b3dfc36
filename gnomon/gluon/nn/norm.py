"""Layers that normalize."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.dtype import wanted as wanted_dtype
from gnomon.gluon.block import HybridBlock
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field


class _Norm(HybridBlock):
    """What they share: a factor and a shift for each channel, and how they are shown."""

    def __init__(
        self, settings: dict[str, Any], size: int, gamma: Any, beta: Any, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = settings
        with self.name_scope():
            self.gamma = self._param("gamma", size, *gamma)
            self.beta = self._param("beta", size, *beta)

    def _param(self, name: str, size: int, trained: bool, init: Any) -> Any:
        """A number for each channel, trained or left as it is."""
        return self.params.get(
            name,
            grad_req="write" if trained else "null",
            shape=(size,),
            init=init,
            allow_deferred_init=True,
            differentiable=bool(trained),
        )

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({settings}, in_channels={self._channels()})"

    def _channels(self) -> int | None:
        """How many channels `repr` shows."""
        return self.gamma.shape[0]


class BatchNormBase(_Norm):
    """Normalization over a batch, with averages of mean and variance kept for prediction."""

    _fields: ClassVar = {
        "axis": Field("BatchNorm.axis"),
        "momentum": Field("BatchNorm.momentum"),
        "epsilon": Field("BatchNorm.eps"),
        "use_global_stats": Field("BatchNorm.use_global_stats"),
        "in_channels": Whole(0),
    }

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        settings = {
            "axis": axis,
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        gamma, beta = (scale, gamma_initializer), (center, beta_initializer)
        super().__init__(settings, in_channels, gamma, beta, **kwargs)
        with self.name_scope():
            state = False, running_mean_initializer
            self.running_mean = self._param("running_mean", in_channels, *state)
            state = False, running_variance_initializer
            self.running_var = self._param("running_var", in_channels, *state)

    def cast(self, dtype: Any) -> None:
        """Have parameters of another type; in half precision they stay float32."""
        super().cast("float32" if wanted_dtype(dtype).name == "float16" else dtype)

    def _channels(self) -> int | None:
        return self.gamma.shape[0] or None


class BatchNorm(BatchNormBase):
    """Normalization over a batch of all but the axis of channels.

    The running mean and variance move in `backward`, and so not where it is frozen: where neither
    its parameters nor anything below it wants a gradient.

    >>> import gnomon as mx
    >>> layer = BatchNorm()
    >>> layer.initialize()
    >>> with mx.autograd.record():
    ...     y = layer(mx.nd.array([[1, 2], [3, 6]]))
    >>> y.asnumpy().round(2)
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        states = gamma, beta, running_mean, running_var
        return F.BatchNorm(x, *states, name="fwd", **self._kwargs)


class BatchNormReLU(BatchNormBase):
    """`BatchNorm`, and its values where they are above 0, else 0."""

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        states = gamma, beta, running_mean, running_var
        return F.contrib.BatchNormWithReLU(x, *states, name="fwd", **self._kwargs)


class InstanceNorm(_Norm):
    """Normalization of each channel of each sample."""

    _fields: ClassVar = {
        "axis": Field("SwapAxis.dim2"),
        "epsilon": Field("InstanceNorm.eps"),
        "in_channels": Whole(0),
    }

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        settings = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        gamma, beta = (scale, gamma_initializer), (center, beta_initializer)
        super().__init__(settings, in_channels, gamma, beta, **kwargs)
        self._axis, self._epsilon = axis, epsilon

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = x.swapaxes(1, self._axis)
        return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon).swapaxes(1, self._axis)


class LayerNorm(_Norm):
    """Normalization over one axis, by default the last.

    >>> import gnomon as mx
    >>> layer = LayerNorm()
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 3], [2, 6]])).asnumpy().round(2)
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """

    _fields: ClassVar = {
        "axis": Field("LayerNorm.axis"),
        "epsilon": Field("LayerNorm.eps"),
        "in_channels": Whole(0),
    }

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        settings = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        gamma, beta = (scale, gamma_initializer), (center, beta_initializer)
        super().__init__(settings, in_channels, gamma, beta, prefix=prefix, params=params)
        self._axis, self._epsilon = axis, epsilon

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Normalization of groups of channels of each sample, with a factor and shift a group."""

    _fields: ClassVar = {
        "num_groups": Whole(1),
        "epsilon": Field("GroupNorm.eps"),
    }

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        settings = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        gamma, beta = (scale, gamma_initializer), (center, beta_initializer)
        super().__init__(settings, num_groups, gamma, beta, prefix=prefix, params=params)
        self._num_groups, self._epsilon = num_groups, epsilon

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        settings = {"num_groups": self._num_groups, "eps": self._epsilon}
        return F.GroupNorm(data, gamma=gamma, beta=beta, **settings)

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"{type(self).__name__}({settings})"

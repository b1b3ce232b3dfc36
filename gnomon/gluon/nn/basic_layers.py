"""Basic layers: dense, dropout, embedding and their like; MXNet's module has the others too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import ParamError, complaint, nearest, shown
from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.nn.activations import Activation
from gnomon.gluon.nn.norm import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm
from gnomon.gluon.nn.sequential import HybridSequential, Sequential
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = [
    "BatchNorm",
    "BatchNormReLU",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Sequential",
]


class Dense(HybridBlock):
    """`activation(dot(x, weight.T) + bias)`.

    >>> import gnomon as mx
    >>> layer = Dense(2, use_bias=False, weight_initializer="ones")
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 2, 3]])).asnumpy()
    array([[6., 6.]], dtype=float32)

    Args:
        units: the size of the output.
        activation: the name of an activation after it.
        use_bias: whether there is a bias.
        flatten: join all but the first axis of the input; else the last axis alone is replaced.
        dtype: the type of the parameters.
        weight_initializer, bias_initializer: how they begin.
        in_units: the size of the input; 0 leaves that to the first one.
    """

    _fields: ClassVar = {
        "units": Whole(1),
        "activation": Field("Activation.act_type", optional=True),
        "flatten": Field("FullyConnected.flatten"),
        "in_units": Whole(0),
    }

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._flatten = flatten
        self._units, self._in_units = units, in_units
        late = {"allow_deferred_init": True, "dtype": dtype}
        with self.name_scope():
            shape = units, in_units
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, **late)
            self.bias = None
            if use_bias:
                self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, **late)
            self.act = None
            if activation is not None:
                self.act = Activation(activation, prefix=activation + "_")

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        found = F.FullyConnected(
            x,
            weight,
            bias,
            no_bias=bias is None,
            num_hidden=self._units,
            flatten=self._flatten,
            name="fwd",
        )
        return found if self.act is None else self.act(found)

    def __repr__(self) -> str:
        units, size = self.weight.shape
        return f"{type(self).__name__}({size or None} -> {units}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """While training, elements are 0 with probability `rate`, the others larger accordingly.

    Along `axes`, all elements share their fate.
    """

    _fields: ClassVar = {
        "axes": Field("Dropout.axes", optional=True),
    }

    def __init__(self, rate: float, axes: Any = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """Rows of a table of `input_dim` by `output_dim`, looked up by number.

    >>> import gnomon as mx
    >>> layer = Embedding(10, 3)
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 2]])).shape
    (1, 2, 3)

    With `sparse_grad`, the table's gradient holds only rows that were looked up.
    """

    _fields: ClassVar = {
        "input_dim": Whole(1),
        "output_dim": Whole(1),
        "sparse_grad": Field("Embedding.sparse_grad"),
    }

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": sparse_grad,
        }
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(input_dim, output_dim),
                init=weight_initializer,
                dtype=dtype,
                allow_deferred_init=True,
                grad_stype="row_sparse" if sparse_grad else "default",
            )

    def cast(self, dtype: Any) -> None:
        """Have a table of another type."""
        self._kwargs["dtype"] = np.dtype(dtype).name
        super().cast(dtype)

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{}({input_dim} -> {output_dim}, {dtype})".format(
            type(self).__name__, **self._kwargs
        )


class Flatten(HybridBlock):
    """All but the first axis joined to one."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Lambda(Block):
    """A function of arrays as a block: its name in `mx.nd`, or itself.

    >>> import gnomon as mx
    >>> Lambda(lambda x: x * 2)(mx.nd.ones((1,))).asnumpy()
    array([2.], dtype=float32)

    Raises:
        ParamError: there is no such function.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._func_impl = _function("Lambda", nd, function)

    def forward(self, *args: Any) -> Any:
        """What the function gives."""
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_impl.__name__})"


class HybridLambda(HybridBlock):
    """A function of `F` and arrays or symbols as a block: itself, or its name.

    >>> import gnomon as mx
    >>> HybridLambda(lambda F, x: F.relu(x))(mx.nd.array([-1])).asnumpy()
    array([0.], dtype=float32)

    Raises:
        ParamError: there is no such function.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            _function("HybridLambda", nd, function)
            _function("HybridLambda", sym, function)
        elif not callable(function):
            _function("HybridLambda", nd, function)
        self._func = function
        self._func_name = function if isinstance(function, str) else function.__name__

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        if isinstance(self._func, str):
            return getattr(F, self._func)(x, *args)
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"


def _function(where: str, module: Any, function: Any) -> Any:
    """The function of a name, or itself."""
    if callable(function):
        return function
    if isinstance(function, str) and hasattr(module, function):
        return getattr(module, function)
    hint = nearest(function, dir(module)) if isinstance(function, str) else ""
    expected = f"a function, or the name of one in {module.__name__}{hint}"
    raise ParamError(complaint(where, "function", expected, shown(function)))

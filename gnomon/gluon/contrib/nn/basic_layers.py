"""More layers: blocks side by side, rows of tables, pixels rearranged."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon import ndarray as nd
from gnomon.gluon.block import Block, HybridBlock
from gnomon.gluon.contrib.nn.sync_batch_norm import SyncBatchNorm
from gnomon.gluon.nn import BatchNorm, HybridSequential, Sequential
from gnomon.gluon.nn.pooling import sizes
from gnomon.ground.arguments import Whole
from gnomon.ops.fields import Field

__all__ = [
    "BatchNorm",
    "Block",
    "Concurrent",
    "HybridBlock",
    "HybridConcurrent",
    "HybridSequential",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "Sequential",
    "SparseEmbedding",
    "SyncBatchNorm",
]


class Concurrent(Sequential):
    """Blocks side by side: all get the input, their outputs are joined along `axis`.

    >>> import gnomon as mx
    >>> net = Concurrent(axis=1)
    >>> net.add(Identity(), Identity())
    >>> net(mx.nd.ones((2, 3))).shape
    (2, 6)
    """

    _fields: ClassVar = {
        "axis": Field("Concat.dim"),
    }

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """The outputs of all blocks, joined."""
        return nd.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks side by side: all get the input, their outputs are joined along `axis`."""

    _fields: ClassVar = {
        "axis": Field("Concat.dim"),
    }

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The outputs of all blocks, joined."""
        return F.concat(*(block(x) for block in self._children.values()), dim=self.axis)


class Identity(HybridBlock):
    """The input as it is."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x


class SparseEmbedding(Block):
    """Rows of a large table, which is in row-sparse storage and in a Trainer's store."""

    _fields: ClassVar = {
        "input_dim": Whole(1),
        "output_dim": Whole(1),
    }

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": True,
        }
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(input_dim, output_dim),
                init=weight_initializer,
                dtype=dtype,
                grad_stype="row_sparse",
                stype="row_sparse",
            )

    def forward(self, x: Any) -> Any:
        """The rows of these numbers."""
        return nd.Embedding(x, self.weight.row_sparse_data(x), name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        known = self._kwargs
        sizes = f"{known['input_dim']} -> {known['output_dim']}"
        return f"{type(self).__name__}({sizes}, {known['dtype']})"


class _PixelShuffle(HybridBlock):
    """Channels rearranged to pixels: each takes a factor along each axis of the image."""

    _axes = 2

    def __init__(self, factor: Any) -> None:
        super().__init__()
        self._factors = sizes(type(self).__name__, "factor", factor, self._axes)

    def __repr__(self) -> str:
        shown = self._factors if self._axes > 1 else self._factors[0]
        return f"{type(self).__name__}({shown})"


class PixelShuffle1D(_PixelShuffle):
    """`(N, f C, W)` rearranged to `(N, C, f W)`.

    >>> import gnomon as mx
    >>> PixelShuffle1D(2)(mx.nd.array([[[1, 2], [3, 4]]])).asnumpy()
    array([[[1., 3., 2., 4.]]], dtype=float32)
    """

    _axes = 1

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        (f,) = self._factors
        x = F.reshape(x, shape=(0, -4, -1, f, 0))
        x = F.transpose(x, axes=(0, 1, 3, 2))
        return F.reshape(x, shape=(0, 0, -3))


class PixelShuffle2D(_PixelShuffle):
    """`(N, f g C, H, W)` rearranged to `(N, C, f H, g W)`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        f, g = self._factors
        x = F.reshape(x, shape=(0, -4, -1, f * g, 0, 0))
        x = F.reshape(x, shape=(0, 0, -4, f, g, 0, 0))
        x = F.transpose(x, axes=(0, 1, 4, 2, 5, 3))
        return F.reshape(x, shape=(0, 0, -3, -3))


class PixelShuffle3D(_PixelShuffle):
    """`(N, f g h C, D, H, W)` rearranged to `(N, C, f D, g H, h W)`."""

    _axes = 3

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        f, g, h = self._factors
        x = F.reshape(x, shape=(0, -4, -1, f * g * h, 0, 0, 0))
        x = F.swapaxes(x, dim1=2, dim2=3)
        x = F.reshape(x, shape=(0, 0, 0, -4, f, g * h, 0, 0))
        x = F.reshape(x, shape=(0, 0, -3, 0, 0, 0))
        x = F.swapaxes(x, dim1=3, dim2=4)
        x = F.reshape(x, shape=(0, 0, 0, 0, -4, g, h, 0))
        x = F.reshape(x, shape=(0, 0, 0, -3, 0, 0))
        x = F.swapaxes(x, dim1=4, dim2=5)
        return F.reshape(x, shape=(0, 0, 0, 0, -3))

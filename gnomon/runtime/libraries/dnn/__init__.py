"""Convolution, pooling and matrix products by oneDNN, where it is installed."""

from gnomon.runtime.libraries.dnn.convolution import (
    convolution_backward_data,
    convolution_backward_weight,
    convolution_forward,
)
from gnomon.runtime.libraries.dnn.geometry import Convolution
from gnomon.runtime.libraries.dnn.layout import CHOSEN, PLAIN, Layout, last
from gnomon.runtime.libraries.dnn.library import Unsupported, available, why_not
from gnomon.runtime.libraries.dnn.matmul import matmul, supports_matmul
from gnomon.runtime.libraries.dnn.phases import DnnStep, share_workspace
from gnomon.runtime.libraries.dnn.pooling import (
    Pooling,
    backward_pool,
    forward_pool,
    pooling_backward,
    pooling_forward,
    winner_bytes,
)
from gnomon.runtime.libraries.dnn.primitives import (
    data_primitive,
    forward_primitive,
    weight_primitive,
)

__all__ = [
    "CHOSEN",
    "PLAIN",
    "Convolution",
    "DnnStep",
    "Layout",
    "Pooling",
    "Unsupported",
    "available",
    "backward_pool",
    "convolution_backward_data",
    "convolution_backward_weight",
    "convolution_forward",
    "data_primitive",
    "forward_pool",
    "forward_primitive",
    "last",
    "matmul",
    "pooling_backward",
    "pooling_forward",
    "share_workspace",
    "supports_matmul",
    "weight_primitive",
    "why_not",
    "winner_bytes",
]

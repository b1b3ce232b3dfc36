"""Work that a library does as a whole: matrix products, convolutions, poolings, by family."""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving
from gnomon.expr.call.dot import BatchDot, Dot, batch_dot, dot

if TYPE_CHECKING:
    from gnomon.expr.call.conv import (
        BiasedConvolution,
        Convolution,
        ConvolutionData,
        ConvolutionWeight,
        convolution,
    )
    from gnomon.expr.call.order import Order, along, put_along
    from gnomon.expr.call.pool import (
        AvgPool,
        AvgPoolGradient,
        MaxPool,
        MaxPoolGradient,
        avg_pool,
        max_pool,
    )
    from gnomon.expr.call.rnn import Layer, Recurrence, RecurrenceGradient

__all__ = [
    "AvgPool",
    "AvgPoolGradient",
    "BatchDot",
    "BiasedConvolution",
    "Convolution",
    "ConvolutionData",
    "ConvolutionWeight",
    "Dot",
    "Layer",
    "MaxPool",
    "MaxPoolGradient",
    "Order",
    "Recurrence",
    "RecurrenceGradient",
    "along",
    "avg_pool",
    "batch_dot",
    "convolution",
    "dot",
    "max_pool",
    "put_along",
]

# a statement needs none of them; `dot` is also the name of its module, which would come first
_FILES = {
    "conv": "BiasedConvolution Convolution ConvolutionData ConvolutionWeight convolution",
    "order": "Order along put_along",
    "pool": "AvgPool AvgPoolGradient MaxPool MaxPoolGradient avg_pool max_pool",
    "rnn": "Layer Recurrence RecurrenceGradient",
}

__getattr__, __dir__ = resolving(__name__, _FILES, __all__)

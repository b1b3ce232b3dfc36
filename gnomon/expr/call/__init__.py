"""Work that a library does as a whole: matrix products, convolutions, poolings, by family."""

from gnomon.expr.call.conv import (
    BiasedConvolution,
    Convolution,
    ConvolutionData,
    ConvolutionWeight,
    convolution,
)
from gnomon.expr.call.dot import BatchDot, Dot, batch_dot, dot
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
    "Recurrence",
    "RecurrenceGradient",
    "avg_pool",
    "batch_dot",
    "convolution",
    "dot",
    "max_pool",
]

"""Work that a library does as a whole: matrix products, convolutions, poolings, by family."""

from typing import TYPE_CHECKING

from gnomon.compatibility.absent import resolving
from gnomon.expr.call.dot import (
    BatchDot as BatchDot,
    Dot as Dot,
    batch_dot as batch_dot,
    dot as dot,
)

if TYPE_CHECKING:
    from gnomon.expr.call.conv import (
        BiasedConvolution as BiasedConvolution,
        Convolution as Convolution,
        ConvolutionData as ConvolutionData,
        ConvolutionWeight as ConvolutionWeight,
        convolution as convolution,
    )
    from gnomon.expr.call.order import Order as Order, along as along, put_along as put_along
    from gnomon.expr.call.pool import (
        AvgPool as AvgPool,
        AvgPoolGradient as AvgPoolGradient,
        MaxPool as MaxPool,
        MaxPoolGradient as MaxPoolGradient,
        avg_pool as avg_pool,
        max_pool as max_pool,
    )
    from gnomon.expr.call.rnn import (
        Layer as Layer,
        Recurrence as Recurrence,
        RecurrenceGradient as RecurrenceGradient,
    )


# a statement needs none of them; `dot` is also the name of its module, which would come first
_FILES = {
    "conv": "BiasedConvolution Convolution ConvolutionData ConvolutionWeight convolution",
    "order": "Order along put_along",
    "pool": "AvgPool AvgPoolGradient MaxPool MaxPoolGradient avg_pool max_pool",
    "rnn": "Layer Recurrence RecurrenceGradient",
}

__getattr__, __dir__ = resolving(__name__, _FILES, ("BatchDot", "Dot", "batch_dot", "dot"))

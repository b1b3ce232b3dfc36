"""Convolution, pooling and matrix products by oneDNN, where it is installed."""

from gnomon.runtime.libraries.dnn.convolution import (
    convolution_backward_data as convolution_backward_data,
    convolution_backward_weight as convolution_backward_weight,
    convolution_forward as convolution_forward,
)
from gnomon.runtime.libraries.dnn.geometry import Convolution as Convolution
from gnomon.runtime.libraries.dnn.layout import (
    CHOSEN as CHOSEN,
    PLAIN as PLAIN,
    Layout as Layout,
    last as last,
)
from gnomon.runtime.libraries.dnn.library import (
    Unsupported as Unsupported,
    available as available,
    why_not as why_not,
)
from gnomon.runtime.libraries.dnn.matmul import matmul as matmul, supports_matmul as supports_matmul
from gnomon.runtime.libraries.dnn.phases import (
    DnnStep as DnnStep,
    share_workspace as share_workspace,
)
from gnomon.runtime.libraries.dnn.pooling import (
    Pooling as Pooling,
    backward_pool as backward_pool,
    forward_pool as forward_pool,
    pooling_backward as pooling_backward,
    pooling_forward as pooling_forward,
)
from gnomon.runtime.libraries.dnn.primitives import (
    data_primitive as data_primitive,
    forward_primitive as forward_primitive,
    weight_primitive as weight_primitive,
)

"""Tensors whose formulas run as one loop of machine code each.

>>> import numpy as np
>>> from gnomon import shadow
>>> w = shadow.Tensor(np.array([1.0, 2.0, 3.0], np.float32))
>>> g = shadow.Tensor(np.array([10.0, 20.0, 30.0], np.float32))
>>> w[:] = -0.1 * (g + 0.5 * w)
>>> w.numpy()
array([-1.0500001, -2.1000001, -3.15     ], dtype=float32)
"""

from gnomon.dtype import default_real as default_real_t
from gnomon.expr import fn, reducer
from gnomon.expr import reducer as red
from gnomon.expr.ext import (
    arg_reduce,
    broadcast_axis,
    broadcast_to,
    concat,
    crop,
    flip,
    implicit_dot,
    iota,
    mat_fill_row_element,
    one_hot,
    pack_col2patch,
    pad,
    pick,
    pool,
    reduce,
    reshape,
    slice_,
    swapaxis,
    take,
    take_grad,
    transpose,
    unpack_patch2col,
    unpool,
)
from gnomon.expr.frontend import op
from gnomon.expr.node import (
    Cast as TypecastExp,
)
from gnomon.expr.node import (
    Expr as Exp,
)
from gnomon.expr.node import (
    Map,
)
from gnomon.expr.node import (
    Scalar as ScalarExp,
)
from gnomon.shadow.assign import divto, minusto, multo, plusto, saveto
from gnomon.shadow.blob import TBlob, type_switch
from gnomon.shadow.container import (
    TensorContainer,
    alloc_space,
    copy,
    free_space,
    new_tensor,
)
from gnomon.shadow.language import (
    F,
    Plan,
    batch_dot,
    dot,
    exp_type,
    kChainer,
    kComplex,
    kDevCPU,
    kDevGPU,
    kMapper,
    kRValue,
    make_exp,
    make_plan,
    scalar,
    tcast,
)
from gnomon.shadow.stream import (
    Stream,
    delete_stream,
    init_tensor_engine,
    new_stream,
    set_device,
    shutdown_tensor_engine,
)
from gnomon.shadow.tensor import Tensor
from gnomon.shape import Shape, Shape1, Shape2, Shape3, Shape4, Shape5, convert_layout

__all__ = [
    "Exp",
    "F",
    "Map",
    "Plan",
    "ScalarExp",
    "Shape",
    "Shape1",
    "Shape2",
    "Shape3",
    "Shape4",
    "Shape5",
    "Stream",
    "TBlob",
    "Tensor",
    "TensorContainer",
    "TypecastExp",
    "alloc_space",
    "arg_reduce",
    "batch_dot",
    "broadcast_axis",
    "broadcast_to",
    "concat",
    "convert_layout",
    "copy",
    "crop",
    "default_real_t",
    "delete_stream",
    "divto",
    "dot",
    "exp_type",
    "flip",
    "fn",
    "free_space",
    "implicit_dot",
    "init_tensor_engine",
    "iota",
    "kChainer",
    "kComplex",
    "kDevCPU",
    "kDevGPU",
    "kMapper",
    "kRValue",
    "make_exp",
    "make_plan",
    "mat_fill_row_element",
    "minusto",
    "multo",
    "new_stream",
    "new_tensor",
    "one_hot",
    "op",
    "pack_col2patch",
    "pad",
    "pick",
    "plusto",
    "pool",
    "red",
    "reduce",
    "reducer",
    "reshape",
    "saveto",
    "scalar",
    "set_device",
    "shutdown_tensor_engine",
    "slice_",
    "swapaxis",
    "take",
    "take_grad",
    "tcast",
    "transpose",
    "type_switch",
    "unpack_patch2col",
    "unpool",
]

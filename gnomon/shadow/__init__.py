"""Tensors whose formulas run as one loop of machine code each.

>>> import numpy as np
>>> from gnomon import shadow
>>> w = shadow.Tensor(np.array([1.0, 2.0, 3.0], np.float32))
>>> g = shadow.Tensor(np.array([10.0, 20.0, 30.0], np.float32))
>>> w[:] = -0.1 * (g + 0.5 * w)
>>> w.numpy()
array([-1.0500001, -2.1000001, -3.15     ], dtype=float32)
"""

from collections.abc import Callable

from gnomon.base import UnknownNameError
from gnomon.dtype import default_real as default_real_t
from gnomon.expr import fn, reducer
from gnomon.expr.ext import (
    arg_reduce,
    broadcast_axis,
    broadcast_keepdim,
    broadcast_scalar,
    broadcast_to,
    broadcast_with_axis,
    ch_unpool,
    chpool,
    complex_abs_square,
    complex_div_cc,
    complex_div_cr,
    complex_div_rc,
    complex_exchange,
    complex_mul_cc,
    complex_mul_cr,
    complex_mul_rc,
    complex_pad_imag,
    complex_sum_real_imag,
    complex_toreal,
    conj,
    cumprod,
    cumsum,
    first,
    implicit_dot,
    interpolate,
    iota,
    logcumsumexp,
    mask,
    mat_choose_row_element,
    mat_fill_row_element,
    mirror,
    one_hot,
    pick,
    reduce,
    reduce_except_dim,
    reduce_keepdim,
    reduce_with_axis,
    repmat,
    reshape,
    scan,
    slice_,
    sum_rows,
    sumall_except_dim,
    swapaxis,
    take_grad,
    transpose,
    transpose_indices,
    upsampling_nearest,
)
from gnomon.expr.ext import broadcast_axis as broadcast
from gnomon.expr.extension import elsewhere as _elsewhere
from gnomon.expr.extension import extension, find
from gnomon.expr.functions.frontend import op
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
from gnomon.shadow import red
from gnomon.shadow.assign import divto, minusto, multo, plusto, saveto
from gnomon.shadow.binary import load_binary, save_binary
from gnomon.shadow.blob import TBlob, type_switch
from gnomon.shadow.container import (
    TensorContainer,
    alloc_space,
    copy,
    free_space,
    new_tensor,
)
from gnomon.shadow.extensions import (
    crop,
    one_hot_encode,
    pack_col2patch,
    pad,
    pool,
    range,  # noqa: F401
    take,
    unpack_patch2col,
    unpool,
)
from gnomon.shadow.functions import (
    add_take_grad,
    add_take_grad_large_batch,
    batch_gemm,
    index_fill,
    map_exp,
    map_reduce_keep_high_dim,
    map_reduce_keep_lowest,
    softmax,
    softmax_grad,
    sort_by_key,
    vector_dot,
    vectorized_sort,
)
from gnomon.shadow.functions import batch_gemm as BatchGEMM
from gnomon.shadow.jit import jit
from gnomon.shadow.kinds import (
    BinaryMapExp,
    DotExp,
    ExpInfo,
    RValueExp,
    TernaryMapExp,
    TransposeExp,
    UnaryMapExp,
)
from gnomon.shadow.language import (
    F,
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
    scalar,
    tcast,
)
from gnomon.shadow.lvalue import Joined, concat, flip, slice, slice_ex  # noqa: F401
from gnomon.shadow.plan import Plan, make_plan
from gnomon.shadow.random import Random
from gnomon.shadow.stream import (
    Stream,
    cpu,
    delete_stream,
    gpu,
    init_tensor_engine,
    new_stream,
    set_device,
    shutdown_tensor_engine,
)
from gnomon.shadow.tensor import Tensor
from gnomon.shape import Shape, Shape1, Shape2, Shape3, Shape4, Shape5, convert_layout


def __getattr__(name: str) -> Callable[..., Exp]:
    if name.startswith("_"):  # Python's own questions are no reason to import other packages
        raise AttributeError(f"module 'gnomon.shadow' has no attribute {name!r}")
    try:
        return find(name)
    except UnknownNameError as error:
        raise AttributeError(f"gnomon.shadow: {error}{_elsewhere(name)}") from None


# all but `range` and `slice`: `from gnomon.shadow import *` leaves Python's own alone
__all__ = [
    "BatchGEMM",
    "BinaryMapExp",
    "DotExp",
    "Exp",
    "ExpInfo",
    "F",
    "Joined",
    "Map",
    "Plan",
    "RValueExp",
    "Random",
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
    "TernaryMapExp",
    "TransposeExp",
    "TypecastExp",
    "UnaryMapExp",
    "add_take_grad",
    "add_take_grad_large_batch",
    "alloc_space",
    "arg_reduce",
    "batch_dot",
    "batch_gemm",
    "broadcast",
    "broadcast_axis",
    "broadcast_keepdim",
    "broadcast_scalar",
    "broadcast_to",
    "broadcast_with_axis",
    "ch_unpool",
    "chpool",
    "complex_abs_square",
    "complex_div_cc",
    "complex_div_cr",
    "complex_div_rc",
    "complex_exchange",
    "complex_mul_cc",
    "complex_mul_cr",
    "complex_mul_rc",
    "complex_pad_imag",
    "complex_sum_real_imag",
    "complex_toreal",
    "concat",
    "conj",
    "convert_layout",
    "copy",
    "cpu",
    "crop",
    "cumprod",
    "cumsum",
    "default_real_t",
    "delete_stream",
    "divto",
    "dot",
    "exp_type",
    "extension",
    "first",
    "flip",
    "fn",
    "free_space",
    "gpu",
    "implicit_dot",
    "index_fill",
    "init_tensor_engine",
    "interpolate",
    "iota",
    "jit",
    "kChainer",
    "kComplex",
    "kDevCPU",
    "kDevGPU",
    "kMapper",
    "kRValue",
    "load_binary",
    "logcumsumexp",
    "make_exp",
    "make_plan",
    "map_exp",
    "map_reduce_keep_high_dim",
    "map_reduce_keep_lowest",
    "mask",
    "mat_choose_row_element",
    "mat_fill_row_element",
    "minusto",
    "mirror",
    "multo",
    "new_stream",
    "new_tensor",
    "one_hot",
    "one_hot_encode",
    "op",
    "pack_col2patch",
    "pad",
    "pick",
    "plusto",
    "pool",
    "red",
    "reduce",
    "reduce_except_dim",
    "reduce_keepdim",
    "reduce_with_axis",
    "reducer",
    "repmat",
    "reshape",
    "save_binary",
    "saveto",
    "scalar",
    "scan",
    "set_device",
    "shutdown_tensor_engine",
    "slice_",
    "slice_ex",
    "softmax",
    "softmax_grad",
    "sort_by_key",
    "sum_rows",
    "sumall_except_dim",
    "swapaxis",
    "take",
    "take_grad",
    "tcast",
    "transpose",
    "transpose_indices",
    "type_switch",
    "unpack_patch2col",
    "unpool",
    "upsampling_nearest",
    "vector_dot",
    "vectorized_sort",
]

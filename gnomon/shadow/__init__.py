"""Tensors whose formulas run as one loop of machine code each.

>>> import numpy as np
>>> from gnomon import shadow
>>> w = shadow.Tensor(np.array([1.0, 2.0, 3.0], np.float32))
>>> g = shadow.Tensor(np.array([10.0, 20.0, 30.0], np.float32))
>>> w[:] = -0.1 * (g + 0.5 * w)
>>> w.numpy()
array([-1.0500001, -2.1000001, -3.15     ], dtype=float32)
"""

from collections.abc import Callable as _Callable

from gnomon.base import UnknownNameError as _UnknownNameError
from gnomon.compatibility.absent import public as _public
from gnomon.dtype import default_real as _default_real
from gnomon.expr import fn as fn, reducer as reducer
from gnomon.expr.ext import (
    arg_reduce as arg_reduce,
    broadcast_axis as broadcast_axis,
    broadcast_keepdim as broadcast_keepdim,
    broadcast_scalar as broadcast_scalar,
    broadcast_to as broadcast_to,
    broadcast_with_axis as broadcast_with_axis,
    ch_unpool as ch_unpool,
    chpool as chpool,
    complex_abs_square as complex_abs_square,
    complex_div_cc as complex_div_cc,
    complex_div_cr as complex_div_cr,
    complex_div_rc as complex_div_rc,
    complex_exchange as complex_exchange,
    complex_mul_cc as complex_mul_cc,
    complex_mul_cr as complex_mul_cr,
    complex_mul_rc as complex_mul_rc,
    complex_pad_imag as complex_pad_imag,
    complex_sum_real_imag as complex_sum_real_imag,
    complex_toreal as complex_toreal,
    conj as conj,
    cumprod as cumprod,
    cumsum as cumsum,
    first as first,
    implicit_dot as implicit_dot,
    interpolate as interpolate,
    iota as iota,
    logcumsumexp as logcumsumexp,
    mask as mask,
    mat_choose_row_element as mat_choose_row_element,
    mat_fill_row_element as mat_fill_row_element,
    mirror as mirror,
    one_hot as one_hot,
    pick as pick,
    reduce as reduce,
    reduce_except_dim as reduce_except_dim,
    reduce_keepdim as reduce_keepdim,
    reduce_with_axis as reduce_with_axis,
    repmat as repmat,
    reshape as reshape,
    scan as scan,
    slice_ as slice_,
    sum_rows as sum_rows,
    sumall_except_dim as sumall_except_dim,
    swapaxis as swapaxis,
    take_grad as take_grad,
    transpose as transpose,
    transpose_indices as transpose_indices,
    upsampling_nearest as upsampling_nearest,
)
from gnomon.expr.extension import elsewhere as _elsewhere, extension as extension, find as _find
from gnomon.expr.functions.frontend import op as op
from gnomon.expr.node import Cast as _Cast, Expr as _Expr, Map as Map, Scalar as _Scalar
from gnomon.shadow import red as red
from gnomon.shadow.assign import (
    divto as divto,
    minusto as minusto,
    multo as multo,
    plusto as plusto,
    saveto as saveto,
)
from gnomon.shadow.binary import load_binary as load_binary, save_binary as save_binary
from gnomon.shadow.blob import TBlob as TBlob, type_switch as type_switch
from gnomon.shadow.container import (
    TensorContainer as TensorContainer,
    alloc_space as alloc_space,
    copy as copy,
    free_space as free_space,
    new_tensor as new_tensor,
)
from gnomon.shadow.extensions import (
    crop as crop,
    one_hot_encode as one_hot_encode,
    pack_col2patch as pack_col2patch,
    pad as pad,
    pool as pool,
    range as range,
    take as take,
    unpack_patch2col as unpack_patch2col,
    unpool as unpool,
)
from gnomon.shadow.functions import (
    add_take_grad as add_take_grad,
    add_take_grad_large_batch as add_take_grad_large_batch,
    batch_gemm as batch_gemm,
    index_fill as index_fill,
    map_exp as map_exp,
    map_reduce_keep_high_dim as map_reduce_keep_high_dim,
    map_reduce_keep_lowest as map_reduce_keep_lowest,
    softmax as softmax,
    softmax_grad as softmax_grad,
    sort_by_key as sort_by_key,
    vector_dot as vector_dot,
    vectorized_sort as vectorized_sort,
)
from gnomon.shadow.jit import jit as jit
from gnomon.shadow.kinds import *
from gnomon.shadow.language import (
    F as F,
    batch_dot as batch_dot,
    dot as dot,
    exp_type as exp_type,
    kChainer as kChainer,
    kComplex as kComplex,
    kDevCPU as kDevCPU,
    kDevGPU as kDevGPU,
    kMapper as kMapper,
    kRValue as kRValue,
    make_exp as make_exp,
    scalar as scalar,
    tcast as tcast,
)
from gnomon.shadow.lvalue import (
    Joined as Joined,
    concat as concat,
    flip as flip,
    slice as slice,
    slice_ex as slice_ex,
)
from gnomon.shadow.plan import Plan as Plan, make_plan as make_plan
from gnomon.shadow.random import Random as Random
from gnomon.shadow.stream import (
    Stream as Stream,
    cpu as cpu,
    delete_stream as delete_stream,
    gpu as gpu,
    init_tensor_engine as init_tensor_engine,
    new_stream as new_stream,
    set_device as set_device,
    shutdown_tensor_engine as shutdown_tensor_engine,
)
from gnomon.shadow.tensor import Tensor as Tensor
from gnomon.shape import (
    Shape as Shape,
    Shape1 as Shape1,
    Shape2 as Shape2,
    Shape3 as Shape3,
    Shape4 as Shape4,
    Shape5 as Shape5,
    convert_layout as convert_layout,
)

BatchGEMM, broadcast = batch_gemm, broadcast_axis
Exp, ScalarExp, TypecastExp = _Expr, _Scalar, _Cast
default_real_t = _default_real


def __getattr__(name: str) -> _Callable[..., _Expr]:
    if name == "__all__":  # `from gnomon.shadow import *` leaves Python's `range` and `slice` alone
        names = {*_public(__name__, ("fn", "red", "reducer"))} - {"range", "slice"}
        return sorted(names)  # type: ignore[return-value]  # no operator, but Python's own question
    if name.startswith("_"):  # Python's own questions are no reason to import other packages
        raise AttributeError(f"module 'gnomon.shadow' has no attribute {name!r}")
    try:
        return _find(name)
    except _UnknownNameError as error:
        raise AttributeError(f"gnomon.shadow: {error}{_elsewhere(name)}") from None

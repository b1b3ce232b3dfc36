"""Extensions: expressions given by an index rule, one file each, with adjoint and cases."""

from gnomon.expr.ext.broadcast_axis import broadcast_axis
from gnomon.expr.ext.broadcast_scalar import broadcast_scalar
from gnomon.expr.ext.broadcast_with_axis import broadcast_keepdim, broadcast_with_axis
from gnomon.expr.ext.chpool import ch_unpool, chpool
from gnomon.expr.ext.complex_ import (
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
)
from gnomon.expr.ext.concat import concat
from gnomon.expr.ext.first import first
from gnomon.expr.ext.flip import flip
from gnomon.expr.ext.implicit_dot import implicit_dot
from gnomon.expr.ext.interpolate import interpolate
from gnomon.expr.ext.iota import iota
from gnomon.expr.ext.mask import mask
from gnomon.expr.ext.mat_choose_row_element import mat_choose_row_element
from gnomon.expr.ext.mirror import mirror
from gnomon.expr.ext.pack_col2patch import pack_col2patch, unpack_patch2col
from gnomon.expr.ext.philox import philox
from gnomon.expr.ext.pool import pool, unpool
from gnomon.expr.ext.range_ import range_
from gnomon.expr.ext.reduce import arg_reduce, broadcast_to, reduce
from gnomon.expr.ext.reduce_except_dim import reduce_except_dim, sum_rows, sumall_except_dim
from gnomon.expr.ext.reduce_with_axis import reduce_keepdim, reduce_with_axis
from gnomon.expr.ext.regions import regions
from gnomon.expr.ext.repmat import repmat
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.ext.scan import cumprod, cumsum, logcumsumexp, scan
from gnomon.expr.ext.slice_ import crop, pad, slice_
from gnomon.expr.ext.take import mat_fill_row_element, one_hot, pick, take, take_grad
from gnomon.expr.ext.transpose import swapaxis, transpose, transpose_indices
from gnomon.expr.ext.upsampling_nearest import upsampling_nearest

__all__ = [
    "arg_reduce",
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
    "crop",
    "cumprod",
    "cumsum",
    "first",
    "flip",
    "implicit_dot",
    "interpolate",
    "iota",
    "logcumsumexp",
    "mask",
    "mat_choose_row_element",
    "mat_fill_row_element",
    "mirror",
    "one_hot",
    "pack_col2patch",
    "pad",
    "philox",
    "pick",
    "pool",
    "range_",
    "reduce",
    "reduce_except_dim",
    "reduce_keepdim",
    "reduce_with_axis",
    "regions",
    "repmat",
    "reshape",
    "scan",
    "slice_",
    "sum_rows",
    "sumall_except_dim",
    "swapaxis",
    "take",
    "take_grad",
    "transpose",
    "transpose_indices",
    "unpack_patch2col",
    "unpool",
    "upsampling_nearest",
]

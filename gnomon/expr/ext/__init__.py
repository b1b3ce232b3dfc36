"""Extensions: expressions given by an index rule, one file each, with adjoint and cases."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.expr.ext.broadcast_axis import broadcast_axis as broadcast_axis
from gnomon.expr.ext.broadcast_scalar import broadcast_scalar as broadcast_scalar
from gnomon.expr.ext.broadcast_with_axis import (
    broadcast_keepdim as broadcast_keepdim,
    broadcast_with_axis as broadcast_with_axis,
)
from gnomon.expr.ext.chpool import ch_unpool as ch_unpool, chpool as chpool
from gnomon.expr.ext.complex_ import (
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
)
from gnomon.expr.ext.concat import concat as concat
from gnomon.expr.ext.first import first as first
from gnomon.expr.ext.flip import flip as flip
from gnomon.expr.ext.implicit_dot import implicit_dot as implicit_dot
from gnomon.expr.ext.interpolate import interpolate as interpolate
from gnomon.expr.ext.iota import iota as iota
from gnomon.expr.ext.mask import mask as mask
from gnomon.expr.ext.mat_choose_row_element import mat_choose_row_element as mat_choose_row_element
from gnomon.expr.ext.mirror import mirror as mirror
from gnomon.expr.ext.pack_col2patch import (
    pack_col2patch as pack_col2patch,
    unpack_patch2col as unpack_patch2col,
)
from gnomon.expr.ext.philox import philox as philox
from gnomon.expr.ext.pool import pool as pool, unpool as unpool
from gnomon.expr.ext.range_ import range_ as range_
from gnomon.expr.ext.reduce import (
    arg_reduce as arg_reduce,
    broadcast_to as broadcast_to,
    reduce as reduce,
)
from gnomon.expr.ext.reduce_except_dim import (
    reduce_except_dim as reduce_except_dim,
    sum_rows as sum_rows,
    sumall_except_dim as sumall_except_dim,
)
from gnomon.expr.ext.reduce_with_axis import (
    reduce_keepdim as reduce_keepdim,
    reduce_with_axis as reduce_with_axis,
)
from gnomon.expr.ext.regions import regions as regions
from gnomon.expr.ext.repmat import repmat as repmat
from gnomon.expr.ext.reshape import reshape as reshape
from gnomon.expr.ext.scan import (
    cumprod as cumprod,
    cumsum as cumsum,
    logcumsumexp as logcumsumexp,
    scan as scan,
)
from gnomon.expr.ext.slice_ import crop as crop, pad as pad, slice_ as slice_
from gnomon.expr.ext.take import (
    mat_fill_row_element as mat_fill_row_element,
    one_hot as one_hot,
    pick as pick,
    take as take,
    take_grad as take_grad,
)
from gnomon.expr.ext.transpose import (
    swapaxis as swapaxis,
    transpose as transpose,
    transpose_indices as transpose_indices,
)
from gnomon.expr.ext.upsampling_nearest import upsampling_nearest as upsampling_nearest

__getattr__, __dir__ = _showing(__name__)

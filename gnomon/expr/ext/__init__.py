"""Extensions: expressions given by an index rule, one file each, with adjoint and cases."""

from gnomon.expr.ext.broadcast import broadcast_axis
from gnomon.expr.ext.concat import concat
from gnomon.expr.ext.flip import flip
from gnomon.expr.ext.implicit_dot import implicit_dot
from gnomon.expr.ext.iota import iota
from gnomon.expr.ext.patch import pack_col2patch, unpack_patch2col
from gnomon.expr.ext.philox import philox
from gnomon.expr.ext.pool import pool, unpool
from gnomon.expr.ext.reduce import arg_reduce, broadcast_to, reduce
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.ext.slice import crop, pad, slice_
from gnomon.expr.ext.take import mat_fill_row_element, one_hot, pick, take, take_grad
from gnomon.expr.ext.transpose import swapaxis, transpose

__all__ = [
    "arg_reduce",
    "broadcast_axis",
    "broadcast_to",
    "concat",
    "crop",
    "flip",
    "implicit_dot",
    "iota",
    "mat_fill_row_element",
    "one_hot",
    "pack_col2patch",
    "pad",
    "philox",
    "pick",
    "pool",
    "reduce",
    "reshape",
    "slice_",
    "swapaxis",
    "take",
    "take_grad",
    "transpose",
    "unpack_patch2col",
    "unpool",
]

# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.ndarray.ndarray import NDArray as NDArray
_DTYPE_MX_TO_NP: Any
_DTYPE_NP_TO_MX: Any
_GRAD_REQ_MAP: Any
_STORAGE_TYPE_DEFAULT: Any
_STORAGE_TYPE_ID_TO_STR: Any
_STORAGE_TYPE_STR_TO_ID: Any
from gnomon.ndarray.api.elementwise import add as add
from gnomon.ndarray.create import arange as arange
from gnomon.ndarray.create import array as array
from gnomon.ndarray.sparse.creation import cast_storage as cast_storage
from gnomon.ndarray.create import concatenate as concatenate
from gnomon.ndarray.api.elementwise import divide as divide
from gnomon.ndarray.create import empty as empty
from gnomon.ndarray.api.elementwise import equal as equal
from gnomon.ndarray.create import eye as eye
from gnomon.ndarray.create import from_dlpack as from_dlpack
from gnomon.ndarray.create import from_numpy as from_numpy
from gnomon.ndarray.create import full as full
from gnomon.ndarray.api.keys import get_indexing_dispatch_code as get_indexing_dispatch_code
from gnomon.ndarray.api.keys import get_oshape_of_gather_nd_op as get_oshape_of_gather_nd_op
from gnomon.ndarray.api.elementwise import greater as greater
from gnomon.ndarray.api.elementwise import greater_equal as greater_equal
from gnomon.ndarray.create import histogram as histogram
from gnomon.ndarray.api.elementwise import hypot as hypot
from gnomon.ndarray.decode import imdecode as imdecode
from gnomon.ndarray.api.keys import indexing_key_expand_implicit_axes as indexing_key_expand_implicit_axes
from gnomon.ndarray.lazy.invoke import invoke as invoke
from gnomon.ndarray.api.elementwise import lesser as lesser
from gnomon.ndarray.api.elementwise import lesser_equal as lesser_equal
from gnomon.ndarray.create import linspace as linspace
from gnomon.ndarray.files import load as load
from gnomon.ndarray.files import load_frombuffer as load_frombuffer
from gnomon.ndarray.api.elementwise import logical_and as logical_and
from gnomon.ndarray.api.elementwise import logical_or as logical_or
from gnomon.ndarray.api.elementwise import logical_xor as logical_xor
from gnomon.ndarray.api.elementwise import maximum as maximum
from gnomon.ndarray.api.elementwise import minimum as minimum
from gnomon.ndarray.api.elementwise import modulo as modulo
from gnomon.ndarray.create import moveaxis as moveaxis
from gnomon.ndarray.api.elementwise import multiply as multiply
from gnomon.ndarray.api.elementwise import not_equal as not_equal
from gnomon.ndarray.create import onehot_encode as onehot_encode
from gnomon.ndarray.create import ones as ones
from gnomon.ndarray.api.elementwise import power as power
from gnomon.ndarray.create import reset_arrays as reset_arrays
from gnomon.ndarray.files import save as save
from gnomon.ndarray.api.methods import split_v2 as split_v2
from gnomon.ndarray.api.elementwise import subtract as subtract
from gnomon.ndarray.create import to_dlpack_for_read as to_dlpack_for_read
from gnomon.ndarray.create import to_dlpack_for_write as to_dlpack_for_write
from gnomon.ndarray.api.elementwise import true_divide as true_divide
from gnomon.ndarray.files import waitall as waitall
from gnomon.ndarray.create import zeros as zeros
from gnomon.ndarray import contrib as contrib
from gnomon.ndarray import image as image
from gnomon.ndarray import linalg as linalg
from gnomon.ndarray import op as op
from gnomon.ndarray import random as random
from gnomon.ndarray import sparse as sparse
def Activation(data: NDArray, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The function `act_type` of every element."""
def BatchNorm(data: NDArray, gamma: NDArray | None = ..., beta: NDArray | None = ..., moving_mean: NDArray | None = ..., moving_var: NDArray | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""`gamma * (data - mean) / sqrt(variance + eps) + beta` for each channel."""
def BatchNorm_v1(data: NDArray, gamma: NDArray | None = ..., beta: NDArray | None = ..., moving_mean: NDArray | None = ..., moving_var: NDArray | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""`gamma * (data - mean) / sqrt(variance + eps) + beta` for each channel."""
def BilinearSampler(data: NDArray, grid: NDArray | None = ..., cudnn_off: bool | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` at the places of `grid`, x and y from -1 to 1; what lies outside of it is 0."""
def BlockGrad(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value itself; no gradient flows back."""
def CTCLoss(data: NDArray, label: NDArray | None = ..., data_lengths: NDArray | None = ..., label_lengths: NDArray | None = ..., use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: Literal['first', 'last'] = 'first', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""-log of the probability of each label (batch, symbols) by `data` (time, batch, classes)."""
def Cast(data: NDArray, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value in another dtype: toward zero, saturating, NaN as 0."""
def Concat(*data: NDArray, dim: int = 1, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inputs one after another along `dim`."""
def Convolution(data: NDArray, weight: NDArray | None = ..., bias: NDArray | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`weight` laid on every window of `data`, in 1, 2 or 3 dimensions, plus `bias`."""
def Convolution_v1(data: NDArray, weight: NDArray | None = ..., bias: NDArray | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`weight` laid on every window of `data`, in 1, 2 or 3 dimensions, plus `bias`."""
def Correlation(data1: NDArray, data2: NDArray | None = ..., kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int = 1, pad_size: int = 0, is_multiply: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Products of patches of `data1` with patches of `data2` around the same place."""
def Crop(*data: NDArray, offset: int | Sequence[int] = (0, 0), h_w: int | Sequence[int] = (0, 0), center_crop: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The part of an image (N, C, h, w) of the size of a second one, or of `h_w`."""
def Custom(*args: NDArray, op_type: str, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""An operator written in Python and registered under `op_type`; see `gnomon.operator`."""
def Deconvolution(data: NDArray, weight: NDArray | None = ..., bias: NDArray | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), adj: int | Sequence[int] = (), target_shape: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 512, no_bias: bool = True, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`weight` added up at every place, times the element of `data` there, plus `bias`."""
def Dropout(data: NDArray, p: float = 0.5, mode: Literal['always', 'training'] = 'training', axes: int | Sequence[int] = (), cudnn_off: bool | None = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Each element 0 with probability `p`, the others divided by `1 - p`, in training."""
def ElementWiseSum(*data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of all inputs, which have one shape."""
def Embedding(data: NDArray, weight: NDArray | None = ..., input_dim: int = ..., output_dim: int = ..., dtype: Literal['bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] = ..., sparse_grad: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The row of `weight` for each number in `data`."""
def Flatten(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""All axes but the first joined into one."""
def FullyConnected(data: NDArray, weight: NDArray | None = ..., bias: NDArray | None = ..., num_hidden: int = ..., no_bias: bool = False, flatten: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Rows of `data` times the transpose of `weight`, plus `bias`."""
def GridGenerator(data: NDArray, transform_type: Literal['affine', 'warp'], target_shape: int | Sequence[int] = (0, 0), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Grids for `BilinearSampler`: of affine transformations (N, 6), or flows (N, 2, h, w)."""
def GroupNorm(data: NDArray, gamma: NDArray | None = ..., beta: NDArray | None = ..., num_groups: int = 1, eps: float = 1e-05, output_mean_var: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Each group of channels with mean 0 and variance 1, times its `gamma`, plus its `beta`."""
def IdentityAttachKLSparseReg(data: NDArray, moving_avg: NDArray | None = ..., sparseness_target: float = 0.1, penalty: float = 0.001, momentum: float = 0.9, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` itself; its gradient pulls the mean of each column, over time, to a target."""
def InstanceNorm(data: NDArray, gamma: NDArray | None = ..., beta: NDArray | None = ..., eps: float = 0.001, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Each channel of each sample with mean 0 and variance 1, then times `gamma` plus `beta`."""
def L2Normalization(data: NDArray, eps: float = 1e-10, mode: Literal['channel', 'instance', 'spatial'] = 'instance', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Divided by the root of the sum of squares over the axes that `mode` names."""
def LRN(data: NDArray, alpha: float = 0.0001, beta: float = 0.75, knorm: float = 2.0, nsize: int = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Divided by a power of the mean square over `nsize` neighbouring channels."""
def LayerNorm(data: NDArray, gamma: NDArray | None = ..., beta: NDArray | None = ..., axis: int = -1, eps: float = 1e-05, output_mean_var: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Mean 0 and variance 1 along an axis, then times `gamma` plus `beta`, one an element of it."""
def LeakyReLU(data: NDArray, gamma: NDArray | None = ..., act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = 'leaky', slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""The value where it is positive, else what `act_type` makes of it."""
def LinearRegressionOutput(data: NDArray, label: NDArray | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` itself; backward gives the gradient of half the squared distance to `label`."""
def LogisticRegressionOutput(data: NDArray, label: NDArray | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sigmoid of `data`; backward gives the gradient of its cross entropy with `label`."""
def MAERegressionOutput(data: NDArray, label: NDArray | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` itself; backward gives the gradient of the distance to `label`."""
def MakeLoss(data: NDArray, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: Literal['batch', 'null', 'valid'] = 'null', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` itself; its gradient is `grad_scale`, whatever comes from above."""
def Pad(data: NDArray, mode: Literal['constant', 'edge', 'reflect'], pad_width: int | Sequence[int], constant_value: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` with a constant, its edge, or its mirror image around it."""
def Pooling(data: NDArray, kernel: int | Sequence[int] = (), pool_type: Literal['avg', 'lp', 'max', 'sum'] = 'max', global_pool: bool = False, cudnn_off: bool = False, pooling_convention: Literal['full', 'same', 'valid'] = 'valid', stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), p_value: Literal[1, 2, 3] | None = None, count_include_pad: bool | None = None, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC', 'NWC'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""What `pool_type` makes of every window of `data`, in 1, 2 or 3 dimensions."""
def Pooling_v1(data: NDArray, kernel: int | Sequence[int] = (), pool_type: Literal['avg', 'max', 'sum'] = 'max', global_pool: bool = False, pooling_convention: Literal['full', 'valid'] = 'valid', stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`Pooling` as it once was: padding counts as 0, and means divide by the whole window."""
def RNN(data: NDArray, parameters: NDArray | None = ..., state: NDArray | None = ..., state_cell: NDArray | None = ..., sequence_length: NDArray | None = ..., state_size: int = ..., num_layers: int = ..., bidirectional: bool = False, mode: Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = ..., p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None, lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False, use_sequence_length: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Recurrent layers over `data` (steps, batch, channels)."""
def ROIPooling(data: NDArray, rois: NDArray | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The maximum of each of `pooled_size` parts of regions of `data` (N, C, h, w)."""
def Reshape(data: NDArray, shape: int | Sequence[int] = (), reverse: bool = False, target_shape: int | Sequence[int] = (), keep_highest: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The same elements in `shape`, where special numbers stand for sizes of `data`."""
def SVMOutput(data: NDArray, label: NDArray | None = ..., margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` itself; backward pushes the label's score above `margin` and the others below it."""
def SequenceLast(data: NDArray, sequence_length: NDArray | None = ..., use_sequence_length: bool = False, axis: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The last element of each sequence."""
def SequenceMask(data: NDArray, sequence_length: NDArray | None = ..., use_sequence_length: bool = False, value: float = 0.0, axis: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` with another value after the end of each sequence."""
def SequenceReverse(data: NDArray, sequence_length: NDArray | None = ..., use_sequence_length: bool = False, axis: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Each sequence from its end to its beginning; what stands after the end stays."""
def SliceChannel(data: NDArray, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Equal parts along an axis."""
def Softmax(data: NDArray, label: NDArray | None = ..., grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False, smooth_alpha: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Softmax of `data`; backward gives `softmax - label` whatever comes from above."""
def SoftmaxActivation(data: NDArray, mode: Literal['channel', 'instance'] = 'instance', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Softmax along axis 1 (`channel`), or along the last (`instance`)."""
def SoftmaxOutput(data: NDArray, label: NDArray | None = ..., grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False, smooth_alpha: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Softmax of `data`; backward gives `softmax - label` whatever comes from above."""
def SpatialTransformer(data: NDArray, loc: NDArray | None = ..., target_shape: int | Sequence[int] = (0, 0), transform_type: Literal['affine'] = ..., sampler_type: Literal['bilinear'] = ..., cudnn_off: bool | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` under the affine transformations `loc` (N, 6)."""
def SwapAxis(data: NDArray, dim1: int = 0, dim2: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Two axes in each other's place."""
def UpSampling(*data: NDArray, scale: int, num_filter: int = 0, sample_type: Literal['bilinear', 'nearest'], multi_input_mode: Literal['concat', 'sum'] = 'concat', workspace: int = 512, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Every input enlarged to `scale` times the first, joined along the channels or added up."""
def abs(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The absolute value."""
def adam_update(weight: NDArray, grad: NDArray | None = ..., mean: NDArray | None = ..., var: NDArray | None = ..., lr: float = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by a running mean of the gradient over the root of that of its square."""
def add_n(*data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of all inputs, which have one shape."""
def all_finite(data: NDArray, init_output: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where all elements are finite, else 0."""
def amp_cast(data: NDArray, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Floating-point numbers in another dtype, anything else as it is; so the gradient, back."""
def amp_multicast(*data: NDArray, cast_narrow: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""All inputs in the widest of their dtypes, or with `cast_narrow` in the narrowest."""
def arccos(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The angle in radians whose cosine is the value."""
def arccosh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of the hyperbolic cosine."""
def arcsin(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The angle in radians whose sine is the value."""
def arcsinh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of the hyperbolic sine."""
def arctan(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The angle in radians whose tangent is the value."""
def arctanh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of the hyperbolic tangent."""
def argmax(data: NDArray, axis: int | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The position of the greatest value along an axis."""
def argmax_channel(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The position of the greatest value along the second axis, as for class scores."""
def argmin(data: NDArray, axis: int | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The position of the least value along an axis."""
def argsort(data: NDArray, axis: int | None = -1, is_ascend: bool = True, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'uint8'] = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Where the elements in order come from, along an axis."""
def batch_dot(lhs: NDArray, rhs: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, forward_stype: Literal['csr', 'default', 'row_sparse'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The matrix product of the last two axes, for every position of the axes before them."""
def batch_take(a: NDArray, indices: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One element of each row of `a`."""
def broadcast_add(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum. Axes of 1 are stretched."""
def broadcast_axes(data: NDArray, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Axes of size 1 stretched to `size`."""
def broadcast_axis(data: NDArray, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Axes of size 1 stretched to `size`."""
def broadcast_div(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The quotient. Axes of 1 are stretched."""
def broadcast_equal(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where both are equal, else 0. Axes of 1 are stretched."""
def broadcast_greater(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where the left one is greater, else 0. Axes of 1 are stretched."""
def broadcast_greater_equal(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where the left one is not less, else 0. Axes of 1 are stretched."""
def broadcast_hypot(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The length of the hypotenuse over both. Axes of 1 are stretched."""
def broadcast_lesser(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where the left one is less, else 0. Axes of 1 are stretched."""
def broadcast_lesser_equal(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where the left one is not greater, else 0. Axes of 1 are stretched."""
def broadcast_like(lhs: NDArray, rhs: NDArray | None = ..., lhs_axes: int | Sequence[int] | None = None, rhs_axes: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Axes of size 1 of `lhs` stretched to the sizes of `rhs`."""
def broadcast_logical_and(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where neither is 0, else 0. Axes of 1 are stretched."""
def broadcast_logical_or(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where one is not 0, else 0. Axes of 1 are stretched."""
def broadcast_logical_xor(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where exactly one is 0, else 0. Axes of 1 are stretched."""
def broadcast_maximum(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The greater of both. Axes of 1 are stretched."""
def broadcast_minimum(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The lesser of both. Axes of 1 are stretched."""
def broadcast_minus(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The difference. Axes of 1 are stretched."""
def broadcast_mod(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The remainder, with the sign of the divisor. Axes of 1 are stretched."""
def broadcast_mul(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The product. Axes of 1 are stretched."""
def broadcast_not_equal(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where both differ, else 0. Axes of 1 are stretched."""
def broadcast_plus(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum. Axes of 1 are stretched."""
def broadcast_power(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The left one to the power of the right one. Axes of 1 are stretched."""
def broadcast_sub(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The difference. Axes of 1 are stretched."""
def broadcast_to(data: NDArray, shape: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Axes of size 1 stretched to `shape`."""
def cast(data: NDArray, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value in another dtype: toward zero, saturating, NaN as 0."""
def cbrt(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The cube root."""
def ceil(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The least integer not below the value."""
def choose_element_0index(data: NDArray, index: NDArray | None = ..., axis: int | None = -1, keepdims: bool = False, mode: Literal['clip', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One element of `data` along an axis for each number in `index`."""
def clip(data: NDArray, a_min: float, a_max: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value, kept between `a_min` and `a_max`; the gradient is 0 outside."""
def col2im(data: NDArray, output_size: int | Sequence[int], kernel: int | Sequence[int], stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Images with such columns (N, C * kernel, windows) added up."""
def concat(*data: NDArray, dim: int = 1, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inputs one after another along `dim`."""
def cos(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The cosine of radians."""
def cosh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The hyperbolic cosine."""
def crop(data: NDArray, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int | Sequence[int | None] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""From `begin` to before `end` in steps, an axis an entry; bounds outside are clipped."""
def ctc_loss(data: NDArray, label: NDArray | None = ..., data_lengths: NDArray | None = ..., label_lengths: NDArray | None = ..., use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: Literal['first', 'last'] = 'first', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""-log of the probability of each label (batch, symbols) by `data` (time, batch, classes)."""
def cumprod(a: NDArray, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The product of all elements up to each one along an axis."""
def cumsum(a: NDArray, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of all elements up to each one along an axis."""
def degrees(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Radians as degrees."""
def depth_to_space(data: NDArray, block_size: int, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Channels laid out as blocks of an image."""
def diag(data: NDArray, k: int = 0, axis1: int = 0, axis2: int = 1, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The diagonal of two axes, as the last one; of a vector, the matrix that has it."""
def dot(lhs: NDArray, rhs: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, forward_stype: Literal['csr', 'default', 'row_sparse'] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Sums of products over the last axis of `lhs` and the first of `rhs`."""
def elemwise_add(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum. Shapes are equal."""
def elemwise_div(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The quotient. Shapes are equal."""
def elemwise_mul(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The product. Shapes are equal."""
def elemwise_sub(lhs: NDArray, rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The difference. Shapes are equal."""
def erf(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The Gauss error function."""
def erfinv(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of the Gauss error function."""
def exp(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""e to the power of the value."""
def expand_dims(data: NDArray, axis: int, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A new axis of size 1 before `axis`."""
def expm1(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""e to the power of the value, minus 1; exact near 0."""
def fill_element_0index(lhs: NDArray, mhs: NDArray | None = ..., rhs: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`lhs` with one element of each row replaced by that of `mhs`, at the position in `rhs`."""
def fix(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The nearest integer towards zero."""
def flatten(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""All axes but the first joined into one."""
def flip(data: NDArray, axis: int | Sequence[int], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Mirrored along axes."""
def floor(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The greatest integer not above the value."""
def ftml_update(weight: NDArray, grad: NDArray | None = ..., d: NDArray | None = ..., v: NDArray | None = ..., z: NDArray | None = ..., lr: float = ..., beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-08, t: int = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_grad: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Follow the moving leader."""
def ftrl_update(weight: NDArray, grad: NDArray | None = ..., z: NDArray | None = ..., n: NDArray | None = ..., lr: float = ..., lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Follow the regularized leader: weights that `lamda1` keeps at 0 unless gradients insist."""
def gamma(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The gamma function."""
def gammaln(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The logarithm of the absolute value of the gamma function."""
def gather_nd(data: NDArray, indices: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The parts of `data` at `indices`, whose first axis goes through the axes of `data`."""
def hard_sigmoid(data: NDArray, alpha: float = 0.2, beta: float = 0.5, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * x + beta`, kept between 0 and 1."""
def identity(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value itself."""
def im2col(data: NDArray, kernel: int | Sequence[int], stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The windows of images (N, C, space...) as columns (N, C * kernel, windows)."""
def khatri_rao(*data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""All products of a row of each matrix, column by column, those of the last one fastest."""
def lamb_update_phase1(weight: NDArray, grad: NDArray | None = ..., mean: NDArray | None = ..., var: NDArray | None = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The direction in which LAMB moves a weight."""
def lamb_update_phase2(weight: NDArray, g: NDArray | None = ..., r1: NDArray | None = ..., r2: NDArray | None = ..., lr: float = ..., lower_bound: float = -1.0, upper_bound: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved along `g`, as far as its length `r1` over that of the step, `r2`, allows."""
def linalg_det(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The determinant of each matrix."""
def linalg_extractdiag(A: NDArray, offset: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A diagonal of each matrix."""
def linalg_extracttrian(A: NDArray, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A triangle of each matrix, in a row."""
def linalg_gelqf(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""Q with orthonormal rows and a lower triangular L with A = L Q, of matrices not taller."""
def linalg_gemm(A: NDArray, B: NDArray | None = ..., C: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B + beta * C`."""
def linalg_gemm2(A: NDArray, B: NDArray | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B`."""
def linalg_inverse(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of each matrix."""
def linalg_makediag(A: NDArray, offset: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Matrices of diagonals, 0 elsewhere."""
def linalg_maketrian(A: NDArray, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Matrices of triangles, 0 elsewhere."""
def linalg_potrf(A: NDArray, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The lower triangular L with A = L L^T, or the upper one with A = L^T L."""
def linalg_potri(A: NDArray, lower: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inverse of A A^T, of a lower triangular A, or of A^T A, of an upper one."""
def linalg_slogdet(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""The sign of the determinant, and the logarithm of its absolute value."""
def linalg_sumlogdiag(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of the logarithms of the diagonal of each matrix."""
def linalg_syevd(A: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""Eigenvectors as rows of U, and eigenvalues L in ascending order, of symmetric matrices."""
def linalg_syrk(A: NDArray, transpose: bool = False, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A A^T`, or with `transpose` `alpha * A^T A`."""
def linalg_trmm(A: NDArray, B: NDArray | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`alpha * A B`, or `alpha * B A`, of a triangular A."""
def linalg_trsm(A: NDArray, B: NDArray | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""X of `A X = alpha * B`, or of `X A = alpha * B`, of a triangular A."""
def log(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The natural logarithm."""
def log10(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The logarithm to base 10."""
def log1p(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The natural logarithm of 1 plus the value; exact near 0."""
def log2(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The logarithm to base 2."""
def log_softmax(data: NDArray, axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The logarithm of softmax along an axis."""
def logcumsumexp(a: NDArray, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The logarithm of the sum of `exp` of all elements up to each one along an axis."""
def logical_not(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where the value is 0, else 0."""
def make_loss(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value itself, as a loss: its gradient is 1 whatever comes from above."""
def max(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The greatest value over axes."""
def max_axis(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The greatest value over axes."""
def mean(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The mean over axes."""
def min(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The least value over axes."""
def min_axis(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The least value over axes."""
def moments(data: NDArray, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> list[NDArray]:
    r"""The mean and the variance over axes."""
def mp_lamb_update_phase1(weight: NDArray, grad: NDArray | None = ..., mean: NDArray | None = ..., var: NDArray | None = ..., weight32: NDArray | None = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The same of a half-float weight, by its float32 copy; in float32."""
def mp_lamb_update_phase2(weight: NDArray, g: NDArray | None = ..., r1: NDArray | None = ..., r2: NDArray | None = ..., weight32: NDArray | None = ..., lr: float = ..., lower_bound: float = -1.0, upper_bound: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The same of a half-float weight, by its float32 copy, which moves with it."""
def mp_nag_mom_update(weight: NDArray, grad: NDArray | None = ..., mom: NDArray | None = ..., weight32: NDArray | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`nag_mom_update` of a half-float weight, computed on its float32 copy."""
def mp_sgd_mom_update(weight: NDArray, grad: NDArray | None = ..., mom: NDArray | None = ..., weight32: NDArray | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def mp_sgd_update(weight: NDArray, grad: NDArray | None = ..., weight32: NDArray | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`sgd_update` of a half-float weight, computed on its float32 copy."""
def multi_all_finite(*data: NDArray, init_output: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 where all elements of all arrays are finite, else 0."""
def multi_lars(lrs: NDArray, weights_sum_sq: NDArray | None = ..., grads_sum_sq: NDArray | None = ..., wds: NDArray | None = ..., eta: float = ..., eps: float = ..., rescale_grad: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Learning rates scaled by the length of each weight over that of its gradient."""
def multi_mp_sgd_mom_update(*data: NDArray, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: `sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def multi_mp_sgd_update(*data: NDArray, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: `sgd_update` of a half-float weight, computed on its float32 copy."""
def multi_sgd_mom_update(*data: NDArray, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: the weight moved by a momentum that gathers gradients."""
def multi_sgd_update(*data: NDArray, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: the weight moved against its gradient."""
def multi_sum_sq(*data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of squares of each array, as one vector."""
def nag_mom_update(weight: NDArray, grad: NDArray | None = ..., mom: NDArray | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Nesterov's momentum: the gradient is taken where the momentum leads."""
def nanprod(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The product without NaN over axes."""
def nansum(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum without NaN over axes."""
def negative(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value with the other sign."""
def norm(data: NDArray, ord: Literal[1, 2] = 2, axis: int | Sequence[int] | None = None, out_dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., keepdims: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum of absolute values (`ord` 1), or the root of the sum of squares (`ord` 2)."""
def normal(loc: float = 0.0, scale: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers of a normal distribution."""
def one_hot(indices: NDArray, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Literal['bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`on_value` at the position each number names, `off_value` elsewhere."""
def ones_like(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Ones in the shape and dtype of `data`."""
def pad(data: NDArray, mode: Literal['constant', 'edge', 'reflect'], pad_width: int | Sequence[int], constant_value: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`data` with a constant, its edge, or its mirror image around it."""
def pick(data: NDArray, index: NDArray | None = ..., axis: int | None = -1, keepdims: bool = False, mode: Literal['clip', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One element of `data` along an axis for each number in `index`."""
def preloaded_multi_mp_sgd_mom_update(*data: NDArray, rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: `sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def preloaded_multi_mp_sgd_update(*data: NDArray, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: `sgd_update` of a half-float weight, computed on its float32 copy."""
def preloaded_multi_sgd_mom_update(*data: NDArray, rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: the weight moved by a momentum that gathers gradients."""
def preloaded_multi_sgd_update(*data: NDArray, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Several weights at once: the weight moved against its gradient."""
def prod(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The product over axes."""
def radians(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Degrees as radians."""
def random_exponential(lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers of an exponential distribution."""
def random_gamma(alpha: float = 1.0, beta: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers of a gamma distribution."""
def random_generalized_negative_binomial(mu: float = 1.0, alpha: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def random_negative_binomial(k: int = 1, p: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Failures before `k` successes of probability `p`."""
def random_normal(loc: float = 0.0, scale: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers of a normal distribution."""
def random_pdf_dirichlet(sample: NDArray, alpha: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of Dirichlet distributions with concentrations `alpha`, along the last axis."""
def random_pdf_exponential(sample: NDArray, lam: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of exponential distributions of rate `lam`."""
def random_pdf_gamma(sample: NDArray, alpha: NDArray | None = ..., beta: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of gamma distributions of shape `alpha` and rate `beta`."""
def random_pdf_generalized_negative_binomial(sample: NDArray, mu: NDArray | None = ..., alpha: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def random_pdf_negative_binomial(sample: NDArray, k: NDArray | None = ..., p: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of failures before `k` successes of probability `p`."""
def random_pdf_normal(sample: NDArray, mu: NDArray | None = ..., sigma: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of normal distributions of mean `mu` and deviation `sigma`."""
def random_pdf_poisson(sample: NDArray, lam: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The probability of whole numbers of Poisson distributions of mean `lam`."""
def random_pdf_uniform(sample: NDArray, low: NDArray | None = ..., high: NDArray | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The density of numbers between `low` and `high`, all equally likely."""
def random_poisson(lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Whole numbers of a Poisson distribution."""
def random_randint(low: int, high: int, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['int32', 'int64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Integers from `low` (included) to `high` (excluded), all equally likely."""
def random_uniform(low: float = 0.0, high: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def ravel_multi_index(data: NDArray, shape: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Where the columns of `data`, one row an axis, lead in an array of `shape`."""
def rcbrt(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One divided by the cube root."""
def reciprocal(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One divided by the value."""
def relu(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value where it is positive, else 0."""
def repeat(data: NDArray, repeats: int, axis: int | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Each element several times in a row."""
def reshape(data: NDArray, shape: int | Sequence[int] = (), reverse: bool = False, target_shape: int | Sequence[int] = (), keep_highest: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The same elements in `shape`, where special numbers stand for sizes of `data`."""
def reshape_like(lhs: NDArray, rhs: NDArray | None = ..., lhs_begin: int | None = None, lhs_end: int | None = None, rhs_begin: int | None = None, rhs_end: int | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`lhs` in the shape of `rhs`; with the four bounds only a run of axes is exchanged."""
def reverse(data: NDArray, axis: int | Sequence[int], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Mirrored along axes."""
def rint(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The nearest integer; halves go down."""
def rmsprop_update(weight: NDArray, grad: NDArray | None = ..., n: NDArray | None = ..., lr: float = ..., gamma1: float = 0.95, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by the gradient over the root of a running mean of its square."""
def rmspropalex_update(weight: NDArray, grad: NDArray | None = ..., n: NDArray | None = ..., g: NDArray | None = ..., delta: NDArray | None = ..., lr: float = ..., gamma1: float = 0.95, gamma2: float = 0.9, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""RMSProp with momentum, over the variance of the gradient in place of its mean square."""
def round(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The nearest integer; halves go away from zero."""
def rsqrt(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""One divided by the square root."""
def sample_exponential(lam: NDArray, shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of exponential distributions of rate `lam`; NaN unless that is above 0."""
def sample_gamma(alpha: NDArray, beta: NDArray | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of gamma distributions of shape `alpha` and scale `beta`; NaN unless above 0."""
def sample_generalized_negative_binomial(mu: NDArray, alpha: NDArray | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`; NaN below 0."""
def sample_multinomial(data: NDArray, shape: int | Sequence[int] = (), get_prob: bool = False, dtype: Literal['float16', 'float32', 'float64', 'int32', 'uint8'] = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Positions along the last axis of `data`, which holds the probability of each."""
def sample_negative_binomial(k: NDArray, p: NDArray | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Failures before `k` successes of probability `p`; NaN unless k >= 0, 0 < p <= 1."""
def sample_normal(mu: NDArray, sigma: NDArray | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers of normal distributions of mean `mu` and deviation `sigma`."""
def sample_poisson(lam: NDArray, shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Whole numbers of Poisson distributions of mean `lam`; NaN below 0."""
def sample_uniform(low: NDArray, high: NDArray | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def scatter_nd(data: NDArray, indices: NDArray | None = ..., shape: int | Sequence[int] = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""An array of zeros but for `data` at `indices`; what meets at one place is summed."""
def sgd_mom_update(weight: NDArray, grad: NDArray | None = ..., mom: NDArray | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by a momentum that gathers gradients."""
def sgd_update(weight: NDArray, grad: NDArray | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved against its gradient."""
def shape_array(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sizes of `data`, one an axis."""
def shuffle(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The parts of `data` along its first axis in random order; no gradient goes through."""
def sigmoid(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""1 / (1 + exp(-x))."""
def sign(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""-1, 0 or 1 as the value is negative, zero or positive."""
def signsgd_update(weight: NDArray, grad: NDArray | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by the sign of its gradient."""
def signum_update(weight: NDArray, grad: NDArray | None = ..., mom: NDArray | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by the sign of a momentum."""
def sin(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sine of radians."""
def sinh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The hyperbolic sine."""
def size_array(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The number of elements of `data`."""
def slice(data: NDArray, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int | Sequence[int | None] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""From `begin` to before `end` in steps, an axis an entry; bounds outside are clipped."""
def slice_axis(data: NDArray, axis: int, begin: int, end: int | None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""From `begin` to before `end` along one axis."""
def slice_like(data: NDArray, shape_like: NDArray | None = ..., axes: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The first elements of `data`, as many along `axes` as `shape_like` has."""
def smooth_l1(data: NDArray, scalar: float = 1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""A loss: half the square near 0, the absolute value far from it; `scalar` is sigma."""
def softmax(data: NDArray, length: NDArray | None = ..., axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""exp(x), divided by its sum along an axis."""
def softmax_cross_entropy(data: NDArray, label: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum over rows of -log softmax at the label's place."""
def softmin(data: NDArray, axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""exp(-x), divided by its sum along an axis."""
def softsign(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""x / (1 + \|x\|)."""
def sort(data: NDArray, axis: int | None = -1, is_ascend: bool = True, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""The elements in order along an axis."""
def space_to_depth(data: NDArray, block_size: int, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Blocks of an image as channels."""
def split(data: NDArray, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""Equal parts along an axis."""
def sqrt(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The square root."""
def square(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value times itself."""
def squeeze(data: NDArray, axis: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Without the axes of size 1: all of them, or those in `axis`."""
def stack(*data: NDArray, axis: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The inputs side by side along a new axis."""
def stop_gradient(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value itself; no gradient flows back."""
def sum(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum over axes."""
def sum_axis(data: NDArray, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The sum over axes."""
def swapaxes(data: NDArray, dim1: int = 0, dim2: int = 0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Two axes in each other's place."""
def take(a: NDArray, indices: NDArray | None = ..., axis: int = 0, mode: Literal['clip', 'raise', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The parts of `a` along `axis` at `indices`."""
def tan(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The tangent of radians."""
def tanh(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The hyperbolic tangent."""
def tile(data: NDArray, reps: int | Sequence[int], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The whole repeated along each axis."""
def topk(data: NDArray, axis: int | None = -1, k: int = 1, ret_typ: Literal['both', 'indices', 'mask', 'value'] = 'indices', is_ascend: bool = False, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'uint8'] = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> Any:
    r"""The first `k` elements in order along an axis: positions, values, both, or a mask."""
def transpose(data: NDArray, axes: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The axes in the order `axes`."""
def trunc(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The value without its fraction."""
def uniform(low: float = 0.0, high: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ...) -> NDArray:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def unravel_index(data: NDArray, shape: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Indices in an array of `shape`, one row an axis, for each position in `data`."""
def where(condition: NDArray, x: NDArray | None = ..., y: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""`x` where `condition` is not 0, else `y`; a condition of one axis chooses whole rows."""
def zeros_like(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Zeros in the shape and dtype of `data`."""

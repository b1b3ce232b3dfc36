# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.symbol.symbol import Group as Group
from gnomon.base import NotImplementedForSymbol as NotImplementedForSymbol
from gnomon.symbol.symbol import Symbol as Symbol
from gnomon.symbol.symbol import Variable as Variable
from gnomon.symbol.create import arange as arange
from gnomon.symbol.create import eye as eye
from gnomon.symbol.create import full as full
from gnomon.symbol.create import histogram as histogram
from gnomon.symbol.create import hypot as hypot
from gnomon.symbol.create import linspace as linspace
from gnomon.symbol.symbol import load as load
from gnomon.symbol.symbol import load_json as load_json
from gnomon.symbol.create import maximum as maximum
from gnomon.symbol.create import minimum as minimum
from gnomon.symbol.create import ones as ones
from gnomon.symbol.create import pow as pow
from gnomon.symbol.create import power as power
from gnomon.symbol.create import split_v2 as split_v2
from gnomon.symbol.symbol import var as var
from gnomon.symbol.create import zeros as zeros
from gnomon.symbol import contrib as contrib
from gnomon.symbol import image as image
from gnomon.symbol import linalg as linalg
from gnomon.symbol import op as op
from gnomon.symbol import random as random
from gnomon.symbol import sparse as sparse
def Activation(data: Symbol, act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The function `act_type` of every element."""
def BatchNorm(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`gamma * (data - mean) / sqrt(variance + eps) + beta` for each channel."""
def BatchNorm_v1(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`gamma * (data - mean) / sqrt(variance + eps) + beta` for each channel."""
def BilinearSampler(data: Symbol, grid: Symbol | None = ..., cudnn_off: bool | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` at the places of `grid`, x and y from -1 to 1; what lies outside of it is 0."""
def BlockGrad(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value itself; no gradient flows back."""
def CTCLoss(data: Symbol, label: Symbol | None = ..., data_lengths: Symbol | None = ..., label_lengths: Symbol | None = ..., use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: Literal['first', 'last'] = 'first', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""-log of the probability of each label (batch, symbols) by `data` (time, batch, classes)."""
def Cast(data: Symbol, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value in another dtype: toward zero, saturating, NaN as 0."""
def Concat(*data: Symbol, dim: int = 1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inputs one after another along `dim`."""
def Convolution(data: Symbol, weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`weight` laid on every window of `data`, in 1, 2 or 3 dimensions, plus `bias`."""
def Convolution_v1(data: Symbol, weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 1024, no_bias: bool = False, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`weight` laid on every window of `data`, in 1, 2 or 3 dimensions, plus `bias`."""
def Correlation(data1: Symbol, data2: Symbol | None = ..., kernel_size: int = 1, max_displacement: int = 1, stride1: int = 1, stride2: int = 1, pad_size: int = 0, is_multiply: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Products of patches of `data1` with patches of `data2` around the same place."""
def Crop(*data: Symbol, offset: int | Sequence[int] = (0, 0), h_w: int | Sequence[int] = (0, 0), center_crop: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The part of an image (N, C, h, w) of the size of a second one, or of `h_w`."""
def Custom(*args: Symbol, op_type: str, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""An operator written in Python and registered under `op_type`; see `gnomon.operator`."""
def Deconvolution(data: Symbol, weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), adj: int | Sequence[int] = (), target_shape: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, workspace: int = 512, no_bias: bool = True, cudnn_tune: Literal['fastest', 'limited_workspace', 'off'] | None = None, cudnn_off: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`weight` added up at every place, times the element of `data` there, plus `bias`."""
def Dropout(data: Symbol, p: float = 0.5, mode: Literal['always', 'training'] = 'training', axes: int | Sequence[int] = (), cudnn_off: bool | None = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each element 0 with probability `p`, the others divided by `1 - p`, in training."""
def ElementWiseSum(*data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of all inputs, which have one shape."""
def Embedding(data: Symbol, weight: Symbol | None = ..., input_dim: int = ..., output_dim: int = ..., dtype: Literal['bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] = ..., sparse_grad: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The row of `weight` for each number in `data`."""
def Flatten(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""All axes but the first joined into one."""
def FullyConnected(data: Symbol, weight: Symbol | None = ..., bias: Symbol | None = ..., num_hidden: int = ..., no_bias: bool = False, flatten: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Rows of `data` times the transpose of `weight`, plus `bias`."""
def GridGenerator(data: Symbol, transform_type: Literal['affine', 'warp'], target_shape: int | Sequence[int] = (0, 0), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Grids for `BilinearSampler`: of affine transformations (N, 6), or flows (N, 2, h, w)."""
def GroupNorm(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., num_groups: int = 1, eps: float = 1e-05, output_mean_var: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each group of channels with mean 0 and variance 1, times its `gamma`, plus its `beta`."""
def IdentityAttachKLSparseReg(data: Symbol, moving_avg: Symbol | None = ..., sparseness_target: float = 0.1, penalty: float = 0.001, momentum: float = 0.9, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` itself; its gradient pulls the mean of each column, over time, to a target."""
def InstanceNorm(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., eps: float = 0.001, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each channel of each sample with mean 0 and variance 1, then times `gamma` plus `beta`."""
def L2Normalization(data: Symbol, eps: float = 1e-10, mode: Literal['channel', 'instance', 'spatial'] = 'instance', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Divided by the root of the sum of squares over the axes that `mode` names."""
def LRN(data: Symbol, alpha: float = 0.0001, beta: float = 0.75, knorm: float = 2.0, nsize: int = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Divided by a power of the mean square over `nsize` neighbouring channels."""
def LayerNorm(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., axis: int = -1, eps: float = 1e-05, output_mean_var: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Mean 0 and variance 1 along an axis, then times `gamma` plus `beta`, one an element of it."""
def LeakyReLU(data: Symbol, gamma: Symbol | None = ..., act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = 'leaky', slope: float = 0.25, lower_bound: float = 0.125, upper_bound: float = 0.334, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value where it is positive, else what `act_type` makes of it."""
def LinearRegressionOutput(data: Symbol, label: Symbol | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` itself; backward gives the gradient of half the squared distance to `label`."""
def LogisticRegressionOutput(data: Symbol, label: Symbol | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sigmoid of `data`; backward gives the gradient of its cross entropy with `label`."""
def MAERegressionOutput(data: Symbol, label: Symbol | None = ..., grad_scale: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` itself; backward gives the gradient of the distance to `label`."""
def MakeLoss(data: Symbol, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: Literal['batch', 'null', 'valid'] = 'null', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` itself; its gradient is `grad_scale`, whatever comes from above."""
def Pad(data: Symbol, mode: Literal['constant', 'edge', 'reflect'], pad_width: int | Sequence[int], constant_value: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` with a constant, its edge, or its mirror image around it."""
def Pooling(data: Symbol, kernel: int | Sequence[int] = (), pool_type: Literal['avg', 'lp', 'max', 'sum'] = 'max', global_pool: bool = False, cudnn_off: bool = False, pooling_convention: Literal['full', 'same', 'valid'] = 'valid', stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), p_value: Literal[1, 2, 3] | None = None, count_include_pad: bool | None = None, layout: Literal['NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC', 'NWC'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""What `pool_type` makes of every window of `data`, in 1, 2 or 3 dimensions."""
def Pooling_v1(data: Symbol, kernel: int | Sequence[int] = (), pool_type: Literal['avg', 'max', 'sum'] = 'max', global_pool: bool = False, pooling_convention: Literal['full', 'valid'] = 'valid', stride: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`Pooling` as it once was: padding counts as 0, and means divide by the whole window."""
def RNN(data: Symbol, parameters: Symbol | None = ..., state: Symbol | None = ..., state_cell: Symbol | None = ..., sequence_length: Symbol | None = ..., state_size: int = ..., num_layers: int = ..., bidirectional: bool = False, mode: Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = ..., p: float = 0.0, state_outputs: bool = False, projection_size: int | None = None, lstm_state_clip_min: float | None = None, lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False, use_sequence_length: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Recurrent layers over `data` (steps, batch, channels)."""
def ROIPooling(data: Symbol, rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The maximum of each of `pooled_size` parts of regions of `data` (N, C, h, w)."""
def Reshape(data: Symbol, shape: int | Sequence[int] = (), reverse: bool = False, target_shape: int | Sequence[int] = (), keep_highest: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The same elements in `shape`, where special numbers stand for sizes of `data`."""
def SVMOutput(data: Symbol, label: Symbol | None = ..., margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` itself; backward pushes the label's score above `margin` and the others below it."""
def SequenceLast(data: Symbol, sequence_length: Symbol | None = ..., use_sequence_length: bool = False, axis: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The last element of each sequence."""
def SequenceMask(data: Symbol, sequence_length: Symbol | None = ..., use_sequence_length: bool = False, value: float = 0.0, axis: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` with another value after the end of each sequence."""
def SequenceReverse(data: Symbol, sequence_length: Symbol | None = ..., use_sequence_length: bool = False, axis: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each sequence from its end to its beginning; what stands after the end stays."""
def SliceChannel(data: Symbol, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Equal parts along an axis."""
def Softmax(data: Symbol, label: Symbol | None = ..., grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False, smooth_alpha: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Softmax of `data`; backward gives `softmax - label` whatever comes from above."""
def SoftmaxActivation(data: Symbol, mode: Literal['channel', 'instance'] = 'instance', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Softmax along axis 1 (`channel`), or along the last (`instance`)."""
def SoftmaxOutput(data: Symbol, label: Symbol | None = ..., grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False, normalization: Literal['batch', 'null', 'valid'] = 'null', out_grad: bool = False, smooth_alpha: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Softmax of `data`; backward gives `softmax - label` whatever comes from above."""
def SpatialTransformer(data: Symbol, loc: Symbol | None = ..., target_shape: int | Sequence[int] = (0, 0), transform_type: Literal['affine'] = ..., sampler_type: Literal['bilinear'] = ..., cudnn_off: bool | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` under the affine transformations `loc` (N, 6)."""
def SwapAxis(data: Symbol, dim1: int = 0, dim2: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Two axes in each other's place."""
def UpSampling(*data: Symbol, scale: int, num_filter: int = 0, sample_type: Literal['bilinear', 'nearest'], multi_input_mode: Literal['concat', 'sum'] = 'concat', workspace: int = 512, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Every input enlarged to `scale` times the first, joined along the channels or added up."""
def abs(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The absolute value."""
def adam_update(weight: Symbol, grad: Symbol | None = ..., mean: Symbol | None = ..., var: Symbol | None = ..., lr: float = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by a running mean of the gradient over the root of that of its square."""
def add_n(*data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of all inputs, which have one shape."""
def all_finite(data: Symbol, init_output: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where all elements are finite, else 0."""
def amp_cast(data: Symbol, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Floating-point numbers in another dtype, anything else as it is; so the gradient, back."""
def amp_multicast(*data: Symbol, cast_narrow: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""All inputs in the widest of their dtypes, or with `cast_narrow` in the narrowest."""
def arccos(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The angle in radians whose cosine is the value."""
def arccosh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of the hyperbolic cosine."""
def arcsin(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The angle in radians whose sine is the value."""
def arcsinh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of the hyperbolic sine."""
def arctan(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The angle in radians whose tangent is the value."""
def arctanh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of the hyperbolic tangent."""
def argmax(data: Symbol, axis: int | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The position of the greatest value along an axis."""
def argmax_channel(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The position of the greatest value along the second axis, as for class scores."""
def argmin(data: Symbol, axis: int | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The position of the least value along an axis."""
def argsort(data: Symbol, axis: int | None = -1, is_ascend: bool = True, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'uint8'] = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Where the elements in order come from, along an axis."""
def batch_dot(lhs: Symbol, rhs: Symbol | None = ..., transpose_a: bool = False, transpose_b: bool = False, forward_stype: Literal['csr', 'default', 'row_sparse'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The matrix product of the last two axes, for every position of the axes before them."""
def batch_take(a: Symbol, indices: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One element of each row of `a`."""
def broadcast_add(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum. Axes of 1 are stretched."""
def broadcast_axes(data: Symbol, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Axes of size 1 stretched to `size`."""
def broadcast_axis(data: Symbol, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Axes of size 1 stretched to `size`."""
def broadcast_div(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The quotient. Axes of 1 are stretched."""
def broadcast_equal(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where both are equal, else 0. Axes of 1 are stretched."""
def broadcast_greater(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where the left one is greater, else 0. Axes of 1 are stretched."""
def broadcast_greater_equal(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where the left one is not less, else 0. Axes of 1 are stretched."""
def broadcast_hypot(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The length of the hypotenuse over both. Axes of 1 are stretched."""
def broadcast_lesser(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where the left one is less, else 0. Axes of 1 are stretched."""
def broadcast_lesser_equal(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where the left one is not greater, else 0. Axes of 1 are stretched."""
def broadcast_like(lhs: Symbol, rhs: Symbol | None = ..., lhs_axes: int | Sequence[int] | None = None, rhs_axes: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Axes of size 1 of `lhs` stretched to the sizes of `rhs`."""
def broadcast_logical_and(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where neither is 0, else 0. Axes of 1 are stretched."""
def broadcast_logical_or(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where one is not 0, else 0. Axes of 1 are stretched."""
def broadcast_logical_xor(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where exactly one is 0, else 0. Axes of 1 are stretched."""
def broadcast_maximum(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The greater of both. Axes of 1 are stretched."""
def broadcast_minimum(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The lesser of both. Axes of 1 are stretched."""
def broadcast_minus(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The difference. Axes of 1 are stretched."""
def broadcast_mod(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The remainder, with the sign of the divisor. Axes of 1 are stretched."""
def broadcast_mul(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The product. Axes of 1 are stretched."""
def broadcast_not_equal(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where both differ, else 0. Axes of 1 are stretched."""
def broadcast_plus(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum. Axes of 1 are stretched."""
def broadcast_power(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The left one to the power of the right one. Axes of 1 are stretched."""
def broadcast_sub(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The difference. Axes of 1 are stretched."""
def broadcast_to(data: Symbol, shape: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Axes of size 1 stretched to `shape`."""
def cast(data: Symbol, dtype: Literal['bfloat16', 'bool', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value in another dtype: toward zero, saturating, NaN as 0."""
def cast_storage(data: Symbol, stype: Literal['csr', 'default', 'row_sparse'], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The same elements in another storage."""
def cbrt(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The cube root."""
def ceil(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The least integer not below the value."""
def choose_element_0index(data: Symbol, index: Symbol | None = ..., axis: int | None = -1, keepdims: bool = False, mode: Literal['clip', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One element of `data` along an axis for each number in `index`."""
def clip(data: Symbol, a_min: float, a_max: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value, kept between `a_min` and `a_max`; the gradient is 0 outside."""
def col2im(data: Symbol, output_size: int | Sequence[int], kernel: int | Sequence[int], stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Images with such columns (N, C * kernel, windows) added up."""
def concat(*data: Symbol, dim: int = 1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inputs one after another along `dim`."""
def cos(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The cosine of radians."""
def cosh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The hyperbolic cosine."""
def crop(data: Symbol, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int | Sequence[int | None] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""From `begin` to before `end` in steps, an axis an entry; bounds outside are clipped."""
def ctc_loss(data: Symbol, label: Symbol | None = ..., data_lengths: Symbol | None = ..., label_lengths: Symbol | None = ..., use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: Literal['first', 'last'] = 'first', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""-log of the probability of each label (batch, symbols) by `data` (time, batch, classes)."""
def cumprod(a: Symbol, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The product of all elements up to each one along an axis."""
def cumsum(a: Symbol, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of all elements up to each one along an axis."""
def degrees(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Radians as degrees."""
def depth_to_space(data: Symbol, block_size: int, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Channels laid out as blocks of an image."""
def diag(data: Symbol, k: int = 0, axis1: int = 0, axis2: int = 1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The diagonal of two axes, as the last one; of a vector, the matrix that has it."""
def dot(lhs: Symbol, rhs: Symbol | None = ..., transpose_a: bool = False, transpose_b: bool = False, forward_stype: Literal['csr', 'default', 'row_sparse'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Sums of products over the last axis of `lhs` and the first of `rhs`."""
def elemwise_add(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum. Shapes are equal."""
def elemwise_div(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The quotient. Shapes are equal."""
def elemwise_mul(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The product. Shapes are equal."""
def elemwise_sub(lhs: Symbol, rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The difference. Shapes are equal."""
def erf(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The Gauss error function."""
def erfinv(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of the Gauss error function."""
def exp(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""e to the power of the value."""
def expand_dims(data: Symbol, axis: int, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A new axis of size 1 before `axis`."""
def expm1(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""e to the power of the value, minus 1; exact near 0."""
def fill_element_0index(lhs: Symbol, mhs: Symbol | None = ..., rhs: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`lhs` with one element of each row replaced by that of `mhs`, at the position in `rhs`."""
def fix(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The nearest integer towards zero."""
def flatten(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""All axes but the first joined into one."""
def flip(data: Symbol, axis: int | Sequence[int], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Mirrored along axes."""
def floor(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The greatest integer not above the value."""
def ftml_update(weight: Symbol, grad: Symbol | None = ..., d: Symbol | None = ..., v: Symbol | None = ..., z: Symbol | None = ..., lr: float = ..., beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-08, t: int = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_grad: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Follow the moving leader."""
def ftrl_update(weight: Symbol, grad: Symbol | None = ..., z: Symbol | None = ..., n: Symbol | None = ..., lr: float = ..., lamda1: float = 0.01, beta: float = 1.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Follow the regularized leader: weights that `lamda1` keeps at 0 unless gradients insist."""
def gamma(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The gamma function."""
def gammaln(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm of the absolute value of the gamma function."""
def gather_nd(data: Symbol, indices: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The parts of `data` at `indices`, whose first axis goes through the axes of `data`."""
def hard_sigmoid(data: Symbol, alpha: float = 0.2, beta: float = 0.5, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`alpha * x + beta`, kept between 0 and 1."""
def identity(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value itself."""
def im2col(data: Symbol, kernel: int | Sequence[int], stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The windows of images (N, C, space...) as columns (N, C * kernel, windows)."""
def khatri_rao(*data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""All products of a row of each matrix, column by column, those of the last one fastest."""
def lamb_update_phase1(weight: Symbol, grad: Symbol | None = ..., mean: Symbol | None = ..., var: Symbol | None = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The direction in which LAMB moves a weight."""
def lamb_update_phase2(weight: Symbol, g: Symbol | None = ..., r1: Symbol | None = ..., r2: Symbol | None = ..., lr: float = ..., lower_bound: float = -1.0, upper_bound: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved along `g`, as far as its length `r1` over that of the step, `r2`, allows."""
def linalg_det(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The determinant of each matrix."""
def linalg_extractdiag(A: Symbol, offset: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A diagonal of each matrix."""
def linalg_extracttrian(A: Symbol, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A triangle of each matrix, in a row."""
def linalg_gelqf(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Q with orthonormal rows and a lower triangular L with A = L Q, of matrices not taller."""
def linalg_gemm(A: Symbol, B: Symbol | None = ..., C: Symbol | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`alpha * A B + beta * C`."""
def linalg_gemm2(A: Symbol, B: Symbol | None = ..., transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`alpha * A B`."""
def linalg_inverse(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of each matrix."""
def linalg_makediag(A: Symbol, offset: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Matrices of diagonals, 0 elsewhere."""
def linalg_maketrian(A: Symbol, offset: int = 0, lower: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Matrices of triangles, 0 elsewhere."""
def linalg_potrf(A: Symbol, lower: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The lower triangular L with A = L L^T, or the upper one with A = L^T L."""
def linalg_potri(A: Symbol, lower: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inverse of A A^T, of a lower triangular A, or of A^T A, of an upper one."""
def linalg_slogdet(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sign of the determinant, and the logarithm of its absolute value."""
def linalg_sumlogdiag(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of the logarithms of the diagonal of each matrix."""
def linalg_syevd(A: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Eigenvectors as rows of U, and eigenvalues L in ascending order, of symmetric matrices."""
def linalg_syrk(A: Symbol, transpose: bool = False, alpha: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`alpha * A A^T`, or with `transpose` `alpha * A^T A`."""
def linalg_trmm(A: Symbol, B: Symbol | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`alpha * A B`, or `alpha * B A`, of a triangular A."""
def linalg_trsm(A: Symbol, B: Symbol | None = ..., transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""X of `A X = alpha * B`, or of `X A = alpha * B`, of a triangular A."""
def log(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The natural logarithm."""
def log10(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm to base 10."""
def log1p(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The natural logarithm of 1 plus the value; exact near 0."""
def log2(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm to base 2."""
def log_softmax(data: Symbol, axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm of softmax along an axis."""
def logcumsumexp(a: Symbol, axis: int | None = None, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm of the sum of `exp` of all elements up to each one along an axis."""
def logical_not(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where the value is 0, else 0."""
def make_loss(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value itself, as a loss: its gradient is 1 whatever comes from above."""
def max(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The greatest value over axes."""
def max_axis(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The greatest value over axes."""
def mean(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The mean over axes."""
def min(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The least value over axes."""
def min_axis(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The least value over axes."""
def moments(data: Symbol, axes: int | Sequence[int] | None = None, keepdims: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The mean and the variance over axes."""
def mp_lamb_update_phase1(weight: Symbol, grad: Symbol | None = ..., mean: Symbol | None = ..., var: Symbol | None = ..., weight32: Symbol | None = ..., beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-06, t: int = ..., bias_correction: bool = True, wd: float = ..., rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The same of a half-float weight, by its float32 copy; in float32."""
def mp_lamb_update_phase2(weight: Symbol, g: Symbol | None = ..., r1: Symbol | None = ..., r2: Symbol | None = ..., weight32: Symbol | None = ..., lr: float = ..., lower_bound: float = -1.0, upper_bound: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The same of a half-float weight, by its float32 copy, which moves with it."""
def mp_nag_mom_update(weight: Symbol, grad: Symbol | None = ..., mom: Symbol | None = ..., weight32: Symbol | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`nag_mom_update` of a half-float weight, computed on its float32 copy."""
def mp_sgd_mom_update(weight: Symbol, grad: Symbol | None = ..., mom: Symbol | None = ..., weight32: Symbol | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def mp_sgd_update(weight: Symbol, grad: Symbol | None = ..., weight32: Symbol | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`sgd_update` of a half-float weight, computed on its float32 copy."""
def multi_all_finite(*data: Symbol, init_output: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where all elements of all arrays are finite, else 0."""
def multi_lars(lrs: Symbol, weights_sum_sq: Symbol | None = ..., grads_sum_sq: Symbol | None = ..., wds: Symbol | None = ..., eta: float = ..., eps: float = ..., rescale_grad: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Learning rates scaled by the length of each weight over that of its gradient."""
def multi_mp_sgd_mom_update(*data: Symbol, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: `sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def multi_mp_sgd_update(*data: Symbol, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: `sgd_update` of a half-float weight, computed on its float32 copy."""
def multi_sgd_mom_update(*data: Symbol, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: the weight moved by a momentum that gathers gradients."""
def multi_sgd_update(*data: Symbol, lrs: float | Sequence[float], wds: float | Sequence[float], rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: the weight moved against its gradient."""
def multi_sum_sq(*data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of squares of each array, as one vector."""
def nag_mom_update(weight: Symbol, grad: Symbol | None = ..., mom: Symbol | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Nesterov's momentum: the gradient is taken where the momentum leads."""
def nanprod(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The product without NaN over axes."""
def nansum(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum without NaN over axes."""
def negative(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value with the other sign."""
def norm(data: Symbol, ord: Literal[1, 2] = 2, axis: int | Sequence[int] | None = None, out_dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'int8'] | None = ..., keepdims: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum of absolute values (`ord` 1), or the root of the sum of squares (`ord` 2)."""
def normal(loc: float = 0.0, scale: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of a normal distribution."""
def one_hot(indices: Symbol, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Literal['bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`on_value` at the position each number names, `off_value` elsewhere."""
def ones_like(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Ones in the shape and dtype of `data`."""
def pad(data: Symbol, mode: Literal['constant', 'edge', 'reflect'], pad_width: int | Sequence[int], constant_value: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`data` with a constant, its edge, or its mirror image around it."""
def pick(data: Symbol, index: Symbol | None = ..., axis: int | None = -1, keepdims: bool = False, mode: Literal['clip', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One element of `data` along an axis for each number in `index`."""
def preloaded_multi_mp_sgd_mom_update(*data: Symbol, rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: `sgd_mom_update` of a half-float weight, computed on its float32 copy."""
def preloaded_multi_mp_sgd_update(*data: Symbol, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: `sgd_update` of a half-float weight, computed on its float32 copy."""
def preloaded_multi_sgd_mom_update(*data: Symbol, rescale_grad: float = 1.0, clip_gradient: float = -1.0, momentum: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: the weight moved by a momentum that gathers gradients."""
def preloaded_multi_sgd_update(*data: Symbol, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Several weights at once: the weight moved against its gradient."""
def prod(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The product over axes."""
def radians(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Degrees as radians."""
def random_exponential(lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of an exponential distribution."""
def random_gamma(alpha: float = 1.0, beta: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of a gamma distribution."""
def random_generalized_negative_binomial(mu: float = 1.0, alpha: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def random_negative_binomial(k: int = 1, p: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Failures before `k` successes of probability `p`."""
def random_normal(loc: float = 0.0, scale: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of a normal distribution."""
def random_pdf_dirichlet(sample: Symbol, alpha: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of Dirichlet distributions with concentrations `alpha`, along the last axis."""
def random_pdf_exponential(sample: Symbol, lam: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of exponential distributions of rate `lam`."""
def random_pdf_gamma(sample: Symbol, alpha: Symbol | None = ..., beta: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of gamma distributions of shape `alpha` and rate `beta`."""
def random_pdf_generalized_negative_binomial(sample: Symbol, mu: Symbol | None = ..., alpha: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of whole numbers of mean `mu` and variance `mu + alpha * mu**2`."""
def random_pdf_negative_binomial(sample: Symbol, k: Symbol | None = ..., p: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of failures before `k` successes of probability `p`."""
def random_pdf_normal(sample: Symbol, mu: Symbol | None = ..., sigma: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of normal distributions of mean `mu` and deviation `sigma`."""
def random_pdf_poisson(sample: Symbol, lam: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The probability of whole numbers of Poisson distributions of mean `lam`."""
def random_pdf_uniform(sample: Symbol, low: Symbol | None = ..., high: Symbol | None = ..., is_log: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The density of numbers between `low` and `high`, all equally likely."""
def random_poisson(lam: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of a Poisson distribution."""
def random_randint(low: int, high: int, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['int32', 'int64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Integers from `low` (included) to `high` (excluded), all equally likely."""
def random_uniform(low: float = 0.0, high: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def ravel_multi_index(data: Symbol, shape: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Where the columns of `data`, one row an axis, lead in an array of `shape`."""
def rcbrt(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One divided by the cube root."""
def reciprocal(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One divided by the value."""
def relu(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value where it is positive, else 0."""
def repeat(data: Symbol, repeats: int, axis: int | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each element several times in a row."""
def reset_arrays(*data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""0 in all elements of every array."""
def reshape(data: Symbol, shape: int | Sequence[int] = (), reverse: bool = False, target_shape: int | Sequence[int] = (), keep_highest: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The same elements in `shape`, where special numbers stand for sizes of `data`."""
def reshape_like(lhs: Symbol, rhs: Symbol | None = ..., lhs_begin: int | None = None, lhs_end: int | None = None, rhs_begin: int | None = None, rhs_end: int | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`lhs` in the shape of `rhs`; with the four bounds only a run of axes is exchanged."""
def reverse(data: Symbol, axis: int | Sequence[int], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Mirrored along axes."""
def rint(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The nearest integer; halves go down."""
def rmsprop_update(weight: Symbol, grad: Symbol | None = ..., n: Symbol | None = ..., lr: float = ..., gamma1: float = 0.95, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by the gradient over the root of a running mean of its square."""
def rmspropalex_update(weight: Symbol, grad: Symbol | None = ..., n: Symbol | None = ..., g: Symbol | None = ..., delta: Symbol | None = ..., lr: float = ..., gamma1: float = 0.95, gamma2: float = 0.9, epsilon: float = 1e-08, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, clip_weights: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""RMSProp with momentum, over the variance of the gradient in place of its mean square."""
def round(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The nearest integer; halves go away from zero."""
def rsqrt(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""One divided by the square root."""
def sample_exponential(lam: Symbol, shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of exponential distributions of rate `lam`; NaN unless that is above 0."""
def sample_gamma(alpha: Symbol, beta: Symbol | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of gamma distributions of shape `alpha` and scale `beta`; NaN unless above 0."""
def sample_generalized_negative_binomial(mu: Symbol, alpha: Symbol | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of mean `mu` and variance `mu + alpha * mu**2`; NaN below 0."""
def sample_multinomial(data: Symbol, shape: int | Sequence[int] = (), get_prob: bool = False, dtype: Literal['float16', 'float32', 'float64', 'int32', 'uint8'] = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Positions along the last axis of `data`, which holds the probability of each."""
def sample_negative_binomial(k: Symbol, p: Symbol | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Failures before `k` successes of probability `p`; NaN unless k >= 0, 0 < p <= 1."""
def sample_normal(mu: Symbol, sigma: Symbol | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers of normal distributions of mean `mu` and deviation `sigma`."""
def sample_poisson(lam: Symbol, shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Whole numbers of Poisson distributions of mean `lam`; NaN below 0."""
def sample_uniform(low: Symbol, high: Symbol | None = ..., shape: int | Sequence[int] = (), dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def scatter_nd(data: Symbol, indices: Symbol | None = ..., shape: int | Sequence[int] = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""An array of zeros but for `data` at `indices`; what meets at one place is summed."""
def sgd_mom_update(weight: Symbol, grad: Symbol | None = ..., mom: Symbol | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by a momentum that gathers gradients."""
def sgd_update(weight: Symbol, grad: Symbol | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, lazy_update: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved against its gradient."""
def shape_array(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sizes of `data`, one an axis."""
def shuffle(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The parts of `data` along its first axis in random order; no gradient goes through."""
def sigmoid(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 / (1 + exp(-x))."""
def sign(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""-1, 0 or 1 as the value is negative, zero or positive."""
def signsgd_update(weight: Symbol, grad: Symbol | None = ..., lr: float = ..., wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by the sign of its gradient."""
def signum_update(weight: Symbol, grad: Symbol | None = ..., mom: Symbol | None = ..., lr: float = ..., momentum: float = 0.0, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, wd_lh: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by the sign of a momentum."""
def sin(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sine of radians."""
def sinh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The hyperbolic sine."""
def size_array(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The number of elements of `data`."""
def slice(data: Symbol, begin: int | Sequence[int | None], end: int | Sequence[int | None], step: int | Sequence[int | None] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""From `begin` to before `end` in steps, an axis an entry; bounds outside are clipped."""
def slice_axis(data: Symbol, axis: int, begin: int, end: int | None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""From `begin` to before `end` along one axis."""
def slice_like(data: Symbol, shape_like: Symbol | None = ..., axes: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The first elements of `data`, as many along `axes` as `shape_like` has."""
def smooth_l1(data: Symbol, scalar: float = 1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A loss: half the square near 0, the absolute value far from it; `scalar` is sigma."""
def softmax(data: Symbol, length: Symbol | None = ..., axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""exp(x), divided by its sum along an axis."""
def softmax_cross_entropy(data: Symbol, label: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum over rows of -log softmax at the label's place."""
def softmin(data: Symbol, axis: int = -1, temperature: float | None = None, dtype: Literal['float16', 'float32', 'float64'] | None = ..., use_length: bool | None = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""exp(-x), divided by its sum along an axis."""
def softsign(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""x / (1 + \|x\|)."""
def sort(data: Symbol, axis: int | None = -1, is_ascend: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The elements in order along an axis."""
def space_to_depth(data: Symbol, block_size: int, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Blocks of an image as channels."""
def split(data: Symbol, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Equal parts along an axis."""
def sqrt(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The square root."""
def square(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value times itself."""
def squeeze(data: Symbol, axis: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Without the axes of size 1: all of them, or those in `axis`."""
def stack(*data: Symbol, axis: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The inputs side by side along a new axis."""
def stop_gradient(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value itself; no gradient flows back."""
def sum(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum over axes."""
def sum_axis(data: Symbol, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The sum over axes."""
def swapaxes(data: Symbol, dim1: int = 0, dim2: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Two axes in each other's place."""
def take(a: Symbol, indices: Symbol | None = ..., axis: int = 0, mode: Literal['clip', 'raise', 'wrap'] = 'clip', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The parts of `a` along `axis` at `indices`."""
def tan(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The tangent of radians."""
def tanh(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The hyperbolic tangent."""
def tile(data: Symbol, reps: int | Sequence[int], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The whole repeated along each axis."""
def topk(data: Symbol, axis: int | None = -1, k: int = 1, ret_typ: Literal['both', 'indices', 'mask', 'value'] = 'indices', is_ascend: bool = False, dtype: Literal['float16', 'float32', 'float64', 'int32', 'int64', 'uint8'] = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The first `k` elements in order along an axis: positions, values, both, or a mask."""
def transpose(data: Symbol, axes: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The axes in the order `axes`."""
def trunc(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value without its fraction."""
def uniform(low: float = 0.0, high: float = 1.0, shape: int | Sequence[int] | None = None, ctx: str = '', dtype: Literal['float16', 'float32', 'float64'] | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Numbers from `low` (included) to `high` (excluded), all equally likely."""
def unravel_index(data: Symbol, shape: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Indices in an array of `shape`, one row an axis, for each position in `data`."""
def where(condition: Symbol, x: Symbol | None = ..., y: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`x` where `condition` is not 0, else `y`; a condition of one axis chooses whole rows."""
def zeros_like(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Zeros in the shape and dtype of `data`."""

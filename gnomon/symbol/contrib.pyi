# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.symbol import Symbol
from gnomon.symbol.decayed import adamw_update as adamw_update
from gnomon.symbol.control import cond as cond
from gnomon.symbol.control import foreach as foreach
from gnomon.symbol.decayed import mp_adamw_update as mp_adamw_update
from gnomon.symbol.decayed import rand_zipfian as rand_zipfian
uniform: Any
from gnomon.symbol.control import while_loop as while_loop
def AdaptiveAvgPooling2D(data: Symbol, output_size: int | Sequence[int] = (), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Means of regions that together are the whole image, `output_size` of them along the axes."""
def BatchNormWithReLU(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1, cudnn_off: bool = False, min_calib_range: float | None = None, max_calib_range: float | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`BatchNorm`, of whose result what is negative is 0."""
def BilinearResize2D(data: Symbol, like: Symbol | None = ..., height: int = 1, width: int = 1, scale_height: float | None = None, scale_width: float | None = None, mode: Literal['like', 'odd_scale', 'size', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'] = 'size', align_corners: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Images of another size by bilinear interpolation."""
from gnomon.symbol import CTCLoss as CTCLoss
def DeformableConvolution(data: Symbol, offset: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, num_deformable_group: int = 1, workspace: int = 1024, no_bias: bool = False, layout: Literal['NCDHW', 'NCHW', 'NCW'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A convolution whose windows are deformed by `offset` (N, 2 groups taps, h, w), rows first."""
def DeformablePSROIPooling(data: Symbol, rois: Symbol | None = ..., trans: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., group_size: int = ..., pooled_size: int = ..., part_size: int = 0, sample_per_part: int = 1, trans_std: float = 0.0, no_trans: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Means of samples of parts of regions, of channels of its own, each part moved by `trans`."""
def ModulatedDeformableConvolution(data: Symbol, offset: Symbol | None = ..., mask: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = (), dilate: int | Sequence[int] = (), pad: int | Sequence[int] = (), num_filter: int = ..., num_group: int = 1, num_deformable_group: int = 1, workspace: int = 1024, no_bias: bool = False, im2col_step: int = 64, layout: Literal['NCDHW', 'NCHW', 'NCW'] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""A convolution whose windows are deformed by `offset`, and their elements scaled by `mask`."""
def MultiBoxDetection(cls_prob: Symbol, loc_pred: Symbol | None = ..., anchor: Symbol | None = ..., clip: bool = True, threshold: float = 0.01, background_id: int = 0, nms_threshold: float = 0.5, force_suppress: bool = False, variances: float | Sequence[float] = (0.1, 0.1, 0.2, 0.2), nms_topk: int = -1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Rows (class, score, left, top, right, bottom) of what was found (batch, n, 6), best first."""
def MultiBoxPrior(data: Symbol, sizes: float | Sequence[float] = (1,), ratios: float | Sequence[float] = (1,), clip: bool = False, steps: float | Sequence[float] = (-1, -1), offsets: float | Sequence[float] = (0.5, 0.5), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Anchors around each pixel of `data` (N, C, h, w), as corners (1, anchors, 4)."""
def MultiBoxTarget(anchor: Symbol, label: Symbol | None = ..., cls_pred: Symbol | None = ..., overlap_threshold: float = 0.5, ignore_label: float = -1, negative_mining_ratio: float = -1, negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0, variances: float | Sequence[float] = (0.1, 0.1, 0.2, 0.2), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""What to learn for each of `anchor` (1, n, 4): moves, where they count, classes from 1 on."""
def MultiProposal(cls_prob: Symbol, bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300, threshold: float = 0.7, rpn_min_size: int = 16, scales: float | Sequence[float] = (4, 8, 16, 32), ratios: float | Sequence[float] = (0.5, 1, 2), feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""As `Proposal`, for each image of a batch in turn: rows (image, x0, y0, x1, y1)."""
def PSROIPooling(data: Symbol, rois: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int = ..., group_size: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The mean of each of `pooled_size` x `pooled_size` parts of regions, of channels of its own."""
def Proposal(cls_prob: Symbol, bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300, threshold: float = 0.7, rpn_min_size: int = 16, scales: float | Sequence[float] = (4, 8, 16, 32), ratios: float | Sequence[float] = (0.5, 1, 2), feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The best regions (n, 5) of one image, rows (0, x0, y0, x1, y1), and their scores (n, 1)."""
def ROIAlign(data: Symbol, rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sample_ratio: int = -1, position_sensitive: bool = False, aligned: bool = False, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Means of samples of each of `pooled_size` parts of regions of `data` (N, C, h, w)."""
def RROIAlign(data: Symbol, rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int = -1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Means of samples of each of `pooled_size` parts of rotated regions of `data` (N, C, h, w)."""
def SparseEmbedding(data: Symbol, weight: Symbol | None = ..., input_dim: int = ..., output_dim: int = ..., dtype: Literal['bfloat16', 'float16', 'float32', 'float64', 'int32', 'int64', 'int8', 'uint8'] = ..., sparse_grad: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The row of `weight`, which may be row-sparse, for each number in `data`."""
def SyncBatchNorm(data: Symbol, gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = 0.0010000000474974513, momentum: float = 0.9, fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, ndev: int = 1, key: str = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`BatchNorm` along the second axis, over the parts of a batch that lie on `ndev` devices."""
def allclose(a: Symbol, b: Symbol | None = ..., rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 where all elements are equal but for `atol + rtol * abs(b)`, else 0."""
def arange_like(data: Symbol, start: float = 0.0, step: float = 1.0, repeat: int = 1, ctx: str = '', axis: int | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`start`, `start + step`, ... in the shape and dtype of `data`, or as many as an axis has."""
def bipartite_matching(data: Symbol, is_ascend: bool = False, threshold: float = ..., topk: int = -1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The column that each row of `data` (..., n, m) is matched with, and the row of each column."""
def boolean_mask(data: Symbol, index: Symbol | None = ..., axis: int = 0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The parts of `data` along its first axis where `index` is not 0."""
def box_decode(data: Symbol, anchors: Symbol | None = ..., std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0, clip: float = -1.0, format: Literal['center', 'corner'] = 'center', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Corners of `anchors` (1, n, 4) moved by `data` (batch, n, 4): the inverse of `box_encode`."""
def box_encode(samples: Symbol, matches: Symbol | None = ..., anchors: Symbol | None = ..., refs: Symbol | None = ..., means: Symbol | None = ..., stds: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""How `anchors` (batch, n, 4) move to the boxes `refs` (batch, m, 4) they match, and a mask."""
def box_iou(lhs: Symbol, rhs: Symbol | None = ..., format: Literal['corner', 'center'] = 'corner', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Intersection over union of each box of `lhs` (..., 4) with each one of `rhs` (..., 4)."""
def box_nms(data: Symbol, overlap_thresh: float = 0.5, valid_thresh: float = 0, topk: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False, in_format: Literal['corner', 'center'] = 'corner', out_format: Literal['corner', 'center'] = 'corner', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The rows of `data` (..., n, k) whose boxes are kept, best score first; then rows of -1."""
def box_non_maximum_suppression(data: Symbol, overlap_thresh: float = 0.5, valid_thresh: float = 0, topk: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = -1, background_id: int = -1, force_suppress: bool = False, in_format: Literal['corner', 'center'] = 'corner', out_format: Literal['corner', 'center'] = 'corner', out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The rows of `data` (..., n, k) whose boxes are kept, best score first; then rows of -1."""
def count_sketch(data: Symbol, h: Symbol | None = ..., s: Symbol | None = ..., out_dim: int = ..., processing_batch_size: int = 32, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Sums of columns of `data` (..., n), each times its sign `s` (1, n), in column `h` (1, n)."""
from gnomon.symbol import ctc_loss as ctc_loss
def dgl_adjacency(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""1 for each edge of a graph (n, n), as float32."""
def dgl_csr_neighbor_non_uniform_sample(*graph: Symbol, num_hops: int = 1, num_neighbor: int = 2, max_num_vertices: int = 100, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""As `dgl_csr_neighbor_uniform_sample`, but a neighbour is drawn by its weight."""
def dgl_csr_neighbor_uniform_sample(*graph: Symbol, num_hops: int = 1, num_neighbor: int = 2, max_num_vertices: int = 100, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Vertices around seeds, `num_neighbor` of those next to each, for `num_hops` edges."""
def dgl_graph_compact(*graph: Symbol, return_mapping: bool, graph_sizes: int | Sequence[int], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Graphs of samples without the vertices that were not drawn."""
def dgl_subgraph(*graph: Symbol, return_mapping: bool, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The edges of a graph (n, n) between vertices, for each array of them, in rising order."""
def div_sqrt_dim(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value divided by the root of the size of the last axis."""
def edge_id(data: Symbol, u: Symbol | None = ..., v: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""What the matrix `data` stores from vertices `u` to `v`, both (n,): edges by number, or -1."""
def fft(data: Symbol, compute_size: int = 128, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The Fourier transform of each row of real numbers: real and imaginary parts by turns."""
def getnnz(data: Symbol, axis: int | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""How many elements of a matrix are stored, in all or along an axis; not 0 if it is dense."""
def gradientmultiplier(data: Symbol, scalar: float = 1.0, is_int: bool = True, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The value itself; its gradient is multiplied by `scalar`."""
def group_adagrad_update(weight: Symbol, grad: Symbol | None = ..., history: Symbol | None = ..., lr: float = ..., rescale_grad: float = 1.0, clip_gradient: float = -1.0, epsilon: float = 1e-05, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by the gradient over the root of sums of squares, one for each row."""
def hawkesll(lda: Symbol, alpha: Symbol | None = ..., beta: Symbol | None = ..., state: Symbol | None = ..., lags: Symbol | None = ..., marks: Symbol | None = ..., valid_length: Symbol | None = ..., max_time: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The logarithm of the likelihood (N,) of events, and the states (N, K) at `max_time` (N,)."""
def ifft(data: Symbol, compute_size: int = 128, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The real part of the inverse Fourier transform of each row, n times as large."""
def index_array(data: Symbol, axes: int | Sequence[int] | None = None, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The index of each element of `data` along `axes`, in a new last axis."""
def index_copy(old_tensor: Symbol, index_vector: Symbol | None = ..., new_tensor: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`old_tensor` with the rows that `index_vector` names replaced by those of `new_tensor`."""
def interleaved_matmul_encdec_qk(queries: Symbol, keys_values: Symbol | None = ..., heads: int = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Scores of attention to another sequence, (batch * heads, length, other length)."""
def interleaved_matmul_encdec_valatt(keys_values: Symbol, attention: Symbol | None = ..., heads: int = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Values of another sequence weighted by `attention`, (length, batch, heads * size)."""
def interleaved_matmul_selfatt_qk(queries_keys_values: Symbol, heads: int, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Scores of self-attention, (batch * heads, length, length)."""
def interleaved_matmul_selfatt_valatt(queries_keys_values: Symbol, attention: Symbol | None = ..., heads: int = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Values of self-attention weighted by `attention`, (length, batch, heads * size)."""
def quadratic(data: Symbol, a: float = 0.0, b: float = 0.0, c: float = 0.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""`a * x**2 + b * x + c`."""
def round_ste(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The nearest integer; the gradient passes unchanged."""
def sign_ste(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""-1, 0 or 1 by the sign; the gradient passes unchanged."""

# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.ndarray import NDArray
from gnomon.ndarray.sparse.arrays import BaseSparseNDArray as BaseSparseNDArray
from gnomon.ndarray.sparse.arrays import CSRNDArray as CSRNDArray
from gnomon.ndarray.sparse.arrays import RowSparseNDArray as RowSparseNDArray
from gnomon.ndarray.api.elementwise import add as add
from gnomon.ndarray.sparse.creation import array as array
from gnomon.ndarray.sparse.creation import cast_storage as cast_storage
from gnomon.ndarray.sparse.creation import csr_matrix as csr_matrix
from gnomon.ndarray.api.elementwise import divide as divide
from gnomon.ndarray.sparse.creation import empty as empty
from gnomon.ndarray.sparse.creation import gs_retain as gs_retain
from gnomon.ndarray.api.elementwise import multiply as multiply
from gnomon.ndarray.sparse.creation import row_sparse_array as row_sparse_array
from gnomon.ndarray.api.elementwise import subtract as subtract
from gnomon.ndarray.sparse.creation import zeros as zeros
from gnomon.ndarray import ElementWiseSum as ElementWiseSum
from gnomon.ndarray import Embedding as Embedding
from gnomon.ndarray import FullyConnected as FullyConnected
from gnomon.ndarray import LinearRegressionOutput as LinearRegressionOutput
from gnomon.ndarray import LogisticRegressionOutput as LogisticRegressionOutput
from gnomon.ndarray import MAERegressionOutput as MAERegressionOutput
def _contrib_round_ste(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The nearest integer; the gradient passes unchanged."""
def _contrib_sign_ste(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""-1, 0 or 1 by the sign; the gradient passes unchanged."""
from gnomon.ndarray import abs as abs
def adagrad_update(weight: NDArray, grad: NDArray | None = ..., history: NDArray | None = ..., lr: float = ..., epsilon: float = 1e-07, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The weight moved by the gradient over the root of the sum of all its squares."""
from gnomon.ndarray import adam_update as adam_update
from gnomon.ndarray import add_n as add_n
from gnomon.ndarray import arccos as arccos
from gnomon.ndarray import arccosh as arccosh
from gnomon.ndarray import arcsin as arcsin
from gnomon.ndarray import arcsinh as arcsinh
from gnomon.ndarray import arctan as arctan
from gnomon.ndarray import arctanh as arctanh
from gnomon.ndarray import broadcast_add as broadcast_add
from gnomon.ndarray import broadcast_div as broadcast_div
from gnomon.ndarray import broadcast_minus as broadcast_minus
from gnomon.ndarray import broadcast_mul as broadcast_mul
from gnomon.ndarray import broadcast_plus as broadcast_plus
from gnomon.ndarray import broadcast_sub as broadcast_sub
from gnomon.ndarray import cbrt as cbrt
from gnomon.ndarray import ceil as ceil
from gnomon.ndarray import clip as clip
from gnomon.ndarray import concat as concat
from gnomon.ndarray import cos as cos
from gnomon.ndarray import cosh as cosh
from gnomon.ndarray import degrees as degrees
from gnomon.ndarray import dot as dot
from gnomon.ndarray import elemwise_add as elemwise_add
from gnomon.ndarray import elemwise_div as elemwise_div
from gnomon.ndarray import elemwise_mul as elemwise_mul
from gnomon.ndarray import elemwise_sub as elemwise_sub
from gnomon.ndarray import exp as exp
from gnomon.ndarray import expm1 as expm1
from gnomon.ndarray import fix as fix
from gnomon.ndarray import floor as floor
from gnomon.ndarray import ftrl_update as ftrl_update
from gnomon.ndarray import gamma as gamma
from gnomon.ndarray import gammaln as gammaln
from gnomon.ndarray import log as log
from gnomon.ndarray import log10 as log10
from gnomon.ndarray import log1p as log1p
from gnomon.ndarray import log2 as log2
from gnomon.ndarray import make_loss as make_loss
from gnomon.ndarray import mean as mean
from gnomon.ndarray import negative as negative
from gnomon.ndarray import norm as norm
from gnomon.ndarray import radians as radians
from gnomon.ndarray import relu as relu
def retain(data: NDArray, indices: NDArray | None = ..., out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The rows of `data` that `indices` name; the others are 0."""
from gnomon.ndarray import rint as rint
from gnomon.ndarray import round as round
from gnomon.ndarray import rsqrt as rsqrt
from gnomon.ndarray import sgd_mom_update as sgd_mom_update
from gnomon.ndarray import sgd_update as sgd_update
from gnomon.ndarray import sigmoid as sigmoid
from gnomon.ndarray import sign as sign
from gnomon.ndarray import sin as sin
from gnomon.ndarray import sinh as sinh
from gnomon.ndarray import slice as slice
from gnomon.ndarray import sqrt as sqrt
from gnomon.ndarray import square as square
from gnomon.ndarray import stop_gradient as stop_gradient
from gnomon.ndarray import sum as sum
from gnomon.ndarray import tan as tan
from gnomon.ndarray import tanh as tanh
from gnomon.ndarray import trunc as trunc
from gnomon.ndarray import where as where
from gnomon.ndarray import zeros_like as zeros_like

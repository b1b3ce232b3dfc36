# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.symbol import Symbol
from gnomon.symbol import ElementWiseSum as ElementWiseSum
from gnomon.symbol import Embedding as Embedding
from gnomon.symbol import FullyConnected as FullyConnected
from gnomon.symbol import LinearRegressionOutput as LinearRegressionOutput
from gnomon.symbol import LogisticRegressionOutput as LogisticRegressionOutput
from gnomon.symbol import MAERegressionOutput as MAERegressionOutput
def _contrib_round_ste(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The nearest integer; the gradient passes unchanged."""
def _contrib_sign_ste(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""-1, 0 or 1 by the sign; the gradient passes unchanged."""
from gnomon.symbol import abs as abs
def adagrad_update(weight: Symbol, grad: Symbol | None = ..., history: Symbol | None = ..., lr: float = ..., epsilon: float = 1e-07, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = -1.0, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The weight moved by the gradient over the root of the sum of all its squares."""
from gnomon.symbol import adam_update as adam_update
from gnomon.symbol import add_n as add_n
from gnomon.symbol import arccos as arccos
from gnomon.symbol import arccosh as arccosh
from gnomon.symbol import arcsin as arcsin
from gnomon.symbol import arcsinh as arcsinh
from gnomon.symbol import arctan as arctan
from gnomon.symbol import arctanh as arctanh
from gnomon.symbol import broadcast_add as broadcast_add
from gnomon.symbol import broadcast_div as broadcast_div
from gnomon.symbol import broadcast_minus as broadcast_minus
from gnomon.symbol import broadcast_mul as broadcast_mul
from gnomon.symbol import broadcast_plus as broadcast_plus
from gnomon.symbol import broadcast_sub as broadcast_sub
from gnomon.symbol import cast_storage as cast_storage
from gnomon.symbol import cbrt as cbrt
from gnomon.symbol import ceil as ceil
from gnomon.symbol import clip as clip
from gnomon.symbol import concat as concat
from gnomon.symbol import cos as cos
from gnomon.symbol import cosh as cosh
from gnomon.symbol import degrees as degrees
from gnomon.symbol import dot as dot
from gnomon.symbol import elemwise_add as elemwise_add
from gnomon.symbol import elemwise_div as elemwise_div
from gnomon.symbol import elemwise_mul as elemwise_mul
from gnomon.symbol import elemwise_sub as elemwise_sub
from gnomon.symbol import exp as exp
from gnomon.symbol import expm1 as expm1
from gnomon.symbol import fix as fix
from gnomon.symbol import floor as floor
from gnomon.symbol import ftrl_update as ftrl_update
from gnomon.symbol import gamma as gamma
from gnomon.symbol import gammaln as gammaln
from gnomon.symbol import log as log
from gnomon.symbol import log10 as log10
from gnomon.symbol import log1p as log1p
from gnomon.symbol import log2 as log2
from gnomon.symbol import make_loss as make_loss
from gnomon.symbol import mean as mean
from gnomon.symbol import negative as negative
from gnomon.symbol import norm as norm
from gnomon.symbol import radians as radians
from gnomon.symbol import relu as relu
def retain(data: Symbol, indices: Symbol | None = ..., out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The rows of `data` that `indices` name; the others are 0."""
from gnomon.symbol import rint as rint
from gnomon.symbol import round as round
from gnomon.symbol import rsqrt as rsqrt
from gnomon.symbol import sgd_mom_update as sgd_mom_update
from gnomon.symbol import sgd_update as sgd_update
from gnomon.symbol import sigmoid as sigmoid
from gnomon.symbol import sign as sign
from gnomon.symbol import sin as sin
from gnomon.symbol import sinh as sinh
from gnomon.symbol import slice as slice
from gnomon.symbol import sqrt as sqrt
from gnomon.symbol import square as square
from gnomon.symbol import stop_gradient as stop_gradient
from gnomon.symbol import sum as sum
from gnomon.symbol import tan as tan
from gnomon.symbol import tanh as tanh
from gnomon.symbol import trunc as trunc
from gnomon.symbol import where as where
from gnomon.symbol import zeros_like as zeros_like

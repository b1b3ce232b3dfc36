"""Automatic mixed precision: float16 or bfloat16 where that is fast, float32 where it has to be.

>>> from gnomon.contrib import amp
>>> "FullyConnected" in amp.list_lp16_ops("float16"), "softmax" in amp.list_fp32_ops("float16")
(True, True)
"""

from gnomon.contrib.amp import amp, lists, loss_scaler
from gnomon.contrib.amp.convert import (
    convert_bucketing_module,
    convert_hybrid_block,
    convert_model,
    convert_symbol,
)
from gnomon.contrib.amp.lists import (
    list_conditional_fp32_ops,
    list_fp32_ops,
    list_loss_output_functions,
    list_lp16_fp32_ops,
    list_lp16_ops,
    list_lp16_use_fp32_params,
    list_widest_type_cast,
)
from gnomon.contrib.amp.training import init, init_trainer, scale_loss, unscale

__all__ = [
    "amp",
    "convert_bucketing_module",
    "convert_hybrid_block",
    "convert_model",
    "convert_symbol",
    "init",
    "init_trainer",
    "list_conditional_fp32_ops",
    "list_fp32_ops",
    "list_loss_output_functions",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_lp16_use_fp32_params",
    "list_widest_type_cast",
    "lists",
    "loss_scaler",
    "scale_loss",
    "unscale",
]

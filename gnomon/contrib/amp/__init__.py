"""Automatic mixed precision: float16 or bfloat16 where that is fast, float32 where it has to be.

>>> from gnomon.contrib import amp
>>> "FullyConnected" in amp.list_lp16_ops("float16"), "softmax" in amp.list_fp32_ops("float16")
(True, True)
"""

from gnomon.compatibility.absent import showing as _showing
from gnomon.contrib.amp import amp as amp, lists as lists, loss_scaler as loss_scaler
from gnomon.contrib.amp.convert import (
    convert_bucketing_module as convert_bucketing_module,
    convert_hybrid_block as convert_hybrid_block,
    convert_model as convert_model,
    convert_symbol as convert_symbol,
)
from gnomon.contrib.amp.lists import (
    list_conditional_fp32_ops as list_conditional_fp32_ops,
    list_fp32_ops as list_fp32_ops,
    list_loss_output_functions as list_loss_output_functions,
    list_lp16_fp32_ops as list_lp16_fp32_ops,
    list_lp16_ops as list_lp16_ops,
    list_lp16_use_fp32_params as list_lp16_use_fp32_params,
    list_widest_type_cast as list_widest_type_cast,
)
from gnomon.contrib.amp.training import (
    init as init,
    init_trainer as init_trainer,
    scale_loss as scale_loss,
    unscale as unscale,
)

__getattr__, __dir__ = _showing(__name__, ("amp", "lists", "loss_scaler"))

"""Checkpoints of recurrent networks: the files hold the weights of all gates apart.

The module has the names that MXNet's has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gnomon.module.checkpoint import load_checkpoint, save_checkpoint
from gnomon.rnn.base import BaseRNNCell
from gnomon.rnn.base import unrolled_by_hand as rnn_unroll

__all__ = [
    "BaseRNNCell",
    "do_rnn_checkpoint",
    "load_checkpoint",
    "load_rnn_checkpoint",
    "rnn_unroll",
    "save_checkpoint",
    "save_rnn_checkpoint",
]

Cells = Any  # a cell, or a list of cells


def save_rnn_checkpoint(
    cells: Cells,
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
) -> None:
    """`save_checkpoint` with the weights of `cells` unpacked."""
    for cell in _listed(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Any, Any, Any]:
    """(symbol, arg_params, aux_params) of a checkpoint, with the weights of `cells` packed."""
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """An `epoch_end_callback` that writes a checkpoint after every `period` epochs."""
    period = max(1, int(period))

    def write(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return write


def _listed(cells: Cells) -> list[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)

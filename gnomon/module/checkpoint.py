"""Checkpoints: a network's symbol and parameters in two files, by prefix and epoch."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gnomon import ndarray as nd
from gnomon import symbol as sym
from gnomon.base import FormatError, check_kind
from gnomon.context import cpu
from gnomon.ground.arguments import checked

Params = dict[str, Any]


class BatchEndParam(NamedTuple):
    """What a callback is told after a batch: its place, the metric so far, the loop's variables."""

    epoch: int
    nbatch: int
    eval_metric: Any
    locals: Mapping[str, Any] | None

    def __repr__(self) -> str:
        """As MXNet shows it."""
        place = f"epoch={self.epoch!r}, nbatch={self.nbatch!r}"
        return f"BatchEndParams({place}, eval_metric={self.eval_metric!r}, locals={self.locals!r})"


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Any,
    arg_params: Mapping[str, Any],
    aux_params: Mapping[str, Any],
    remove_amp_cast: bool = True,
) -> None:
    """Write `prefix-symbol.json`, unless `symbol` is None, and `prefix-0012.params` (epoch 12)."""
    if symbol is not None:
        check_kind("save_checkpoint", "symbol", symbol, sym.Symbol, "a Symbol or None")
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    name = params_file(prefix, epoch)
    save_params(name, arg_params, aux_params)
    logging.info('Saved checkpoint to "%s"', name)


@checked
def params_file(prefix: str | os.PathLike[str], epoch: int) -> str:
    """Name of the file with the parameters of an epoch.

    >>> params_file("lenet", 7)
    'lenet-0007.params'
    """
    return f"{prefix}-{int(epoch):04d}.params"


def save_params(fname: str, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
    """Write parameters and auxiliary states to one file, marked `arg:` and `aux:`."""
    arrays = {f"arg:{name}": array.as_in_context(cpu()) for name, array in arg_params.items()}
    arrays.update({f"aux:{name}": array.as_in_context(cpu()) for name, array in aux_params.items()})
    nd.save(fname, arrays)


def read_params(fname: str) -> tuple[Params, Params]:
    """The parameters and auxiliary states in a file of `save_params`.

    Raises:
        FormatError: the file holds something else.
    """
    loaded = nd.load(fname)
    if not isinstance(loaded, Mapping):
        if not loaded:
            logging.warning("%s: there are no parameters in the file", fname)
            return {}, {}
        raise FormatError(f"{fname}: expected arrays with names, got {len(loaded)} without")
    params: dict[str, Params] = {"arg": {}, "aux": {}}
    for name, array in loaded.items():
        kind, colon, rest = name.partition(":")
        if not colon or kind not in params:
            got = f"{name!r}, as a Gluon block's save_parameters writes"
            raise FormatError(f"{fname}: expected names that start with arg: or aux:, got {got}")
        params[kind][rest] = array
    return params["arg"], params["aux"]


def load_params(prefix: str, epoch: int) -> tuple[Params, Params]:
    """(arg_params, aux_params) of the checkpoint with this prefix and epoch."""
    return read_params(params_file(prefix, epoch))


def load_checkpoint(prefix: str, epoch: int) -> tuple[Any, Params, Params]:
    """(symbol, arg_params, aux_params) of the checkpoint with this prefix and epoch."""
    symbol = sym.load(f"{prefix}-symbol.json")
    return (symbol, *load_params(prefix, epoch))

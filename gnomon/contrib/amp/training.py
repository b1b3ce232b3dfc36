"""Training in mixed precision: casts while operators are applied, and a scaled loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gnomon.base import GnomonError, complaint
from gnomon.contrib.amp.lists import LOSSES, chosen, target
from gnomon.contrib.amp.loss_scaler import LossScaler
from gnomon.gluon.trainer import Trainer
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ops import precision, registry
from gnomon.ops.precision import Condition


def init(
    target_dtype: Any = "float16",
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[Condition] | None = None,
    fp32_ops: Sequence[str] | None = None,
) -> None:
    """Compute in mixed precision from now on: arrays, symbols, and blocks that are traced later.

    Networks that are composed already stay as they are. Operators that write into `out=` compute in
    the dtypes they are given.

    Args:
        target_dtype: "float16" or "bfloat16".
        target_precision_ops: names of operators that compute in it; None for `list_lp16_ops`.
        conditional_fp32_ops: operators that compute in float32 with some values of a parameter.
        fp32_ops: operators that compute in float32; None for `list_fp32_ops`.

    Raises:
        ParamError: another dtype, an unknown operator, or one in two lists.
        GnomonError: another dtype is in force already.
    """
    wanted = target("init", target_dtype)
    now = precision.current
    if now is not None:
        if now.target is not wanted:
            raise GnomonError(complaint("init", "target_dtype", now.target.name, wanted.name))
        return
    precision.current = chosen(
        "init", wanted, target_precision_ops, fp32_ops, conditional_fp32_ops
    )._replace(losses=frozenset(map(registry.find, LOSSES)))
    LEARNT.forget()


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Have a `gluon.Trainer` skip steps whose gradients are not finite, with `scale_loss`.

    Raises:
        TypeError: it is no Trainer.
        GnomonError: `init` was not called.
    """
    trainer = _trainer("init_trainer", optimizer_or_trainer)
    now = precision.current
    if now is None:
        raise GnomonError("init_trainer: mixed precision is off: call amp.init() first")
    scaler = LossScaler()
    trainer._amp_loss_scaler, trainer._amp_original_scale = scaler, trainer._scale
    precision.current = now._replace(loss_scale=lambda: scaler.loss_scale)


@contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """A scope that gives the loss, or a list of losses, times the trainer's factor.

    The next `step` divides by it.

        with autograd.record():
            loss = loss_of(net(data), label)
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(batch_size)

    Raises:
        TypeError: it is no Trainer.
        GnomonError: `init_trainer` was not called with it.
    """
    trainer = _trainer("scale_loss", optimizer_or_trainer)
    if trainer._amp_loss_scaler is None:
        raise GnomonError("scale_loss: the trainer scales no losses: call amp.init_trainer first")
    scale = trainer._amp_loss_scaler.loss_scale
    trainer._scale = trainer._amp_original_scale / scale
    yield [x * scale for x in loss] if isinstance(loss, (list, tuple)) else loss * scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divide the gradients by the loss's factor now, say to clip them before the next step.

    Raises:
        TypeError: it is no Trainer.
    """
    trainer = _trainer("unscale", optimizer_or_trainer)
    for param in trainer._params:
        if param.grad_req != "null":
            for grad in param.list_grad():
                grad *= trainer._scale
    trainer._scale = 1.0


def _trainer(where: str, given: Any) -> Trainer:
    if not isinstance(given, Trainer):
        got = type(given).__name__
        raise TypeError(complaint(where, "optimizer_or_trainer", "a gluon.Trainer", got))
    return given

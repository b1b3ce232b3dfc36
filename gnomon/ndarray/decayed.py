"""`mx.nd.contrib`'s updates of AdamW and LAMB, of one weight or of lists of weights.

`rescale_grad` may be a number or an array of one element. What is written goes to `out`; means,
squares and float32 copies change in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.ndarray.api.functions import find
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.create import array

Arrays = Sequence[Any]


def scale(rescale_grad: Any, weight: Any) -> Any:
    """What gradients are multiplied by, as an array."""
    if not isinstance(rescale_grad, Array):
        rescale_grad = array([rescale_grad], weight.context)
    return rescale_grad.astype("float32").reshape((1,))


def adamw_update(
    weight: Any, grad: Any, mean: Any, var: Any, rescale_grad: Any, lr: float, eta: float,
    beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
    clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """A step of Adam with a decay of its own; none where `rescale_grad` is not finite, or 0."""
    inputs = weight, grad, mean, var, scale(rescale_grad, weight)
    given = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    update = find("_internal", "_adamw_update")
    return update(*inputs, out=out, clip_gradient=clip_gradient, **given, **kwargs)


def mp_adamw_update(
    weight: Any, grad: Any, mean: Any, var: Any, weight32: Any, rescale_grad: Any, lr: float,
    eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
    clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """`adamw_update` on `weight32`, a float32 copy of the weight."""
    inputs = weight, grad, mean, var, weight32, scale(rescale_grad, weight)
    given = {"lr": lr, "eta": eta, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "wd": wd}
    update = find("_internal", "_mp_adamw_update")
    return update(*inputs, out=out, clip_gradient=clip_gradient, **given, **kwargs)


def together(where: str, *lists: Arrays) -> list[Any]:
    """What lists of arrays hold, weight by weight.

    Raises:
        ParamError: they are not of one length.
    """
    sizes = [len(each) for each in lists]
    if len(set(sizes)) != 1 or not sizes[0]:
        raise ParamError(complaint(where, "weights", "lists of one length above 0", sizes))
    return [x for each in zip(*lists, strict=True) for x in each]


def multi_adamw_update(
    weights: Arrays, grads: Arrays, mean: Arrays, var: Arrays, rescale_grad: Any,
    lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float], out: Any = None,
    name: str | None = None, size: int = 0, **kwargs: Any,
) -> Any:  # fmt: skip
    """`adamw_update` of several weights at once, each with numbers of its own."""
    inputs = together("multi_adamw_update", weights, grads, mean, var)
    given = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights)}
    update = find("_internal", "_multi_adamw_update")
    return update(*inputs, scale(rescale_grad, weights[0]), out=out, **given, **kwargs)


def multi_mp_adamw_update(
    weights: Arrays, grads: Arrays, mean: Arrays, var: Arrays, weights32: Arrays,
    rescale_grad: Any, lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float],
    out: Any = None, name: str | None = None, size: int = 0, **kwargs: Any,
) -> Any:  # fmt: skip
    """`multi_adamw_update` on float32 copies of the weights."""
    inputs = together("multi_mp_adamw_update", weights, grads, mean, var, weights32)
    given = {"lrs": lrs, "wds": wds, "etas": etas, "num_weights": size or len(weights)}
    update = find("_internal", "_multi_mp_adamw_update")
    return update(*inputs, scale(rescale_grad, weights[0]), out=out, **given, **kwargs)


def multi_lamb_update(
    weights: Arrays, grads: Arrays, mean: Arrays, var: Arrays, step_count: Sequence[int],
    lrs: Sequence[float], wds: Sequence[float], out: Any = None, num_tensors: int = 0,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """A step of LAMB of several weights at once; `step_count` counts updates from 1 on."""
    inputs = together("multi_lamb_update", weights, grads, mean, var)
    given = {"step_count": step_count, "learning_rates": lrs, "wds": wds}
    update = find("_internal", "_multi_lamb_update")
    return update(*inputs, out=out, num_tensors=num_tensors or len(weights), **given, **kwargs)


def multi_mp_lamb_update(
    weights: Arrays, grads: Arrays, mean: Arrays, var: Arrays, weights32: Arrays,
    step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float], out: Any = None,
    num_tensors: int = 0, **kwargs: Any,
) -> Any:  # fmt: skip
    """`multi_lamb_update` on float32 copies of the weights."""
    inputs = together("multi_mp_lamb_update", weights, grads, mean, var, weights32)
    given = {"step_count": step_count, "learning_rates": lrs, "wds": wds}
    update = find("_internal", "_multi_mp_lamb_update")
    return update(*inputs, out=out, num_tensors=num_tensors or len(weights), **given, **kwargs)

"""Worker: the extension rows by gnomon.shadow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ext_work as work
import numpy as np
from protocol import Step, serve

import gnomon
from gnomon import shadow
from gnomon.shadow import Random, Tensor

RND = Random(seed=3)
Tensors = dict[str, Tensor]
FORMULAS: dict[str, Callable[[Tensors], Any]] = {
    "pool 2": lambda a: shadow.pool("max", a["x"], 2, 2),
    "pool 3": lambda a: shadow.pool("max", a["x"], 3, 2),
    "unpool": lambda a: shadow.unpool("max", a["x"], a["pooled"], a["grad"], 2, 2),
    "patch2col": lambda a: shadow.unpack_patch2col(a["x"], 3, 1, 1, 1),
    "col2patch": lambda a: shadow.pack_col2patch(a["x"], a["out"].shape, 3, 1, 1, 1),
    "take": lambda a: shadow.take(a["index"], a["x"]),
    "take_grad": lambda a: shadow.take_grad(a["index"], a["x"], a["out"].shape[0]),
    "take_grad duplicates": lambda a: shadow.take_grad(a["index"], a["x"], a["out"].shape[0]),
    "one_hot": lambda a: shadow.one_hot_encode(a["index"], a["out"].shape[1]),
    "transpose": lambda a: a["x"].T,
    "concat 0": lambda a: shadow.concat(a["x"], a["y"], 0),
    "concat 1": lambda a: shadow.concat(a["x"], a["y"], 1),
    "pad": lambda a: shadow.pad(a["x"], 2),
    "uniform": lambda a: RND.uniform(a["out"].shape),
    "gaussian": lambda a: RND.gaussian(a["out"].shape),
    "gamma": lambda a: RND.gamma(a["out"].shape, work.ALPHA),
    "poisson": lambda a: RND.poisson(a["out"].shape, work.MEAN),
}


def sort(a: Tensors) -> Step:
    """Keys and values sorted in place, from fresh copies: what they are copied from stays."""
    keys, values = (shadow.TensorContainer(a[k].shape) for k in ("x", "y"))

    def step() -> Tensor:
        keys.assign(a["x"])
        values.assign(a["y"])
        shadow.sort_by_key(keys, values)
        return values

    return step


def setup(row: str) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row: the expression is composed and assigned anew each time, as a user does."""
    a = {k: Tensor(v) for k, v in work.arrays(row).items()}
    if row == "sort":
        step = sort(a)
    elif row == "softmax":
        step = lambda: shadow.softmax(a["out"], a["x"])  # noqa: E731
    else:
        formula = FORMULAS[row]
        step = lambda: a["out"].assign(formula(a))  # noqa: E731
    result: Any = step()
    return step, lambda: None, {"probe": work.probe(row, np.asarray(result.numpy()))}


if __name__ == "__main__":
    serve(f"gnomon {gnomon.__version__}", setup)

"""Worker: the extension rows by PyTorch, into memory that is there where it takes any."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import ext_work as work
import torch
from protocol import Step, serve

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
F = torch.nn.functional
Tensors = dict[str, torch.Tensor]


def unpool(a: Tensors) -> Step:
    """The gradient of `max_pool2d`, which gives a tie's gradient to one element."""
    places = F.max_pool2d(a["x"], 2, return_indices=True)[1]
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    return lambda: backward(a["grad"], a["x"], [2, 2], [2, 2], [0, 0], [1, 1], False, places)


def images(a: Tensors) -> Step:
    """`fold`, of columns in the order it wants."""
    n, _, h, w = a["out"].shape
    x = a["x"].reshape(-1, n, h * w).transpose(0, 1).contiguous()
    return lambda: F.fold(x, (h, w), 3, padding=1)


def one_hot(a: Tensors) -> Step:
    index = a["index"][:, None]
    return lambda: a["out"].zero_().scatter_(1, index, 1.0)


def sort(a: Tensors) -> Step:
    return lambda: a["y"][torch.sort(a["x"], stable=True)[1]]


STEPS: dict[str, Callable[[Tensors], Step]] = {
    "pool 2": lambda a: lambda: F.max_pool2d(a["x"], 2),
    "pool 3": lambda a: lambda: F.max_pool2d(a["x"], 3, 2),
    "unpool": unpool,
    "patch2col": lambda a: lambda: F.unfold(a["x"], 3, padding=1),
    "col2patch": images,
    "take": lambda a: lambda: torch.index_select(a["x"], 0, a["index"], out=a["out"]),
    "take_grad": lambda a: lambda: a["out"].zero_().index_add_(0, a["index"], a["x"]),
    "take_grad duplicates": lambda a: lambda: a["out"].zero_().index_add_(0, a["index"], a["x"]),
    "one_hot": one_hot,
    "transpose": lambda a: lambda: a["out"].copy_(a["x"].T),
    "concat 0": lambda a: lambda: torch.cat([a["x"], a["y"]], 0, out=a["out"]),
    "concat 1": lambda a: lambda: torch.cat([a["x"], a["y"]], 1, out=a["out"]),
    "pad": lambda a: lambda: F.pad(a["x"], (2, 2, 2, 2)),
    "softmax": lambda a: lambda: torch.softmax(a["x"], 1, out=a["out"]),
    "sort": sort,
    "uniform": lambda a: a["out"].uniform_,
    "gaussian": lambda a: a["out"].normal_,
    "gamma": lambda a: lambda: torch._standard_gamma(torch.full_like(a["out"], work.ALPHA)),
    "poisson": lambda a: lambda: torch.poisson(torch.full_like(a["out"], work.MEAN)),
}


def setup(row: str) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = {k: torch.from_numpy(v) for k, v in work.arrays(row).items()}
    make = STEPS[row](a)

    @torch.no_grad()
    def step() -> torch.Tensor:
        return make()

    result = step()
    if row == "patch2col":  # images first, then columns
        result = result.transpose(0, 1)
    return step, lambda: None, {"probe": work.probe(row, result.contiguous().numpy())}


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__}", setup)

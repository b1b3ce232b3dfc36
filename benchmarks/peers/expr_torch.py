"""Worker: expressions by PyTorch, `expr_torch.py eager` or `expr_torch.py compile`."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import work
from protocol import Step, serve

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
ETA, LAM = work.ETA, work.LAM
F = torch.nn.functional


def sgd(g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """In place: by itself as two passes, compiled as one."""
    if sys.argv[1] == "compile":
        return w.copy_(-ETA * (g + LAM * w))
    return torch.add(g, w, alpha=LAM, out=w).mul_(-ETA)


def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.add_(x)


FORMULAS = {
    "sgd": sgd,
    "new sgd": lambda g, w: -ETA * torch.add(g, w, alpha=LAM),
    "plus": plus,
    "row": lambda x, r: x + r,
    "column": lambda x, c: x * c,
    "gelu": F.gelu,
    "gelu function": F.gelu,
    "sigmoid": lambda x: x.sigmoid(),
    "softplus": F.softplus,
    "add": lambda x, y: x + y,
    "mixed": lambda b, c, d: b * torch.maximum(c, b) + d / (1 + b.abs()) - c,
    "activations": lambda x: F.gelu(x) + x.sigmoid() + x.tanh() + x.exp(),
    "tanh": lambda x: x.tanh(),
    "exp": lambda x: x.exp(),
    "smooth_l1": lambda x: torch.where(x.abs() < 1, 0.5 * x * x, x.abs() - 0.5),
    "transpose": lambda x: x.T.contiguous(),
    "argmax": lambda x: x.argmax(),
    "transposed": lambda x, y: x.T + y,
    "sum all": lambda x: x.sum(0, keepdim=True),
    "argmax 1": lambda x: x.argmax(1),
    "variance": lambda x: x.var(1, correction=0),
    "every other": lambda x: x[:, 0] * 2 + 1,
    "cumsum": lambda x: x.cumsum(1),
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1),
    "softmax": lambda x: x.softmax(1),
    "softmax of 50": lambda x: x.softmax(1),
    "truncate": lambda x: x.to(torch.int32),
    "outer": lambda r, c: r + c,
    **dict.fromkeys(("sum of 3", "sum of 8", "sum of 30"), lambda x: x.sum(1)),
    **dict.fromkeys(("max of 3", "max of 8", "max of 30"), lambda x: x.amax(1)),
}
CASTS = {"cast": lambda x, to: x.to(to), "bytes": lambda x, to: x.to(to) * work.BYTE}


def setup(row: str, n: int, dtype: str, repeats: int) -> tuple[Step, Step, dict[str, Any]]:
    """The step of a row, and its result's probe."""
    a = {k: torch.from_numpy(v) for k, v in work.arrays(row, n, dtype).items()}
    operands = [a[k] for k in work.ROWS[row].operands]
    formula = FORMULAS[row] if row in FORMULAS else CASTS[row]
    if row in CASTS:
        operands.append(getattr(torch, dtype))
    if sys.argv[1] == "compile":
        torch._dynamo.reset()
        formula = torch.compile(formula)

    @torch.no_grad()
    def step() -> torch.Tensor:
        return formula(*operands)

    return step, lambda: None, {"probe": work.probe(step().numpy())}


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__} {sys.argv[1]}", setup)

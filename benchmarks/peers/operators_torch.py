"""Worker: single operators by PyTorch.

Gradients are stored in `grad` of their arrays, as the other workers store them: `autograd.grad`
would hand out one array as the gradients of both operands of a sum, the one that it was given.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from operators import ARRAYS, ROWS, WHOLE, arrays
from protocol import PeerError, Step, serve
from torch.nn import functional


def setup(row: str, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """The operator's function, and with `train` its gradients."""
    if not ROWS[row][1]:
        raise PeerError("no such operator")
    named: dict[str, Any] = {"torch": torch, "F": functional}
    for name, values in arrays(row).items():
        kind = torch.int64 if name in WHOLE else torch.float32
        grad = train and name in ARRAYS
        named[name] = torch.tensor(values).to(kind).requires_grad_(grad)
    code = compile(ROWS[row][1], row, "eval")
    head = torch.ones_like(eval(code, named))
    leaves = [x for x in named.values() if isinstance(x, torch.Tensor) and x.requires_grad]

    def forward() -> None:
        with torch.no_grad():
            eval(code, named)

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None  # as optimizers leave it: what comes is stored, not added
        eval(code, named).backward(head)

    return (both if train else forward), lambda: None, {}


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    serve(f"PyTorch {torch.__version__}", setup)

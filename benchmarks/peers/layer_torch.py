"""Worker: single layers by PyTorch."""

from __future__ import annotations

import os
from typing import Any

import torch
from layers import ROWS
from protocol import Step, serve
from torch.nn import functional


def setup(row: str, train: bool) -> tuple[Step, Step, dict[str, Any]]:
    """A layer's function, and its gradients to `train`."""
    layer, how = ROWS[row], dict(ROWS[row].how)
    kind = getattr(torch, layer.dtype)
    data = torch.randn(layer.data, dtype=kind, requires_grad=train)
    if layer.operator == "Convolution":
        groups = how["num_group"]
        sizes = (how["num_filter"], layer.data[1] // groups, *how["kernel"])
        weight = torch.randn(sizes, dtype=kind, requires_grad=train)

        def forward() -> Any:
            return functional.conv2d(
                data, weight, stride=how["stride"], padding=how["pad"], groups=groups
            )
    else:
        mean = how["pool_type"] == "avg"
        pool = functional.avg_pool2d if mean else functional.max_pool2d

        def forward() -> Any:
            return pool(data, how["kernel"], how["stride"])

    head = torch.ones_like(forward())

    def step() -> None:
        forward().backward(head)

    def predict() -> None:
        with torch.no_grad():
            forward()

    return (step if train else predict), lambda: None, {}


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    serve(f"PyTorch {torch.__version__}", setup)

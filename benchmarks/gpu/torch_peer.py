"""The same work by PyTorch, on the GPU where it has one: what `all.py` stands beside.

Without one it runs on the processor, which shows that it works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import expr_torch
import torch
import work

Step = Callable[[], object]
THERE = "cuda" if torch.cuda.is_available() else "cpu"
WARM = 3  # steps before one is captured

torch.backends.cudnn.allow_tf32 = False  # float32 is float32


def wait() -> None:
    """Returns when all is done."""
    if THERE == "cuda":
        torch.cuda.synchronize()


def formula(row: str, n: int) -> Step:
    """A row of the expression benchmark, operation by operation."""
    said = work.ROWS[row]
    operands: list[Any] = []
    for k, shape in said.operands.items():
        numbers = torch.randn(shape(n), device=THERE)
        operands.append(
            (numbers * 50).abs().to(_type(said.types[k])) if k in said.types else numbers
        )
    if row in expr_torch.CASTS:
        operands.append(torch.float32)
    of = expr_torch.FORMULAS.get(row) or expr_torch.CASTS[row]
    return torch.no_grad()(lambda: of(*operands))


def compiled(row: str, n: int) -> Step:
    """The same by `torch.compile`."""
    step: Step = torch.compile(formula(row, n))
    return step


def _type(name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, name)
    return found


def layer(name: str, *shapes: Sequence[int]) -> Step:
    """A layer on data and weights of these shapes, with its gradients."""
    given = [torch.randn(*shape, device=THERE, requires_grad=True) for shape in shapes]

    def step() -> None:
        y = LAYERS[name](*given)
        torch.autograd.grad(y, given, torch.ones_like(y))

    return step


def network(name: str, shape: Sequence[int]) -> Step:
    """A step of training, with momentum, as a CUDA graph; pictures with their channels last."""
    net = NETWORKS[name]().to(THERE, memory_format=torch.channels_last)
    x, y = torch.ones(*shape, device=THERE), torch.ones(shape[0], dtype=torch.int64, device=THERE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return captured(step) if THERE == "cuda" else step


def captured(step: Step) -> Step:
    """The step as one launch."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    replay: Step = graph.replay
    return replay


def _mlp() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def _lenet() -> torch.nn.Module:
    nn, layers = torch.nn, []
    for before, filters in ((1, 6), (6, 16)):
        layers += [nn.Conv2d(before, filters, 5), nn.Tanh(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(256, 120), nn.Tanh(), nn.Linear(120, 10)]
    return nn.Sequential(*layers)


class _Residual(torch.nn.Module):
    """Blocks as ResNet-50 has them, in float16."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = _normalized(3, 256, 3, 2).half()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                _normalized(256, 64, 1),
                _normalized(64, 64, 3),
                nn.Conv2d(64, 256, 1, bias=False),
                nn.BatchNorm2d(256),
            ).half()
            for _ in range(3)
        )
        self.last = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x.half().contiguous(memory_format=torch.channels_last))
        for block in self.blocks:
            x = torch.relu(block(x) + x)
        found: torch.Tensor = self.last(x.mean((2, 3)).float())
        return found


def _normalized(before: int, filters: int, size: int, stride: int = 1) -> torch.nn.Module:
    nn = torch.nn
    convolution = nn.Conv2d(before, filters, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(filters), nn.ReLU())


LAYERS: dict[str, Callable[..., Any]] = {
    "convolution": lambda x, w: torch.nn.functional.conv2d(x, w, padding=1),
    "convolution last": lambda x, w: torch.nn.functional.conv2d(
        x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1
    ),
    "max pooling": lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1),
}
NETWORKS = {"mlp": _mlp, "lenet": _lenet, "residual": _Residual}

"""Worker: the steps of `imperative_module.py` by PyTorch, as it is called."""

from __future__ import annotations

import os
from typing import Any

import imperative_nets as nets
import torch
from protocol import Step, serve
from torch.nn import functional

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))

Table = dict[str, torch.Tensor]


def dense(x: torch.Tensor, p: Table, name: str) -> torch.Tensor:
    return functional.linear(x, p[f"{name}_weight"], p[f"{name}_bias"])


def mlp(x: torch.Tensor, p: Table) -> torch.Tensor:
    x = functional.relu(dense(x, p, "fc1"))
    return dense(functional.relu(dense(x, p, "fc2")), p, "fc3")


def norm(x: torch.Tensor, p: Table, name: str) -> torch.Tensor:
    return functional.layer_norm(x, (128,), p[f"{name}_gamma"], p[f"{name}_beta"])


def block(x: torch.Tensor, p: Table, k: int) -> torch.Tensor:
    parts = dense(norm(x, p, f"n{k}a"), p, f"parts{k}").unflatten(2, (3, 4, 32))
    found = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4))
    x = x + dense(found.transpose(1, 2).flatten(2), p, f"joined{k}")
    wide = functional.gelu(dense(norm(x, p, f"n{k}b"), p, f"wide{k}"))
    return x + dense(wide, p, f"narrow{k}")


def transformer(x: torch.Tensor, p: Table) -> torch.Tensor:
    for k in range(2):
        x = block(x, p, k)
    return dense(norm(x, p, "last").mean(1), p, "out")


def lstm(x: torch.Tensor, p: Table) -> torch.Tensor:
    state = memory = None
    for xt in x.unbind(1):
        gates = dense(xt, p, "given")
        if state is not None:
            gates = gates + dense(state, p, "kept")
        i, f, g, o = gates.chunk(4, 1)
        fresh = i.sigmoid() * g.tanh()
        memory = fresh if memory is None else f.sigmoid() * memory + fresh
        state = o.sigmoid() * memory.tanh()
    assert state is not None
    return dense(state, p, "out")


NETS = {"mlp": mlp, "transformer": transformer, "lstm": lstm}


def optimizer(net: str, weights: list[torch.Tensor]) -> torch.optim.Optimizer:
    kind, settings = nets.OPTIMIZERS[net]
    if kind == "sgd":
        return torch.optim.SGD(weights, settings["learning_rate"], settings["momentum"], fused=True)
    return torch.optim.Adam(weights, settings["learning_rate"], fused=True)


def setup(net: str, size: int) -> tuple[Step, Step, dict[str, Any]]:
    """A network with an optimizer; its loss after some steps."""
    x, label = map(torch.from_numpy, nets.batch(net, size))
    label = label.long()
    params = {k: torch.from_numpy(v).requires_grad_() for k, v in nets.parameters(net).items()}
    update, last = optimizer(net, list(params.values())), [torch.zeros(())]
    forward = NETS[net]

    def step() -> None:
        update.zero_grad(set_to_none=True)
        last[0] = loss = functional.cross_entropy(forward(x, params), label)
        loss.backward()
        update.step()

    for _ in range(nets.PROOF):
        step()
    return step, lambda: None, {"loss": last[0].item()}


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__} eager", setup)

"""What turns in networks of float16 on a GPU, without one: nothing runs on the simulated one.

    python benchmarks/gpu/layouts.py
    python benchmarks/gpu/layouts.py --networks resnet50_v1 --batch 8

For a step of training of each network of the model zoo, channels last and channels first: how many
steps there are, how many of these do nothing but turn, the MB they move, and the MB that cuDNN
reads and writes in convolutions. Kernels of tensor cores read channels last: with channels first
cuDNN turns what it reads and writes by kernels of its own, which move up to twice as much besides.
"""

from __future__ import annotations

import argparse
from typing import Any
from unittest import mock

import gnomon as mx
from gnomon import config
from gnomon.executor.report.profile import TaskProfile, planned_tasks
from gnomon.gluon.model_zoo import vision
from gnomon.runtime.statements.gpu import LibrariesOf

PICTURE = (3, 224, 224)
FIRST = mock.patch.object(LibrariesOf, "prefers_last", return_value=False)


def planned(name: str, batch: int) -> list[TaskProfile]:
    """The tasks of a step of training."""
    net = vision.get_model(name)
    net.cast("float16")
    data = mx.sym.Cast(mx.sym.Variable("data"), dtype="float16")
    symbol = mx.sym.make_loss(mx.sym.Cast(net(data), dtype="float32"))
    options: dict[str, Any] = {"data": (batch, *PICTURE)}
    names = [n for n in symbol.list_arguments() if n != "data"]
    bound = symbol.simple_bind(mx.gpu(0), grad_req=dict.fromkeys(names, "write"), **options)
    return planned_tasks(bound._run(bound._mode(True)), "forward and backward")


def turns(row: TaskProfile, name: str) -> bool:
    """Whether a step of a task does nothing but turn."""
    form = row.task.form
    return name == "copy" or (form is not None and all(s is not None for s in form.seen))


def figures(rows: list[TaskProfile]) -> str:
    """What is to be known of a step of training."""
    steps = [(row, step) for row in rows for step in row.steps]
    turning = [step.bytes for row, step in steps if turns(row, step.name)]
    convolved = sum(step.bytes for _, step in steps if step.name == "convolution")
    return f"{len(steps)} | {len(turning)} | {sum(turning) / 1e6:,.1f} | {convolved / 1e6:,.0f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="*", default=["resnet50_v1", "mobilenet1.0"])
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    config.set("gpu", "simulated")
    print("| network | channels | steps | that turn | MB they move | MB of convolutions |")
    print("|---|---|---|---|---|---|")
    for name in options.networks:
        print(f"| {name} | last | {figures(planned(name, options.batch))} |", flush=True)
        with FIRST:
            print(f"| {name} | first | {figures(planned(name, options.batch))} |", flush=True)


if __name__ == "__main__":
    main()

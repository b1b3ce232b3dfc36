"""Do a Trainer's states that one library saved lead the other one on? Run by hand.

    MXNET_SUBGRAPH_BACKEND=NONE oracle/bin/python tests/golden/check_states.py \
        --gnomon path/to/the/python/with/gnomon

For every optimizer each library takes three steps. Then each loads the weights and states that the
other one saved after two of them, and takes the third step.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
MOMENTUM = {"momentum": 0.9}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    name.lower(): (name, {})
    for name in "SGD NAG Adam AdaGrad RMSProp AdaDelta Ftrl Adamax Signum FTML LARS LAMB".split()
} | {
    "momentum": ("sgd", MOMENTUM),
    "lbsgd": ("lbsgd", MOMENTUM),
    "half": ("sgd", {**MOMENTUM, "multi_precision": True}),
    "half adam": ("adam", {"multi_precision": True}),
    "lars momentum": ("lars", MOMENTUM),
    "nag momentum": ("nag", MOMENTUM),
    "centered": ("rmsprop", {"centered": True}),
    "dcasgd": ("dcasgd", {}),
    "steps": ("sgd", {"steps": [1, 2]}),
}


def step(mx: Any, case: str, before: Path | None) -> tuple[Any, Any]:
    """A trainer and its parameter, after three steps, or after one from saved states."""
    name, arguments = CASES[case]
    arguments = dict(arguments)
    if steps := arguments.pop("steps", None):
        schedule = mx.lr_scheduler.MultiFactorScheduler(steps, 0.5, base_lr=0.01)
        arguments["lr_scheduler"] = schedule
    dtype = "float16" if arguments.get("multi_precision") else "float32"
    weight = mx.gluon.Parameter("net_weight", shape=(2, 3), dtype=dtype)
    weight.initialize(mx.init.Zero())
    trainer = mx.gluon.Trainer([weight], name, arguments)
    weight.set_data(mx.nd.array(np.arange(6).reshape(2, 3) / 4 - 0.6, dtype=dtype))
    if before is not None:
        weight.set_data(mx.nd.array(np.load(before / f"{case}.npy"), dtype=dtype))
        trainer.load_states(str(before / f"{case}.states"))
    return trainer, weight


def train(mx: Any, trainer: Any, weight: Any, turns: range) -> np.ndarray:
    """The weight after these steps."""
    for turn in turns:
        with mx.autograd.record():
            loss = (weight.data() * weight.data() * (turn + 1)).sum()
        loss.backward()
        trainer.step(2)
    return weight.data().asnumpy()


def run(package: str, own: Path, other: Path | None) -> None:
    """Write what one library does: alone, or from the other's states."""
    mx = importlib.import_module(package)
    for case in CASES:
        trainer, weight = step(mx, case, other)
        if other is None:
            np.save(own / f"{case}.npy", train(mx, trainer, weight, range(2)))
            trainer.save_states(str(own / f"{case}.states"))
        np.save(own / f"{case}-after.npy", train(mx, trainer, weight, range(2, 3)))


def main() -> None:
    """Compare, or with `--work` only run one library."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gnomon", default=sys.executable, help="interpreter that has gnomon")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        package, own, *other = asked.work
        run(package, Path(own), Path(other[0]) if other else None)
        return
    pythons = {"mxnet": sys.executable, "gnomon": asked.gnomon}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def work(package: str, *folders: str) -> None:
            for each in folders:
                (folder / each).mkdir(exist_ok=True)
            paths = [str(folder / each) for each in folders]
            command = [pythons[package], __file__, "--work", package, *paths]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})

        work("mxnet", "mxnet")
        work("gnomon", "gnomon")
        work("mxnet", "mxnet on", "gnomon")
        work("gnomon", "gnomon on", "mxnet")
        for case in CASES:
            alone = np.load(folder / "gnomon" / f"{case}-after.npy")
            for other in ("mxnet", "mxnet on", "gnomon on"):
                found = np.load(folder / other / f"{case}-after.npy")
                far = abs(found.astype(np.float64) - alone).max()
                print(f"{case:15} {other:10} differs by {far:.1e}")


if __name__ == "__main__":
    main()

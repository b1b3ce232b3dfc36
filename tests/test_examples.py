"""The examples run and learn, in a small setting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent


class Case(NamedTuple):
    """Arguments of an example, the word before the numbers it prints, and where the last lies."""

    arguments: str
    word: str
    low: float
    high: float = float("inf")


CASES = {
    "gluon_mnist": Case("--epochs 4", "accuracy", 0.92),
    "gluon_mnist plain": Case("--epochs 4 --plain", "accuracy", 0.92),
    "distributed_mnist": Case("--epochs 3", "accuracy", 0.85),
    "module_mnist": Case("--epochs 4", "accuracy:", 0.92),
    "feedforward_mnist": Case("--epochs 4", "accuracy:", 0.93),
    "resnet_cifar": Case("--epochs 3 --images 1500", "accuracy", 0.9),
    "language_bucketing": Case("--epochs 4", "perplexity:", 1.0, 1.5),
    "language_gluon": Case("--epochs 3", "perplexity:", 1.0, 2.3),
    "transformer_copy": Case("--steps 150", "right", 0.9),
    "dcgan": Case("--epochs 4", "distance", 0.0, 0.5),
    "autoencoder": Case("--epochs 8", "bound", 20.0, 28.0),
    "detection": Case("--steps 60", "overlap", 0.75),
    "style": Case("--steps 60", "left", 0.0, 0.2),
    "factorization": Case("--epochs 8 --ratings 40000", "error", 0.1, 0.25),
    "multitask": Case("--epochs 4", "odd: accuracy", 0.95),
    "siamese": Case("--epochs 4", "accuracy", 0.8),
    "csv_regression": Case("--epochs 10", "error", 0.0, 0.02),
    "libsvm_logistic": Case("--epochs 3 --rows 2000", "accuracy", 0.75),
    "predict_checkpoint": Case("{golden}/lenet 1", "right", 0.98),
    "finetune": Case("{golden}/lenet 1 --epochs 5 --out {folder}/new", "accuracy", 0.93),
    "packing": Case("--images 60", "right", 1.0),
    "train_records": Case("--epochs 4", "accuracy", 0.9),
    "detect_records": Case("--epochs 3", "found", 0.7),
    "actor_critic": Case("--updates 200", "stood", 80.0),
}


def test_all_examples_are_run():
    files = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {name.split()[0] for name in CASES} == files - {"digits"}


@pytest.mark.parametrize("name", CASES)
def test_it_learns(name, tmp_path):
    arguments, word, low, high = CASES[name]
    arguments = arguments.format(golden=ROOT / "tests" / "golden", folder=tmp_path)
    script = ROOT / "examples" / f"{name.split()[0]}.py"
    command = [sys.executable, str(script), *arguments.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = re.findall(rf"{word} ([0-9.]+)", done.stdout)
    assert found and low <= float(found[-1]) <= high, done.stdout


@pytest.mark.parametrize("name", ["packing", "train_records", "detect_records"])
def test_without_opencv_it_says_what_to_install(name, tmp_path):
    (tmp_path / "cv2.py").write_text("raise ModuleNotFoundError('cv2')")
    script = ROOT / "examples" / f"{name}.py"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "gnomon[image]" in done.stderr.splitlines()[-1], done.stderr

"""The examples run and learn, in a small setting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(script: str, *arguments: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(ROOT / "examples" / script), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.parametrize("how", [[], ["--plain"]], ids=["hybrid", "plain"])
def test_gluon_mnist(how):
    found = re.findall(r"accuracy ([0-9.]+)", run("gluon_mnist.py", "--epochs", "3", *how))
    assert len(found) == 3
    assert float(found[-1]) > 0.92


@pytest.mark.parametrize(
    ("script", "epochs", "limit"),
    [("language_bucketing.py", 4, 1.5), ("language_gluon.py", 3, 2.3)],
)
def test_language_models(script, epochs, limit):
    found = re.findall(r"perplexity:? ([0-9.]+)", run(script, "--epochs", str(epochs)))
    assert len(found) == epochs + 1
    assert float(found[-1]) < limit

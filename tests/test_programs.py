"""Programs as MXNet's users write them run unchanged: `gnomon run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "arguments", "pattern", "low", "high"),
    [
        ("train_mnist.py", ["--data-train", str(ROOT / "gnomon/data/digits.rec")],
         r"accuracy ([0-9.]+)$", 0.9, 1.0),
        ("gluon_word_lm.py", [], r"perplexity ([0-9.]+)$", 1.0, 2.0),
        ("numpy_ops.py", [], r"accuracy ([0-9.]+) True$", 0.9, 1.0),
        ("bayes_estimator.py", [], r"least ([0-9.]+)$", 0.9, 1.0),
        ("classics.py", [], r"True least ([0-9.]+)$", 0.8, 1.0),
        ("d2l_seq2seq.py", [], r"bleu ([0-9.]+)$", 0.9, 1.0),
        ("d2l_ssd.py", [], r"overlap ([0-9.]+)$", 0.6, 1.0),
        ("fcn_focal.py", [], r"True accuracy ([0-9.]+)$", 0.94, 1.0),
        ("gan_module.py", [], r"away ([0-9.]+) .*\nTrue accuracy [01].[0-9]+$", 0.0, 0.7),
        ("recommender.py", [], r"True accuracy ([0-9.]+)$", 0.97, 1.0),
        ("spatial_executors.py", [], r"parameters 431 accuracy ([0-9.]+)$", 0.95, 1.0),
        # what MXNet 1.9.1 prints: accuracy 1 at a norm of 0.3407, a loss of 0.6459, 0.9842
        ("text_cnn.py", [], r"norm 0\.34[01][0-9] accuracy ([0-9.]+)$", 0.99, 1.0),
        ("gluon_vae.py", [], r"True True\nloss ([0-9.]+)$", 0.640, 0.652),
        ("bucket_tagger.py", [], r"11 23\.[45][0-9]+\ntagged ([0-9.]+)$", 0.975, 0.993),
        # what MXNet 1.9.1 prints, with a last margin of 0.9910
        ("own_parts.py", [], r"16 margin 0\.9708\n\[1, 2, 3, 4, 5, 6, 7, 8\] [^$]* : 1 -> 1\n\)\n"
         r"\[0\.937, 0\.427, 0\.286\] \[1\.0\]\n[^$]*such optimizer\naccuracy 1\.0000\n"
         r"margin ([0-9.]+)$", 0.9908, 0.9912),
    ],
)  # fmt: skip
def test_it_runs_as_it_is(program, arguments, pattern, low, high, tmp_path):
    command = [sys.executable, "-m", "gnomon", "run", str(PROGRAMS / program), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.search(pattern, done.stdout.strip())
    assert found, done.stdout
    assert low <= float(found[1]) <= high, done.stdout

"""The benchmark of a GPU runs, goes on where it was cut off, and writes errors down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "benchmarks" / "gpu" / "all.py"


def run(out: Path, *rows: str, gpu: str = "simulated") -> list[dict]:
    """What it prints of some rows, at small sizes."""
    options = ["--out", out, "--size", "1000", "--repeats", "1", "--rows", *rows]
    environment = {**os.environ, "GNOMON_GPU": gpu}
    done = subprocess.run(
        [sys.executable, SCRIPT, *options],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_steps_are_timed_without_their_work():
    command = [sys.executable, SCRIPT.with_name("steps.py"), "--networks", "mlp"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, name, step, predicting, calls, nbytes, _ = done.stdout.splitlines()[-1].split("|")
    assert name == " mlp " and float(step) > float(predicting) > 0
    assert int(calls) == 5 and int(nbytes.replace(",", "")) > 0


def test_what_turns_is_counted():
    command = [sys.executable, SCRIPT.with_name("layouts.py"), "--networks", "mobilenet0.25"]
    done = subprocess.run([*command, "--batch", "1"], capture_output=True, text=True, check=True)
    last, first = (line.split("|")[2:-1] for line in done.stdout.splitlines()[-2:])
    assert [int(last[k]) for k in (1, 2)] == [int(first[1]) + 2, 2] and int(first[2]) == 0


def test_rows_are_written_once(tmp_path):
    out = tmp_path / "gpu.jsonl"
    (first,) = run(out, "about", gpu="off")
    assert "no GPU can be used" in first["error"]
    rows = "check every other", "time sgd", "product float32", "convolution last float16"
    right, time, product, convolution, pooling = run(out, "about", *rows, "max pooling float32")
    assert right == {"row": "check every other", "size": 1000, "right": True}
    assert time["gb_per_s"] > 0
    assert product["right"] and product["cublas"]
    assert convolution["right"] and convolution["cudnn"]
    assert pooling["right"] and pooling["gb_per_s"] > 0
    assert not run(out, "time sgd")
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert kept == [first, right, time, product, convolution, pooling]
    (there,) = run(out, "about", "time sgd", "--again")
    assert there["name"] == "simulated GPU"


def test_a_row_that_fails_ends_no_other(tmp_path):
    """Of several in one process, and of checks in several processes at once."""
    names = ["check add", "check no such row", "copy", "time no such row", "rows summed"]
    names.append("sort of 1000")
    found = {row.pop("row"): row for row in run(tmp_path / "gpu.jsonl", *names)}
    assert list(found)[-4:] == names[2:] and len(found) == 6
    assert {name for name, row in found.items() if "error" in row} == {names[1], names[3]}
    assert found["check add"]["right"] and found["rows summed"]["right"]
    assert found["sort of 1000"]["right"]


@pytest.mark.long
def test_operators_are_checked(tmp_path):
    (found,) = run(tmp_path / "gpu.jsonl", "check operators 7")
    assert found["right"] and found["tried"] == found["of"]

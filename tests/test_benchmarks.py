"""The benchmarks run: contenders agree on results, missing peers are left out and named."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(script, *arguments):
    """What a benchmark prints in a run that is too short to measure anything."""
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--rounds", "2"]
    done = subprocess.run(
        [*command, "--block", "0.001", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_expressions():
    contenders = ("--only", "gnomon", "NumPy", "MXNet", "--rows", "add", "softmax")
    out, err = run("expression.py", *contenders, "--peer", "mxnet=/nowhere/python")
    assert "MXNet: left out: " in err
    assert "another result" not in err
    lines = out.splitlines()
    assert lines[1] == "| expression | gnomon | NumPy |"
    assert lines[3].startswith("| add 1e+01 | ")
    assert all(line.startswith("| softmax ") for line in lines[4:])
    assert all("(" in line for line in lines[3:])


def test_training_steps():
    rows = ("mlp 32", "lenet 32", "lstm 20", "predict mlp 1", "predict resnet20 1")
    out, err = run("train.py", "--only", "gnomon", "--rows", *rows)
    assert not err
    lines = out.splitlines()
    assert lines[1].startswith("a product of matrices of 1024 rows: ")
    assert [line.split(" | ")[0][2:] for line in lines[4:]] == [*rows]
    assert all(" GFLOP/s (" in line for line in lines[4:])


def test_training_steps_with_passes_and_programs_switched_off():
    off = "gnomon without passes", "gnomon without programs"
    out, err = run("train.py", "--only", "gnomon", *off, "--rows", "lenet 32")
    assert not err
    assert out.splitlines()[4].count("(") == 3


def test_extensions():
    rows = ("--rows", "take", "one_hot", "sort", "gaussian")
    out, err = run("extensions.py", "--only", "gnomon", "NumPy", "Numba", *rows)
    assert "another result" not in err
    lines = out.splitlines()
    assert "copy" in lines[0]
    names = ["take", "take_grad", "take_grad duplicates", "one_hot", "sort", "gaussian"]
    assert [line.split(" | ")[0][2:] for line in lines[3:]] == names
    assert all(line.endswith(" GB/s |") and " MB |" in line for line in lines[3:])


def test_array_statements():
    out, err = run("ndarray.py", "--only", "gnomon", "shadow", "--rows", "sgd", "64 a+b")
    lines = out.splitlines()
    assert lines[1] == "| statement | gnomon | shadow |"
    assert [line.split(" | ")[0] for line in lines[3:]] == [
        "| 64 a+b 1e+01",
        "| sgd 1e+01",
        "| sgd 1e+05",
        "| sgd 1e+07",
    ]
    assert err.count("shadow left out") == 1


def test_branches():
    out, err = run("branches.py", "--rows", "attention", "--threads", "2")
    assert not err
    assert [line.count("|") for line in out.splitlines()] == [5] * 4


def test_layers():
    rows = ("--rows", "float64 2 groups", "resnet20 pool")
    out, err = run("layers.py", "--only", "gnomon", "without oneDNN", *rows)
    assert not err
    lines = out.splitlines()
    assert lines[1] == "| layer | gnomon | without oneDNN |"
    assert [line.split(" | ")[0][2:] for line in lines[3:]] == [
        "float64 2 groups of 32, train",
        "float64 2 groups of 32, predict",
        "resnet20 pool, train",
        "resnet20 pool, predict",
    ]


def test_gluon_steps():
    out, err = run("gluon.py", "--only", "gnomon", "gnomon plain", "--rows", "deep", "predict mlp")
    assert not err
    lines = out.splitlines()
    assert lines[1] == "| a step | gnomon | gnomon plain |"
    assert [line.split(" | ")[0][2:] for line in lines[3:]] == [
        "deep 4",
        "predict mlp 32",
        "predict mlp 128",
    ]


def test_operators():
    out, err = run("operators.py", "--only", "gnomon", "--rows", "softsign", "one_hot")
    assert not err
    lines = out.splitlines()
    titles = [line.split(" | ")[0][2:] for line in lines[3:]]
    assert titles == ["softsign, forward", "softsign, gradients", "one_hot, forward"]


def test_serving():
    only = ("--only", "stdlib", "batches", "loop 32", "--rows", "mlp 2")
    out, err = run("serving.py", *only, "--clients", "2")
    assert not err
    titles = [line.split(" | ")[0][2:] for line in out.splitlines()[2:]]
    assert titles == [f"mlp 2, {contender}" for contender in ("stdlib", "batches", "loop 32")]


def test_primitives():
    command = [sys.executable, str(ROOT / "benchmarks" / "primitives.py"), "--rounds", "1"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"| exp ", "| gelu ", "| div "} <= {line[: line.index("|", 1)] for line in lines[2:]}


DYING = """
import os, sys
sys.path.insert(0, {peers!r})
from protocol import serve

def setup(row):
    if row == "deadly":
        os.abort()
    return print, print, dict(row=row)

serve("a worker", setup)
"""

ASKING = """
import sys
from pathlib import Path
from protocol import Peer, PeerError

peer = Peer("worker", sys.executable, Path(sys.argv[1]))
for row in ("first", "deadly", "last", "deadly"):
    try:
        print(peer.ask("setup", row=row))
    except PeerError as error:
        print(error)
peer.close()
"""


def test_a_worker_that_died_is_started_again(tmp_path):
    peers = str(ROOT / "benchmarks" / "peers")
    script = tmp_path / "dying.py"
    script.write_text(DYING.format(peers=peers))
    done = subprocess.run(
        [sys.executable, "-c", ASKING, str(script)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": peers},
    )
    dead = "the worker has died with status -6"
    assert done.stdout.splitlines() == ["{'row': 'first'}", dead, "{'row': 'last'}", dead]

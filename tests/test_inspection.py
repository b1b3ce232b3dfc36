"""`gnomon inspect`: layers, operators that are missing, parameters, memory, a drawing; `run`."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import gnomon as mx
from gnomon.cli import main
from gnomon.commands import doctor

GOLDEN = Path(__file__).parent / "golden"
MODEL, PARAMS = str(GOLDEN / "lenet-symbol.json"), str(GOLDEN / "lenet-0001.params")


def inspect(capsys, *arguments):
    code = main(["inspect", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_model_of_mxnet(capsys, tmp_path):
    drawing = tmp_path / "net.gv"
    code, out, _ = inspect(capsys, MODEL, PARAMS, "--shapes", "data:5x1x8x8", "--draw", drawing)
    assert code == 0
    assert "format of MXNet 1.9.1, 11 operators" in out
    assert re.search(r"^ +2 Convolution$", out, re.MULTILINE)
    assert re.search(r"^ +1 SoftmaxOutput +out_grad=True", out, re.MULTILINE)
    assert "parameters: 8 arrays, 3,658 numbers, 14.3 KB" in out
    assert "inputs, not in the file: data softmax_label" in out
    assert "Total params: 3658" in out
    assert re.search(r"^conv2\(Convolution\) +16x4x4 +1168 +pool1", out, re.MULTILINE)
    sizes = [re.search(rf"^{kind}: ([0-9.]+) KB of arrays", out, re.MULTILINE)[1]
             for kind in ("prediction", "training")]  # fmt: skip
    assert 14.3 < float(sizes[0]) < float(sizes[1]) / 1.9
    assert "conv1" in drawing.read_text()


def test_without_shapes(capsys):
    code, out, _ = inspect(capsys, MODEL, PARAMS)
    assert code == 0
    assert re.search(r"fc2\(FullyConnected\) +fc2_weight 10x32, fc2_bias 10$", out, re.MULTILINE)


def test_operators_that_are_missing(capsys, tmp_path):
    found = json.loads(Path(MODEL).read_text())
    for node in found["nodes"]:
        node["op"] = "_contrib_Someday" if node["op"] == "Pooling" else node["op"]
    (tmp_path / "x.json").write_text(json.dumps(found))
    code, out, _ = inspect(capsys, tmp_path / "x.json", PARAMS)
    assert code == 1
    assert re.search(r"^ +2 _contrib_Someday +MISSING: not there yet", out, re.MULTILINE)
    assert "8 arrays" in out


def test_parameters_that_do_not_belong(capsys, tmp_path):
    file = str(tmp_path / "x.params")
    mx.nd.save(file, {"arg:conv1_weight": mx.nd.ones((8, 1, 3, 3)), "arg:other": mx.nd.ones(3)})
    code, out, _ = inspect(capsys, MODEL, file)
    assert code == 1
    assert "in the file, not in the network: other" in out
    assert "inputs, not in the file: data softmax_label\n" in out
    assert "MISSING, parameters that are not in the file: conv1_bias conv2_weight" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.json"], "cannot read"),
        ([PARAMS], f"gnomon: {PARAMS}: expected the JSON of a symbol, got b'\\x12\\x01"),
        ([PARAMS], "(arrays, as nd.save writes)"),
        ([str(GOLDEN / "records.rec")], "(records, as im2rec writes)"),
        ([MODEL, "nowhere.params"], "cannot read 'nowhere.params'"),
        ([MODEL, "--shapes", "data"], "data:1x3x224x224"),
        ([MODEL, "--shapes", "data:0x3"], "data:1x3x224x224"),
        ([MODEL, "--shapes", "dat:5x1x8x8"], "did you mean 'data'"),
        ([MODEL, "--shapes", "fc2_bias:10"], "also of data"),
        ([MODEL, PARAMS, "--shapes", "data:5x3x8x8"], "conv1"),
    ],
)
def test_what_cannot_be_told(capsys, arguments, words):
    code, out, err = inspect(capsys, *arguments)
    assert code == 1
    assert out == ""
    assert words in err


def test_drawings_that_cannot_be_made(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for file in ("x.svg", "x.foo"):
        code, _, err = inspect(capsys, MODEL, "--draw", tmp_path / file)
        assert code == 1
        assert "'--draw': expected a file .gv, or the program dot" in err and file in err
    (tmp_path / "dot").write_text("#!/bin/sh\necho no such format >&2\nexit 1\n")
    (tmp_path / "dot").chmod(0o755)
    code, _, err = inspect(capsys, MODEL, "--draw", tmp_path / "x.foo")
    assert code == 1
    assert err.startswith("gnomon: ") and "format" in err


@pytest.mark.parametrize("command", [["inspect", MODEL], ["doctor"]])
def test_output_that_nobody_reads(command):
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "gnomon", *command]
    done = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_the_command_says_of_its_arguments(capsys):
    with pytest.raises(SystemExit):
        main(["run"])
    said = capsys.readouterr().err
    assert "gnomon run [-h] SCRIPT [ARGUMENT ...]" in said
    assert "gnomon run [-h] -m MODULE [ARGUMENT ...]" in said
    assert said.endswith("required: SCRIPT\n")


def test_doctor_names_every_extra_that_is_missing(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    extras = {*project["project"]["optional-dependencies"]} - {"bench", "gpu", "test"}
    monkeypatch.setattr(metadata, "version", missing)
    for module in ("cv2", "mpi4py"):
        monkeypatch.setitem(sys.modules, module, None)
    first, last = map([*doctor.CHECKS].index, ("OpenCV", "MPI"))
    texts = [check()[1] for check in [*doctor.CHECKS.values()][first : last + 1]]
    assert {found for text in texts for found in re.findall(r"gnomon\[(\w+)\]", text)} == extras

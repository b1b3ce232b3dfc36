"""The command: the demonstration trains, saves and comes back; doctor; arguments and failures."""

import json
import re
import sys

import numpy as np
import pytest

from gnomon import cli, config
from gnomon.commands import demo, doctor

HELD_OUT_START = [3, 3, 8, 8, 7, 2, 2, 4]


def test_digits_are_split_the_same_everywhere():
    digits = demo.read_digits()
    train, held_out = demo.split(digits)
    assert train.pictures.shape == (1437, 1, 8, 8)
    assert held_out.pictures.shape == (360, 1, 8, 8)
    assert (digits.pictures.min(), digits.pictures.max()) == (0, 1)
    together = np.concatenate([train.pictures, held_out.pictures]).reshape(1797, 64)
    assert sorted(map(bytes, together)) == sorted(map(bytes, digits.pictures.reshape(1797, 64)))
    assert held_out.labels[:8].astype(int).tolist() == HELD_OUT_START


def test_demo(tmp_path, capsys):
    assert cli.main(["demo", "--epochs", "4", "--out", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    accuracies = [float(x) for x in re.findall(r"held out +([\d.]+)%", out)]
    assert len(accuracies) == 5
    assert accuracies[-1] == accuracies[-2] > 90
    stages = ("where the time went", "forward, backward, update ")
    for words in ("epoch 4/4", "lenet-0004.params", *stages):
        assert words in out
    files = sorted(each.name for each in (tmp_path / "new").iterdir())
    assert files == ["lenet-0004.params", "lenet-symbol.json"]
    prefix = str(tmp_path / "new" / "lenet")
    assert cli.main(["demo", "--check", prefix, "4", "--json", "--batch-size", "7"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 100 * found["correct"] / found["of"] == pytest.approx(accuracies[-1], abs=0.01)


def test_doctor(capsys):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in doctor.CHECKS:
        assert re.search(rf"^(ok|--) {name} ", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("gpu", "mark", "words"), [("off", "ok", "is off"), ("simulated", "ok", "simulated GPU")]
)
def test_doctor_tells_of_gpus(capsys, gpu, mark, words):
    with config.using(gpu=gpu):
        cli.main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " GPUs " in line]
    assert line.startswith(mark) and words in line


def test_doctor_tells_what_is_broken(capsys, monkeypatch):
    def broken():
        raise OSError("no disk")

    monkeypatch.setitem(doctor.CHECKS, "NumPy", broken)
    monkeypatch.setenv("GNOMON_DEBUG", "0")
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "!! NumPy        OSError: no disk" in out
    assert "GNOMON_DEBUG=0" in out


@pytest.mark.parametrize(
    "arguments",
    [[], ["dmo"], ["demo", "--epochs", "0"], ["demo", "--epochs", "x"], ["demo", "--check", "x"]],
)
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "gnomon" in capsys.readouterr().err


def test_failures_are_told(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["demo", "--out", str(tmp_path / "file")]) == 1
    told = capsys.readouterr()
    assert "file" in told.err
    assert "epoch" not in told.out
    assert cli.main(["demo", "--check", str(tmp_path / "nothing"), "1"]) == 1
    assert "nothing-symbol.json" in capsys.readouterr().err
    assert cli.main(["demo", "--check", str(tmp_path / "nothing"), "x"]) == 1
    assert "whole number" in capsys.readouterr().err

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.doctor, "examine", interrupted)
    assert cli.main(["doctor"]) == 130


def test_a_process_that_fails_says_why(tmp_path, monkeypatch):
    with pytest.raises(demo.GnomonError, match=r"nothing-symbol\.json"):
        demo.check_elsewhere(str(tmp_path / "nothing"), 1, 30)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(demo.GnomonError, match="failed"):
        demo.check_elsewhere(str(tmp_path / "nothing"), 1, 30)


def test_time_is_counted_once():
    watch = demo.Stopwatch()
    with watch.stage("outer"), watch.stage("inner"):
        pass
    assert list(watch.seconds) == ["inner", "outer"]
    assert watch.table(1.0).splitlines()[-1].split() == ["all", "1.000", "s"]


def test_a_folder_that_cannot_be_written_is_named(capsys):
    with config.using(cache_dir="/dev/null/nope"):
        assert cli.main(["doctor"]) == 0
        line = next(x for x in capsys.readouterr().out.splitlines() if "cache folder" in x)
        assert line.startswith(doctor.POOR) and "GNOMON_CACHE_DIR" in line
        assert cli.main(["demo"]) != 0
    assert "GNOMON_CACHE_DIR" in capsys.readouterr().err

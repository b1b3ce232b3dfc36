"""`gnomon serve`: models of files and folders, until a signal."""

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from served import Client, binary, mlp

import gnomon as mx
from gnomon import cli
from gnomon.serving.predictor import Predictor

RNG = np.random.default_rng(0)
# the shell that started the tests may have interrupts ignored, which a process inherits
COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from gnomon.cli import main; sys.exit(main())"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint of `Module`, a network that Gluon exported, and what the first one predicts."""
    place = tmp_path_factory.mktemp("models")
    model = mlp(RNG)
    model.symbol.save(str(place / "mlp-symbol.json"))
    arrays = {f"arg:{name}": array for name, array in model._params.items()}
    mx.nd.save(str(place / "mlp-0003.params"), arrays)
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    image = RNG.random((1, 3, 8, 8), np.float32)
    expected = net(mx.nd.array(image)).asnumpy()
    net.export(str(place / "conv"))
    (place / "conv.toml").write_text("[shapes]\ndata = [3, 8, 8]\n")
    values = RNG.random((1, 20), np.float32)
    own = Predictor(model).predict(
        [SimpleNamespace(inputs={"data": values}, rows=1, items=((20,),))]
    )
    return place, values, own[0]["softmax_output"], image, expected


def start(*arguments):
    """The command as a process, and where it serves."""
    command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    line = process.stdout.readline()
    found = re.fullmatch(r"serving at http://(.*):(\d+)\n", line)
    assert found, line + process.stderr.read()
    return process, SimpleNamespace(host=found[1], port=int(found[2]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(folder, number):
    place, values, own, image, expected = folder
    files = f"net={place / 'mlp-symbol.json'},{place / 'mlp-0003.params'}"
    process, server = start(files, "--shapes", "net:data:20", "--models", place, "--max-batch", "4")
    with process:  # its pipes are closed in the end
        try:
            with Client(server) as client:
                assert client.get("/v2/models")[1] == {"models": ["conv", "net"]}
                assert client.get("/v2/models/conv")[1]["versions"] == ["0"]
                _, _, data = client.infer_bytes("net", [binary("data", values)])
                np.testing.assert_array_equal(np.frombuffer(data, np.float32), own[0])
                _, _, data = client.infer_bytes("conv", [binary("data", image)])
                np.testing.assert_allclose(np.frombuffer(data, np.float32), expected[0], rtol=1e-4)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "stopping\n", "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "serve: argument 'models': expected NAME=SYMBOL.json,PARAMS ..., or --models DIR"),
        (["net"], "argument 'model': expected NAME=SYMBOL.json,PARAMS, got 'net'"),
        (["net=a.json"], "expected NAME=SYMBOL.json,PARAMS, got 'net=a.json'"),
        (["net=a.json,b.params"], "cannot read 'a.json'"),
        (["--shapes", "data"], "'--shapes': expected NAME:SIZExSIZE..., as data:3x224x224, got 'd"),
        (
            ["--shapes", "data:3", "--shapes", "net:data:3xx"],
            "as data:3x224x224, got 'net:data:3xx'",
        ),
        (["--shapes", "data=3,224"], "as data:3x224x224, got 'data=3,224'"),
        (["--models", "nowhere"], "there is no folder 'nowhere'"),
        (["--max-batch", "0", "--models", "."], "argument 'max_batch': expected a number from 1"),
    ],
)
def test_what_is_refused(capsys, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('symbol = "s"\nparams = "p"\nshapes = {}')
    for name in ("s", "p"):
        (tmp_path / name).write_text("")
    if "." in arguments:
        mx.sym.relu(mx.sym.Variable("x")).save("s")
        mx.nd.save("p", {"arg:x": mx.nd.ones(1)})
    assert cli.main(["serve", *arguments]) == 1
    assert complaint in capsys.readouterr().err


def test_help_does_not_need_aiohttp():
    script = f"import sys; sys.modules['aiohttp'] = None; {COMMAND}"
    done = subprocess.run(
        [sys.executable, "-c", script, "serve", "--help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "--max-batch N" in done.stdout
    code = "import sys; sys.modules['aiohttp'] = None; from gnomon.serving import Server"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "serving needs aiohttp" in done.stderr

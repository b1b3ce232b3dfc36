"""`gnomon cache warm`: what it compiles, the next process finds."""

import _multiprocessing
import errno
import os
import re
import subprocess
import sys
import time
from functools import partial

import pytest

from gnomon import cli, config, sym
from gnomon.base import GnomonError
from gnomon.commands import warm

RUN = """
import sys
from gnomon import cpu, sym
from gnomon.runtime.compiler.objects import COUNTS
bound = sym.load(sys.argv[1]).simple_bind(cpu(), grad_req=sys.argv[2], data=(2, 3, 5))
out = bound.forward(is_train=sys.argv[2] == "write")
if sys.argv[2] == "write":
    bound.backward(out)
print(out[0].shape, COUNTS.compiled)
"""


def net():
    x = sym.Variable("data")
    return sym.softmax(sym.FullyConnected(sym.tanh(x), num_hidden=4, name="fc"), name="p")


@pytest.mark.parametrize("request_", ["null", "write"])
def test_the_next_process_compiles_nothing(tmp_path, request_):
    model = tmp_path / "net-symbol.json"
    net().save(str(model))
    given = [str(model), "--shapes", "data:2x3x5", *(["--train"] if request_ == "write" else [])]
    variables = os.environ | {"GNOMON_CACHE_DIR": str(tmp_path), "GNOMON_NUM_THREADS": "1"}

    def process(*command):
        done = subprocess.run(
            [sys.executable, *command], env=variables, capture_output=True, text=True, check=True
        )
        return done.stdout

    first = process("-m", "gnomon.cli", "cache", "warm", *given)
    assert "kernels compiled" in first
    assert not first.startswith("0 ")
    assert process("-c", RUN, str(model), request_).strip() == "(2, 4) 0"
    assert process("-m", "gnomon.cli", "cache", "warm", *given).startswith("0 kernels compiled")


@pytest.mark.long  # half a minute; `.ci/run` asks the same of what it installs
def test_typical_work_is_done_and_known():
    """In the cache of all tests: some of it is there, and others find what it compiles."""
    command = [sys.executable, "-m", "gnomon"]
    first = subprocess.run([*command, "cache", "warm"], capture_output=True, text=True, check=True)
    assert re.search(r"^\d+ kernels compiled into .*, \d+ were there", first.stdout)
    found = subprocess.run([*command, "doctor"], capture_output=True, text=True, check=True)
    assert "those of typical work are there" in found.stdout


@pytest.mark.long
def test_processes_end_with_their_parts(tmp_path):
    """Those of a killed command do: `communicate` returns when all have closed its pipe."""
    command = [sys.executable, "-m", "gnomon", "cache", "warm"]
    variables = os.environ | {"GNOMON_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE) as began:
        while not any(tmp_path.rglob("kernels/*")):  # until one of them has compiled something
            time.sleep(0.1)
        began.kill()
        began.communicate(timeout=300)


def test_processes_need_no_semaphores(monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(_multiprocessing, "SemLock", refused)
    assert warm.apart([partial(divmod, 7, 2), os.getpid, os.getppid])[::2] == [(3, 1), os.getpid()]
    with pytest.raises(GnomonError, match="cache warm: ZeroDivisionError: "):
        warm.apart([partial(divmod, 7, 2), partial(divmod, 7, 0)])
    with pytest.raises(GnomonError, match="a process that compiled ended with code 1"):
        warm.apart([partial(os._exit, 1)])


def test_options_of_a_network_ask_for_one(capsys):
    for option in (["--train"], ["--shapes", "data:2x3"]):
        assert cli.main(["cache", "warm", *option]) == 1
        assert "name SYMBOL.json" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["data", "data:", "data:2xx3", ":3", "data:-1x2", "data=1,3"])
def test_words_that_are_no_shape(word, capsys):
    assert cli.main(["cache", "warm", "net-symbol.json", "--shapes", word]) == 1
    assert repr(word) in capsys.readouterr().err


def test_what_cannot_be_warmed(tmp_path, capsys):
    model = tmp_path / "net-symbol.json"
    net().save(str(model))
    wrong = ["cache", "warm", str(model), "--shapes"]
    assert cli.main([*wrong, "other:2x3"]) == 1
    assert "expected inputs among data, fc_weight" in capsys.readouterr().err
    assert cli.main(["cache", "warm", str(tmp_path / "none.json"), "--shapes", "data:2x3"]) == 1
    capsys.readouterr()
    with config.using(disk_cache=False):
        assert cli.main([*wrong, "data:2x3"]) == 1
    assert "disk_cache" in capsys.readouterr().err
    sym.cbrt(sym.log1p(sym.Variable("data"))).save(str(model))  # what no other test compiles
    with config.using(cache_dir=model):  # which is no folder
        assert cli.main([*wrong, "data:7x3"]) == 1
    assert "not written" in capsys.readouterr().err

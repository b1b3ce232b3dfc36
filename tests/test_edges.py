"""What surrounds a program: names it imports, its environment, its end."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ParamError

ROOT = Path(__file__).parent.parent


def fresh(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_star_import_hides_no_builtin():
    names: dict[str, object] = {}
    exec("from gnomon.shadow import *", names)
    assert "TensorContainer" in names
    assert not [name for name in dir(builtins) if name in names and name != "__builtins__"
                and not name.startswith("__")]  # fmt: skip
    assert mx.shadow.range is not range and mx.shadow.slice is not slice


@pytest.mark.parametrize("text", ["many", "0", "-3", "4x"])
def test_threads_of_openmp_that_are_no_number_are_passed_over(text):
    code = "from gnomon import config; print(config.get('num_threads'))"
    done = fresh(code, OMP_NUM_THREADS=text, GNOMON_NUM_THREADS="", MXNET_OMP_MAX_THREADS="")
    assert done.returncode == 0 and int(done.stdout) >= 1, done.stderr
    assert "OMP_NUM_THREADS" in done.stderr and "ignored" in done.stderr
    refused = fresh(code, GNOMON_NUM_THREADS=text)
    assert refused.returncode == 1 and "GNOMON_NUM_THREADS" in refused.stderr


PROFILED = """
import gnomon as mx
mx.profiler.set_config(profile_all=True, filename={name!r})
mx.profiler.set_state("run")
(mx.nd.ones((3, 4)) + 1).asnumpy()
"""


def test_a_profile_that_was_switched_on_is_written_at_exit(tmp_path):
    path = tmp_path / "profile.json"
    done = fresh(PROFILED.format(name=str(path)))
    assert done.returncode == 0 and not done.stderr
    assert json.loads(path.read_text())["traceEvents"]


def test_a_profile_that_was_ended_is_left_alone(tmp_path):
    path = tmp_path / "profile.json"
    done = fresh(PROFILED.format(name=str(path)) + 'mx.profiler.set_state("stop")')
    assert done.returncode == 0 and not path.exists()


def test_operators_without_parameters_take_any_name():
    """As in MXNet; a symbol keeps it as an attribute."""
    x = mx.nd.array([-1.0, 2.0])
    assert mx.nd.relu(x, foo=3).asnumpy().tolist() == [0, 2]
    symbol = mx.sym.relu(mx.sym.Variable("x"), foo=3, name="r")
    assert symbol.attr_dict() == {"r": {"foo": "3"}}
    assert mx.sym.load_json(symbol.tojson()).attr_dict() == {"r": {"foo": "3"}}
    with pytest.raises(ParamError, match="dot: argument 'foo'"):
        mx.nd.dot(x, x, foo=3)
    with pytest.raises((TypeError, ParamError), match="dat"):
        mx.sym.relu(dat=mx.sym.Variable("x"))


@pytest.mark.parametrize(
    ("ignored", "expected"),
    [(None, 3.1239401322391096), (-1, 3.057107086852943), (0, 3.6246012551467635)],
)
def test_perplexity_takes_labels_out_of_range_as_mxnet_does(ignored, expected):
    metric = mx.metric.Perplexity(ignore_label=ignored)
    rows = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25], [0.6, 0.3, 0.1]]
    metric.update([mx.nd.array([5, -1, 0, 2])], [mx.nd.array(rows)])
    np.testing.assert_allclose(metric.get()[1], expected, rtol=1e-6)


ENDS = {
    "files": "f = mx.recordio.MXRecordIO({folder!r} + '/x.rec', 'w'); f.write(b'abc')",
    "an iterator": (
        "it = mx.io.PrefetchingIter(mx.io.NDArrayIter(mx.nd.ones((50, 2)), batch_size=5)); next(it)"
    ),
    "a module": (
        "net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable('data'), num_hidden=3), "
        "name='softmax')\n"
        "m = mx.mod.Module(net)\n"
        "m.fit(mx.io.NDArrayIter(mx.nd.ones((8, 2)), mx.nd.zeros((8,)), 4), num_epoch=1)"
    ),
    "work": "x = mx.nd.ones((500, 500))\nfor _ in range(50): x = mx.nd.dot(x, x) * 0.001",
    "a cycle": "x = mx.nd.ones((3,)); l = [x]; l.append(l); t = mx.shadow.TensorContainer((3,))",
    "a convolution": (
        "x = mx.nd.Convolution(mx.nd.ones((1, 8, 9, 9)), mx.nd.ones((8, 8, 3, 3)), "
        "num_filter=8, kernel=(3, 3), no_bias=True); x.wait_to_read()"
    ),
    "a gradient": (
        "x = mx.nd.ones((3,)); x.attach_grad()\n"
        "with mx.autograd.record(): y = (x * x).sum()\n"
        "y.backward()"
    ),
    "a thread": (
        "import threading\n"
        "def go():\n    for _ in range(200): (mx.nd.ones((3,)) + 1).asnumpy()\n"
        "threading.Thread(target=go, daemon=True).start()"
    ),
    "a class that keeps": (
        "class Kept:\n    x = mx.nd.ones((3,))\n"
        "    def __del__(self): self.x = None\n"
        "k = Kept(); mx.kept = k; import sys; sys.kept = Kept()"
    ),
}


@pytest.mark.parametrize("what", ENDS)
def test_nothing_is_printed_at_the_end(what, tmp_path):
    code = f"import gnomon as mx\n{ENDS[what].replace('{folder!r}', repr(str(tmp_path)))}\n"
    done = fresh(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

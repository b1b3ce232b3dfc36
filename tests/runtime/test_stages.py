"""The debug ladder: kernels show what they are where they are made, and how long they run."""

from __future__ import annotations

import re
from collections import OrderedDict

import pytest

from gnomon import config
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.statements import dispatch
from gnomon.shadow import TensorContainer, fn

RUNGS = {2: "kernel ", 3: "\nplan:\nphase 0", 4: "\nloop:\nparallel", 5: "\nllvm:\n", 7: "\nasm:\n"}


@pytest.fixture(autouse=True)
def _anew(monkeypatch):
    """No kernel is known, and no statement."""
    monkeypatch.setattr(CACHE, "kernels", OrderedDict())
    dispatch.forget()


@pytest.mark.parametrize("rung", range(8))
def test_each_rung_shows_what_those_below_show(rung, capfd):
    a, b = TensorContainer((7, 50)), TensorContainer((7, 50), init=1.0)
    capfd.readouterr()
    with config.using(debug=rung, disk_cache=False):
        a[:] = fn.exp(b) * (b + float(rung)) - fn.abs(fn.sin(b) + fn.power(b, b * rung))
        a[:] = b * b
    shown = capfd.readouterr().err
    for asked, text in RUNGS.items():
        assert (text in "\n" + shown) == (rung >= asked), (rung, text)
    times = re.findall(r"assignment: [\d.]+ us, [\d.e+-]+ GB/s", shown)
    assert len(times) == (2 if rung >= 2 else 0)
    assert "define void @kernel" in shown or rung < 5


def test_a_kernel_tells_where_it_comes_from(tmp_path, capfd):
    a, b = TensorContainer((3,)), TensorContainer((3,), init=1.0)
    with config.using(debug=2, cache_dir=tmp_path):
        for origin in ("compiled", "from disk"):
            capfd.readouterr()
            a[:] = fn.cos(b) - fn.log1p(b) * fn.cos(b + 3.0)
            assert f"kernel {origin} in " in capfd.readouterr().err
            CACHE.kernels.clear()


def test_nothing_is_learned_while_runs_are_shown(capfd):
    a, b = TensorContainer((5, 3)), TensorContainer((5, 3), init=1.0)
    with config.using(debug=2):
        for _ in range(20):
            a[:] = b * 0.25 + b
    assert capfd.readouterr().err.count("assignment: ") >= 20

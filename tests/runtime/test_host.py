"""The machine that runs this process: known without LLVM once LLVM was asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gnomon import config
from gnomon.ground.levels import LEVELS
from gnomon.runtime.compiler import disk, host, llvm
from gnomon.runtime.compiler.host import HostInfo

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import gnomon as mx
from gnomon.runtime.compiler import key, objects

key.sources_digest = lambda package, begun: "sources"  # the sources may be edited meanwhile
x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4)
bound = mx.sym.SoftmaxOutput(x, name="softmax").simple_bind(mx.cpu(), data=(2, 3))
bound.forward(is_train=True)
bound.backward()
total = (mx.nd.exp(mx.nd.ones((3, 4))) * 2).sum().asscalar()
print(objects.COUNTS.compiled, "llvmlite" in sys.modules, f"{total:.3f}")
"""


def run(folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        text=True,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_warm_process_does_without_llvm(tmp_path: Path) -> None:
    compiled, imported, total = run(tmp_path).split()
    assert (int(compiled) > 0, imported) == (True, "True")
    assert run(tmp_path) == f"0 False {total}"
    for path in (tmp_path / "kernels").iterdir():
        path.chmod(0o400)
    (tmp_path / "kernels").chmod(0o500)
    assert run(tmp_path) == f"0 False {total}", "a cache that cannot be written is read"
    (tmp_path / "kernels").chmod(0o700)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    host.host.cache_clear()
    with config.using(cache_dir=tmp_path):
        yield tmp_path
    host.host.cache_clear()


def asked(monkeypatch: pytest.MonkeyPatch) -> list[HostInfo]:
    """What LLVM answers from now on, one after the other."""
    answers: list[HostInfo] = []
    ask = llvm.ask_host

    def answer() -> HostInfo:
        answers.append(ask())
        return answers[-1]

    monkeypatch.setattr(host.llvm, "ask_host", answer)
    return answers


def known() -> HostInfo:
    host.host.cache_clear()
    return host.host()


@pytest.mark.usefixtures("folder")
def test_llvm_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = asked(monkeypatch)
    found = [known() for _ in range(3)]
    assert found == [answers[0]] * 3
    assert len(answers) == 1
    for name in ("_answers", "_compiler"):  # another processor, another llvmlite
        with monkeypatch.context() as other:
            other.setattr(host, name, lambda: ["other"])
            known()
    assert len(answers) == 3
    with config.using(disk_cache=False):
        assert known() == answers[0]
    assert len(answers) == 4


def test_an_answer_that_does_not_read_is_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = asked(monkeypatch)
    known()
    (path,) = (folder / "kernels").iterdir()
    for content in (b"", b"\xff\xff\n\n\n", b"a\nb", b"a\nb\nc\nd\ne"):
        path.write_bytes(disk._sealed(path.stem, content))
        assert known() == answers[0] == known()
    path.write_bytes(b"damaged")
    assert known() == answers[0]
    assert len(answers) == 6


def test_every_core_gives_the_same_answers() -> None:
    cores = os.sched_getaffinity(0)
    found = set()
    for core in cores:
        os.sched_setaffinity(0, {core})
        found.add(host._processor())
    os.sched_setaffinity(0, cores)
    assert len(found) == 1


def test_where_nothing_tells_machines_apart_llvm_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> tuple[str, ...]:
        raise OSError("no such file")

    monkeypatch.setattr(host, "_compiler", unknown)
    answers = asked(monkeypatch)
    assert known() == answers[0]
    assert not list(folder.glob("kernels/*"))


V3, V4 = frozenset(LEVELS["x86-64-v3"]), frozenset(LEVELS["x86-64-v4"])


@pytest.mark.parametrize(
    ("cpu", "features", "level"),
    [
        ("znver5", V4 | {"avx512vnni", "gfni"}, "x86-64-v4"),
        ("skylake-avx512", V4, "x86-64-v4"),
        ("haswell", V3 | {"rdrnd"}, "x86-64-v3"),
        ("knl", V3 | {"avx512f"}, "knl"),  # registers of 64 bytes, and less than the level of them
        ("haswell", V3 - {"movbe"}, "haswell"),  # as some virtual machines hide one
        ("k8", frozenset(), "x86-64"),
    ],
)
def test_code_is_written_for_the_level_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, cpu: str, features: frozenset[str], level: str
) -> None:
    here = HostInfo("x86_64-unknown-linux-gnu", cpu, features, "0 0")
    monkeypatch.setattr(host, "host", lambda: here)
    found = host.baseline.__wrapped__()
    assert found.cpu == level
    assert found.features <= features
    assert found.vector_bytes == here.vector_bytes


def test_code_of_other_machines_is_for_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here = HostInfo("aarch64-unknown-linux-gnu", "neoverse-n1", frozenset(["neon"]), "0 0")
    monkeypatch.setattr(host, "host", lambda: here)
    assert host.baseline.__wrapped__() is here

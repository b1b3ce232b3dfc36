"""Names of code on disk: another machine or version has others."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from gnomon.runtime.compiler import host, key


def test_another_machine_or_version_has_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = key.surroundings.__wrapped__
    here = host.baseline()
    where = "gnomon.runtime.compiler.key.baseline"
    changes: list[tuple[str, Any]] = [
        (where, lambda: dataclasses.replace(here, cpu="other")),
        (where, lambda: dataclasses.replace(here, features=here.features - {min(here.features)})),
        (where, lambda: dataclasses.replace(here, features=frozenset())),
        (where, lambda: dataclasses.replace(here, triple="other")),
        (where, lambda: dataclasses.replace(here, llvm=here.llvm + ".1")),
        ("gnomon.runtime.compiler.key.__version__", "0.0.0"),
        ("gnomon.runtime.compiler.key.sources_digest", lambda package, begun: "other sources"),
    ]
    monkeypatch.setattr(key, "_begun", time.time() + 60)
    names = {fresh()}
    for target, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(target, value)
            names.add(fresh())
    assert len(names) == 1 + len(changes)
    assert fresh() in names
    assert "" not in names


def test_the_digest_of_sources(tmp_path: Path) -> None:
    for name in key.SOURCES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if path.suffix:
            path.write_text("x = 1\n")
        else:
            path.mkdir()
            (path / "part.py").write_text("y = 2\n")
    later = time.time() + 60
    before = key.sources_digest(tmp_path, later)
    assert before
    assert key.sources_digest(tmp_path, later) == before
    assert key.sources_digest(tmp_path, time.time() - 60) == "", "changed since the process began"
    (tmp_path / "plan" / "part.py").write_text("y = 3\n")
    assert key.sources_digest(tmp_path, later) not in ("", before)
    (tmp_path / key.SOURCES[0]).unlink()
    assert key.sources_digest(tmp_path, later) == ""

"""Native code on disk: found again by what its sources say, wherever they lie."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from native import raw_samples, samples

from gnomon import config
from gnomon.native import dependencies
from gnomon.native.serve import code_of
from gnomon.runtime.compiler import objects

HOME = samples.keys.__module__


@pytest.fixture(autouse=True)
def nothing_kept_yet(tmp_path):
    """Native code is served, from a folder of the test's own."""
    with config.using(native=True, cache_dir=tmp_path / "cache"):
        yield
    dependencies.content.cache_clear()


def made() -> tuple[int, int]:
    """How many modules the code of a function takes: compiled, and loaded."""
    dependencies.content.cache_clear()  # as in another process
    compiled, loaded = objects.COUNTS.compiled, objects.COUNTS.loaded
    code_of((samples.keys,))
    return objects.COUNTS.compiled - compiled, objects.COUNTS.loaded - loaded


def test_code_from_disk_is_looked_at():
    assert made()[0] > 0
    assert made() == (0, 1)


def test_code_that_relies_on_signs_is_found_again():
    for _ in range(2):
        compiled = objects.COUNTS.compiled
        code_of((raw_samples.atomics,), raw=True)
    assert objects.COUNTS.compiled == compiled


def test_a_copy_of_the_source_is_as_good_and_another_content_is_not(tmp_path, monkeypatch):
    text = Path(samples.__file__).read_text(encoding="utf-8")
    made()
    copy = tmp_path / "copy.py"
    copy.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys.modules[HOME], "__file__", str(copy))
    assert made() == (0, 1)
    copy.write_text(text + "# other\n", encoding="utf-8")
    assert made()[0] == 1
    copy.unlink()
    assert made()[0] == 1

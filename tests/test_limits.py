"""Little memory is an error that says so, and everything works again once there is more."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import limits
import pytest

ROOT = Path(__file__).parent.parent
STAGES = [name for name in vars(limits.Stages) if not name.startswith("_")]


def run(stage: str, mib: int, folder: Path) -> None:
    """One child; AssertionError unless it says an error of memory, or none, and works again."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, limits.__file__, stage, str(mib), str(folder)]
    seen = {"capture_output": True, "text": True, "timeout": 100}
    done = subprocess.run(command, env=env, check=False, **seen)
    said = done.stdout.split()
    fine = done.returncode == 0 and said[1:] == ["again"] and said[0] in ("ok", *limits.EXPECTED)
    assert fine, f"{stage} with {mib} MiB: {done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("mib", [2, 72])
@pytest.mark.parametrize("stage", STAGES)
def test_little_memory(stage, mib, tmp_path):
    run(stage, mib, tmp_path)


def test_imports_take_no_memory_of_libraries(tmp_path):
    """NumPy's OpenBLAS ends the process where its first product finds no memory."""
    run("start", 28, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stage", STAGES)
def test_every_amount_of_memory(stage, tmp_path):
    for mib in (*range(16), *range(16, 300, 4)):
        folder = tmp_path / str(mib)
        folder.mkdir()
        run(stage, mib, folder)


@pytest.mark.parametrize(
    ("error", "pythons"),
    [
        (SystemError("error return without exception set"), True),
        (SystemError("<built-in function exec> returned NULL without setting an exception"), True),
        (SystemError("<class 'type'> returned NULL without setting an exception"), True),
        (SystemError("initialization of _json failed without raising an exception"), True),
        (SystemError("execution of module _x failed without setting an exception"), True),
        (SystemError("<function _find_and_load at 0x1> returned NULL without setting"), True),
        (SystemError("<built-in function fire> returned NULL without setting an exception"), False),
        (TypeError("error return without exception set"), False),
    ],
)
def test_errors_that_python_lost_are_told_from_ours(error, pythons):
    with pytest.raises(type(error)) as caught:
        raise error
    assert limits.is_pythons(caught.value) is pythons


IMPORTER = "<frozen importlib._bootstrap_external>"


@pytest.mark.parametrize(
    ("number", "file", "pythons"),
    [
        (errno.ENOMEM, IMPORTER, True),
        (errno.EACCES, IMPORTER, False),
        (errno.ENOMEM, "gnomon/ground/files.py", False),
    ],
)
def test_an_importer_without_memory_for_a_folder_is_told_from_us(number, file, pythons):
    error = OSError(number, os.strerror(number))
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        exec(compile("raise error", file, "exec"), {"error": error})
    assert limits.is_pythons(caught.value) is pythons

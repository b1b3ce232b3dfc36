"""The tutorial's file as a package of its own: installed by pip, and found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import gnomon

ROOT = Path(gnomon.__file__).parents[1]
PAGE = ROOT / "docs" / "extensions.md"
# what builds the wheel comes with the package: nothing need be downloaded
BACKEND = """
import zipfile

INFO = "their_package-1.0.dist-info"
ENTRY = "[gnomon.extensions]\\ndiagonal = their_package.diagonal\\n"


def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "their_package-1.0-py3-none-any.whl"
    files = {
        "their_package/__init__.py": "",
        "their_package/diagonal.py": open("diagonal.py").read(),
        f"{INFO}/METADATA": "Metadata-Version: 2.1\\nName: their-package\\nVersion: 1.0\\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{INFO}/entry_points.txt": ENTRY,
    }
    record = "".join(f"{file},,\\n" for file in [*files, f"{INFO}/RECORD"])
    with zipfile.ZipFile(f"{directory}/{name}", "w") as wheel:
        for file, text in {**files, f"{INFO}/RECORD": record}.items():
            wheel.writestr(file, text)
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "their-package"
version = "1.0"

[project.entry-points."gnomon.extensions"]
diagonal = "their_package.diagonal"
"""
USE = """
import sys
import numpy as np
from gnomon import shadow

assert "their_package" not in sys.modules
m, d = shadow.Tensor(np.arange(12.0, dtype="f").reshape(3, 4)), shadow.TensorContainer((2,))
d[:] = shadow.diagonal(m + m, 2) + 1.0
print(d.numpy(), sys.modules["their_package"].__file__)
"""


def test_a_package_with_an_extension_is_installed_and_found(tmp_path):
    text = PAGE.read_text()
    (tutorial,) = (
        part.partition("```")[0]
        for part in text.split("```python\n")
        if part.startswith('"""diagonal')
    )
    assert PROJECT.rsplit("\n\n", maxsplit=1)[-1].strip() in text
    source = tmp_path / "source"
    source.mkdir()
    for name, content in {
        "diagonal.py": tutorial,
        "backend.py": BACKEND,
        "pyproject.toml": PROJECT,
    }.items():
        (source / name).write_text(content)
    venv.create(tmp_path / "fresh", with_pip=True)
    folder = "Scripts" if os.name == "nt" else "bin"
    python = tmp_path / "fresh" / folder / "python"
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([python, "-m", "pip", "install", "-q", *offline, source], check=True)
    paths = [str(ROOT), *(p for p in sys.path if p.endswith("-packages"))]
    told = subprocess.run(
        [python, "-c", USE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    assert told.startswith("[ 1. 13.]")
    assert str(tmp_path / "fresh") in told

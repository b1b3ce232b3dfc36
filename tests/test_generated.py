"""The page of operators and the stubs say what the registry says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_is_written_is_what_the_registry_says():
    command = [sys.executable, str(ROOT / "tests" / "generated.py"), "--check"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=90)
    assert found.stdout.split() == [], "run python tests/generated.py"


def test_the_page_tells_what_differs():
    page = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
    lines = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if "|" in line}
    assert lines["norm"].endswith("| [differs](differences.md) |")
    assert lines["tanh"].endswith("| equal |")
    assert lines["cumprod"].endswith("| ours |")

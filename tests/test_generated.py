"""The page of operators and the stubs say what the registry says."""

from __future__ import annotations

import generated
import pytest

FILES = generated.everything()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(generated.ROOT)))
def test_what_is_written_is_what_the_registry_says(path):
    assert path.read_text(encoding="utf-8") == FILES[path], "run python tests/generated.py"


def test_the_page_tells_what_differs():
    lines = {line.split("|")[1].strip(" `"): line for line in generated.page().splitlines()[8:-2]}
    assert lines["norm"].endswith("| [differs](differences.md) |")
    assert lines["Activation"].endswith("| equal |")
    assert lines["cumprod"].endswith("| ours |")

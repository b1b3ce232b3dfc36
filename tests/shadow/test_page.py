"""docs/extensions.md shows every extension, as the code is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from gnomon import shadow
from gnomon.expr import ext
from gnomon.expr.oracle import evaluate
from gnomon.shadow import extensions

TOOL = Path(__file__).parents[2] / "tools" / "extensions_page.py"
# spelled otherwise in the language, or not part of it
ELSEWHERE = {"philox": "Random", "range_": "range"}
OPERATORS = {"regions"}  # what operators alone are written with


def tool():
    spec = importlib.util.spec_from_file_location("extensions_page", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_code():
    page = tool()
    text = page.PAGE.read_text()
    assert page.renewed(text) == text, "run python tools/extensions_page.py"


def test_the_tutorial_adds_an_extension_in_a_file_of_at_most_60_lines():
    files = tool().PAGE.read_text().split("```python\n")
    (tutorial,) = (f.partition("```")[0] for f in files if f.startswith('"""diagonal'))
    assert len(tutorial.splitlines()) <= 60


def test_every_extension_has_an_example():
    shown = {code.partition("(")[0] for code in tool().examples()}
    spelled = {
        n
        for n, f in vars(extensions).items()
        if getattr(f, "__module__", "") == extensions.__name__
    }
    wanted = (set(ext.__all__) - set(ELSEWHERE) - OPERATORS) | (spelled - {"pair"})
    assert wanted <= shown, wanted - shown


def test_the_page_of_the_language_has_every_row_with_an_example():
    text = (TOOL.parents[1] / "docs" / "shadow.md").read_text()
    rows = {title[:3]: body for title, _, body in (s.partition("\n") for s in text.split("\n### "))}
    wanted = [*range(1, 17), *range(20, 30), *range(30, 41)]
    assert [r for r in rows if r[1:].isdigit()] == [f"S{n:02}" for n in wanted]
    assert not [f"S{n:02}" for n in wanted if "```python" not in rows[f"S{n:02}"]]


UPDATES = {
    "saveto": lambda old, new: new,
    "plusto": np.add,
    "minusto": np.subtract,
    "multo": np.multiply,
    "divto": np.divide,
}


@pytest.mark.parametrize("code", tool().examples())
def test_every_example_by_every_saver_into_any_layout(code):
    e = eval(code, {**vars(shadow), **tool().NAMES}) * 2
    want, whole = evaluate(e), e.dtype.kind in "iu"
    for k, (saver, update) in enumerate(UPDATES.items()):
        memory = np.full([2 * n + k for n in e.shape], 3, e.dtype.numpy)
        step = 2 if k % 2 else 1
        dest = memory[tuple(slice(k, k + step * n, step) for n in e.shape)]
        old = dest.copy()
        if whole and saver == "divto":
            right = np.where(want == 0, 0, old // np.where(want == 0, 1, want))
        else:
            with np.errstate(divide="ignore"):
                right = update(old, want)
        shadow.Tensor(dest).assign(e, saver)
        np.testing.assert_allclose(dest, right, rtol=1e-6)
        assert (memory == 3).sum() >= memory.size - dest.size

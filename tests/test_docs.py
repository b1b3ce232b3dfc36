"""The documentation runs: a page's Python blocks in order, in one namespace, with what they print.

A `python` block is executed. A `text` block right after it is what it must print (`...` stands for
anything). Links to files of the repository must lead somewhere, and tables of settings and
dependencies must be complete.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from gnomon import config
from gnomon.name import NameManager

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """Python code of a page: the line it starts on, and the output the page shows, if any."""

    line: int
    code: str
    shown: str | None


def blocks(text: str) -> Iterator[Block]:
    """The Python blocks of a page in its order."""
    fences = list(FENCE.finditer(text))
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] != "python":
            continue
        follows = after is not None and not text[fence.end() : after.start()].strip()
        shown = after[2] if after is not None and after[1] == "text" and follows else None
        yield Block(text.count("\n", 0, fence.start(2)), fence[2], shown)


def show_source(page: Path, text: str) -> None:
    """Let a page's code read its own source: the page without what is not Python."""
    lines = [""] * text.count("\n")
    for block in blocks(text):
        code = block.code.splitlines()
        lines[block.line : block.line + len(code)] = code
    held = [line + "\n" for line in lines]
    linecache.cache[str(page)] = (len(text), None, held, str(page))


def run(page: Path, text: str) -> None:
    """Execute a page; AssertionError where it prints something else than it shows."""
    namespace = {"__name__": "__main__"}
    names = NameManager()  # a reader's process has named nothing before
    show_source(page, text)
    for block in blocks(text):
        source = "\n" * block.line + block.code
        code = compile(source, str(page), "exec", dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), names:
            exec(code, namespace)
        output = printed.getvalue()
        if block.shown is not None and not matches(block.shown, output):
            where = f"{page.name}:{block.line + 1}"
            pytest.fail(f"{where} shows\n{block.shown}\nand prints\n{output}", pytrace=False)


def matches(shown: str, printed: str) -> bool:
    return CHECKER.check_output(shown.strip() + "\n", printed.strip() + "\n", FLAGS)


def identify(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_dependencies_are_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    page = (ROOT / "docs" / "dependencies.md").read_text()
    names = {re.match(r"[\w.-]+", requirement)[0] for requirement in wanted}
    assert not {name for name in names if f"`{name}`" not in page}


@pytest.mark.parametrize("row", config.SETTINGS.values(), ids=lambda row: row.name)
def test_setting_is_explained(row):
    default = "see below" if callable(row.default) else f"`{row.default}`"
    variables = ", ".join(f"`{variable}`" for variable in row.env)
    line = f"| `{row.name}` | {row.type.__name__} | {default} | {variables} | {row.doc} |"
    shown = (ROOT / "docs" / "settings.md").read_text().splitlines()
    assert line in shown, f"docs/settings.md lacks the line\n{line}"


def test_readme_gives_both_commands():
    text = (ROOT / "README.md").read_text()
    start = "python3 -m venv .venv && .venv/bin/pip install"
    assert f"\n{start} . && .venv/bin/gnomon demo\n" in text
    assert f"\n{start} -e '.[test]' && .venv/bin/python -m pytest -n 2\n" in text


# --- the runner can fail --------------------------------------------------------------------

PAGE = Path("page.md")


def fenced(*parts: tuple[str, str]) -> str:
    return "\n".join(f"```{kind}\n{body}\n```" for kind, body in parts)


def test_blocks_share_a_namespace_and_other_languages_are_left_alone():
    run(PAGE, fenced(("python", "x = 1"), ("sh", "exit 1"), ("python", "print(x)"), ("text", "1")))


@pytest.mark.parametrize("shown", ["2", "", "1\n1"])
def test_another_output_is_found(shown):
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:2 shows"):
        run(PAGE, fenced(("python", "print(1)"), ("text", shown)))


def test_an_error_has_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as raised:
        run(PAGE, "intro\n\n" + fenced(("python", "x = 1\nx / 0")))
    assert raised.traceback[-1].lineno == 4


def test_output_must_stand_right_after_its_code():
    text = fenced(("python", "print(1)")) + "\nwords\n" + fenced(("text", "2"))
    assert [block.shown for block in blocks(text)] == [None]

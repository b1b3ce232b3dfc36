"""The shape of the code: ranks, cycles and sizes hold, and the checker of them can fail.

A rule that a place must break has a line in EXCEPTIONS with its reason; a line that nothing needs
fails as well.
"""

from __future__ import annotations

import gc
import re
from functools import partial
from pathlib import Path

import pytest
import structure
from structure import Source

from gnomon.ground.collector import resting

ROOT = Path(__file__).parent.parent

RANKS = {
    name: rank
    for rank, names in {
        0: "ground base compatibility config registry dtype shape context error launch log util "
        "ranks",
        1: "expr",
        2: "plan",
        3: "code",
        4: "native runtime",
        5: "shadow",
        6: "engine resource",
        7: "ops",
        8: "graph",
        9: "ndarray autograd symbol executor random operator profiler name attribute",
        10: "recordio io image metric initializer lr_scheduler",
        11: "optimizer",
        12: "kvstore",
        13: "executor_manager module "
        "model rnn gluon callback monitor visualization test_utils contrib onnx",
        14: "rtc __main__ cli commands compat libinfo run serving",
    }.items()
    for name in names.split()
}

# rooms of a folder: a file imports only from its own room and from those before it
ROOMS = {
    "runtime": "once ffi cpu_caches compiler devices execution kernels libraries statements "
    "features",
    "ndarray": "core lazy rows api derivative backward ndarray create decode decayed sparse remote "
    "files _internal image linalg op random contrib",
    "graph": "legacy node gradient infer place storage tasks typed_graph body recompute show "
    "verify json passes",
    "executor": "arena inputs arrays programs network prepared repush train_step latest later run "
    "report executor passes replay stepwise bind loops recorded_step",
}

FILE, FUNCTION, NESTING, COLUMNS, FOLDER = 500, 60, 3, 100, 26

# (rule, file, what the breach is about) -> why the rule gives way there
EXCEPTIONS: dict[tuple[str, str, str], str] = {
    ("folder", "gnomon", "folder"): "public modules alone, whose names programs import",
    ("folder", "gnomon/expr/ext", "folder"): "extensions of one kind, a file for each",
    ("folder", "gnomon/ops", "folder"): "operators of one kind, a file for each family",
    ("folder", "gnomon/ops/nn", "folder"): "layers of one kind, a file for each family",
}
OPENERS = (  # what opens files that are no users', or within `files.access`
    "gnomon/ground/files.py", "gnomon/runtime/", "gnomon/native/", "gnomon/launch", "gnomon/run.py",
    "gnomon/ground/tables.py", "gnomon/gluon/data/shared.py",
    "gnomon/kvstore/watch.py", "gnomon/test_utils/tools.py",
)  # fmt: skip
COMPILERS = ("gnomon/code/", "gnomon/native/")  # what writes LLVM

PACKAGE = structure.read(ROOT, "gnomon")
EVERYTHING = PACKAGE + structure.read(ROOT, "tests", "tools", "benchmarks", "examples")
MODULES = structure.module_names(PACKAGE)
EXAMPLES = Path(__file__).name  # holds bad examples on purpose

PACKAGE_RULES = {
    "rank": partial(structure.rank_breaches, ranks=RANKS),
    "cycle": structure.cycle_breaches,
    "room": partial(structure.room_breaches, rooms=ROOMS),
    "folder": partial(structure.folder_breaches, cap=FOLDER),
    "fork": lambda sources: (b for s in sources for b in structure.cached_property_breaches(s)),
    "frames": lambda sources: (b for s in sources for b in structure.frames_breaches(s)),
}
FILE_RULES = {
    "file": partial(structure.length_breaches, cap=FILE),
    "function": partial(structure.function_breaches, cap=FUNCTION),
    "nesting": partial(structure.nesting_breaches, cap=NESTING),
    "columns": partial(structure.column_breaches, cap=COLUMNS),
    "local import": partial(structure.local_import_breaches, modules=MODULES),
    "init": structure.init_breaches,
    "docstring": structure.docstring_breaches,
}


@pytest.fixture(autouse=True, scope="module")
def parsed(only_what_is_new_is_collected):
    """The trees of all files, which the tests here need: the collector passes over them, too."""
    with resting():
        trees = [source.tree for source in EVERYTHING]
    gc.freeze()
    return trees


def report(rule: str, breaches) -> None:
    """Fail with one line for each breach that no exception excuses."""
    messages = structure.unexcused(rule, breaches, EXCEPTIONS)
    if messages:
        pytest.fail(f"{len(messages)} x {rule}:\n" + "\n".join(messages), pytrace=False)


@pytest.mark.parametrize("rule", PACKAGE_RULES)
def test_package(rule):
    report(rule, PACKAGE_RULES[rule](PACKAGE))


@pytest.mark.parametrize("rule", FILE_RULES)
def test_files(rule):
    report(rule, (b for source in EVERYTHING for b in FILE_RULES[rule](source)))


def test_nothing_is_left_undone():
    checker = ("tests/structure.py", f"tests/{EXAMPLES}")
    report(
        "unfinished",
        (
            breach
            for source in EVERYTHING
            if source.path not in checker
            for breach in structure.unfinished_breaches(source)
        ),
    )


def test_prose_names_what_is_meant():
    pages = [Source(f"docs/{p.name}", p.read_text("utf-8")) for p in (ROOT / "docs").glob("*.md")]
    found = (b for text in PACKAGE + pages for b in structure.vague_breaches(text))
    report("vague", found)


def test_vague_words_are_found():
    (found,) = lines(structure.vague_breaches(Source("gnomon/a.py", "x = 1\n# Nobody waits\n")))
    assert found.startswith("gnomon/a.py:2: 'Nobody': name the thread")
    assert not lines(structure.vague_breaches(Source("gnomon/a.py", "body = some")))


def test_the_files_of_the_glossary_exist():
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0].strip() != "word"]
    assert len(rows) > 40
    for word, meaning, files in rows:
        named = re.findall(r"`([\w/]+\.py)`", files)
        assert word.strip() and meaning.strip() and named, word
        assert not [name for name in named if not (ROOT / "gnomon" / name).is_file()], word
    assert len({row[0] for row in rows}) == len(rows)


def test_text_of_llvm_stands_where_it_is_written_by_compilers():
    """What is native beside kernels is a native function; the files that are not yet grow fewer."""
    sources = [s for s in PACKAGE if not s.path.startswith(COMPILERS)]
    report("llvm", (b for source in sources for b in structure.llvm_breaches(source)))


def test_files_are_opened_where_their_errors_are_told():
    """By `gnomon.ground.files`, whose errors are MXNet's and Python's."""
    sources = [s for s in PACKAGE if not s.path.startswith(OPENERS)]
    report("open", (b for source in sources for b in structure.opening_breaches(source)))


def test_a_file_that_is_opened_is_found():
    bad = "open(path)", "Path(x).open('rb')", "path.read_text()", "path.write_bytes(data)"
    assert all(lines(structure.opening_breaches(Source("gnomon/a.py", text))) for text in bad)
    good = "group.open()", "read_bytes('load', path)", "opened('load', path, 'rb')"
    assert not any(lines(structure.opening_breaches(Source("gnomon/a.py", t))) for t in good)


def test_text_of_llvm_is_found():
    bad = (
        'X = "define i32 @f() {"',
        'X = f"""\n{y} = getelementptr i8"""',
        "X = 'inttoptr i64 3'",
    )
    assert all(lines(structure.llvm_breaches(Source("gnomon/a.py", text))) for text in bad)
    good = '"""To define a node."""\n# getelementptr\nx = "predefine it"'
    assert not lines(structure.llvm_breaches(Source("gnomon/a.py", good)))


def test_a_cached_property_with_a_lock_is_found():
    for text in ("from functools import cached_property", "x = functools.cached_property(f)"):
        assert lines(structure.cached_property_breaches(Source("gnomon/a.py", text)))
    good = Source("gnomon/a.py", "from gnomon.ground.record import cached_property")
    assert not lines(structure.cached_property_breaches(good))


def test_frames_of_other_threads_are_found():
    assert lines(structure.frames_breaches(Source("gnomon/a.py", "x = sys._current_frames()")))
    assert not lines(structure.frames_breaches(Source("gnomon/a.py", "x = sys._getframe()")))


def test_exceptions_name_a_rule_and_give_a_reason():
    rules = {*PACKAGE_RULES, *FILE_RULES, "unfinished", "llvm", "vague", "open"}
    assert not [line for line, why in EXCEPTIONS.items() if line[0] not in rules or len(why) < 10]


def test_the_sketch_of_the_design_has_all_its_ranks():
    assert sorted(set(RANKS.values())) == list(range(15))
    assert len(PACKAGE) > 7


# --- the checker can fail -------------------------------------------------------------------


def package(**files: str) -> list[Source]:
    """Sources of a made-up gnomon: `ops__relu` is gnomon/ops/relu.py."""
    return [Source(f"gnomon/{n.replace('__', '/')}.py", text) for n, text in files.items()]


def lines(breaches) -> list[str]:
    return [str(b) for b in breaches]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("from gnomon.ops import relu", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("from gnomon.ops.relu import f", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("import gnomon.ops.relu as r", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("from ..ops.relu import f", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("from ..ops import relu", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("def f():\n    import gnomon.ops.relu", "gnomon.ops.relu of rank 7: only lower ranks"),
        ("if TYPE_CHECKING:\n    from gnomon.ops.relu import f", "rank 7: only lower ranks"),
        ("import gnomon", "imports 'gnomon' itself"),
        ("from gnomon import nd", "imports gnomon.nd, which is no file"),
        ("import gnomon.nd", "imports gnomon.nd, which is no file"),
    ],
)
def test_rank_is_refused(text, complaint):
    sources = package(plan__fuse=text, ops__relu="")
    (found,) = lines(structure.rank_breaches(sources, RANKS))
    assert found.startswith("gnomon/plan/fuse.py:")
    assert complaint in found


@pytest.mark.parametrize(
    "text",
    [
        "from gnomon.plan import fuse",
        "from gnomon.plan.fuse import rule",
        "from gnomon import __version__, dtype",
        "from .gelu import f",
        "import numpy, os.path",
        "from collections import abc",
    ],
)
def test_rank_is_granted(text):
    sources = package(ops__relu=text, ops__gelu="", plan__fuse="", dtype="")
    assert not lines(structure.rank_breaches(sources, RANKS))


def test_a_file_without_rank_is_found():
    (found,) = lines(structure.rank_breaches(package(misc=""), RANKS))
    assert found == "gnomon/misc.py:1: 'misc' has no rank: enter it in RANKS"


def test_a_cycle_is_found_and_shown():
    sources = package(
        ops__a="from gnomon.ops.b import x",
        ops__b="from gnomon.ops import c",
        ops__c="import gnomon.ops.a",
        ops__d="import gnomon.ops.a",
        ops____init__="from gnomon.ops.d import y",
    )
    (found,) = lines(structure.cycle_breaches(sources))
    expected = "gnomon.ops.a -> gnomon.ops.b -> gnomon.ops.c -> gnomon.ops.a"
    assert found == f"gnomon/ops/a.py:1: imports in a cycle: {expected}"


def test_importing_for_types_makes_no_cycle():
    sources = package(
        ops__a="from gnomon.ops.b import x",
        ops__b="if TYPE_CHECKING:\n    from gnomon.ops.a import x",
    )
    assert not lines(structure.cycle_breaches(sources))


@pytest.mark.parametrize("way", ["from gnomon.ops.high.b import x", "import gnomon.ops.high.b"])
def test_an_import_of_a_later_room_is_found(way):
    sources = package(ops__low__a=way, ops__high__b="import gnomon.ops.low.a", ops__other__c="")
    found = lines(structure.room_breaches(sources, {"ops": "low high"}))
    assert found == [
        "gnomon/ops/low/a.py:1: 'low' imports gnomon.ops.high.b of 'high': only rooms before it",
        "gnomon/ops/other/c.py:1: 'other' is no room of ops: enter it in ROOMS",
    ]


def one(rule: str, text: str, path: str = "gnomon/ops/relu.py") -> list[str]:
    return lines(FILE_RULES[rule](Source(path, text)))


def nested(*blocks: str) -> str:
    """A function whose blocks stand inside each other."""
    rows = [f"{'    ' * (n + 1)}{block}:" for n, block in enumerate(blocks)]
    return "\n".join(["class C:", " def f(self):", *rows, "    " * (len(blocks) + 1) + "pass"])


def test_nesting_is_measured():
    assert not one("nesting", nested("if a", "for b in c", "while d"))
    (found,) = one("nesting", nested("if a", "for b in c", "while d", "with e"))
    assert found.startswith("gnomon/ops/relu.py:6: function C.f nests 4 blocks, 3 allowed")
    (found,) = one("nesting", nested("match a", "case b", "if c", "if d", "if e"))
    assert "nests 4 blocks" in found


def test_elif_is_no_deeper_than_if_and_except_than_try():
    text = "def f():\n if a: pass\n elif b: pass\n elif c: pass\n elif d: pass\n elif e: pass"
    assert not one("nesting", text)
    text = nested("if a", "if b", "try") + "\n    except E: pass".replace("    ", " " * 12)
    assert not one("nesting", text)
    text = (
        "def f():\n if a: pass\n else:\n  if b: pass\n  else:\n   if c: pass\n   else:\n    if d: 1"
    )
    assert "nests 4 blocks" in one("nesting", text)[0]


def test_a_function_within_starts_anew():
    outer = nested("if a", "if b", "if c").replace("pass", "def g():\n" + " " * 20 + "if d: pass")
    assert not one("nesting", outer)


def test_lengths_are_measured():
    assert not one("file", "\n" * FILE)
    assert "501 lines, 500 allowed" in one("file", "\n" * (FILE + 1))[0]
    body = "    pass\n" * (FUNCTION - 1)
    assert not one("function", f"def f():\n{body}")
    (found,) = one("function", f"\nasync def f():\n{body}    pass\n")
    assert found.startswith("gnomon/ops/relu.py:2: function f has 61 lines, 60 allowed")
    assert not one("columns", "x" * COLUMNS)
    assert one("columns", "\n" + "x" * 101) == ["gnomon/ops/relu.py:2: 101 columns, 100 allowed"]


def test_the_files_of_a_folder_are_counted():
    sources = package(**{f"ops__op{n}": "" for n in range(3)}, ops__nn__relu="")
    assert not lines(structure.folder_breaches(sources, 3))
    (found,) = lines(structure.folder_breaches(sources, 2))
    assert found == "gnomon/ops:1: 3 files, 2 allowed: give those of one meaning a room"


@pytest.mark.parametrize(
    "text", ["from gnomon.plan import fuse", "from . import x", "import gnomon"]
)
def test_an_import_in_a_function_is_found(text):
    assert not one("local import", text)
    (found,) = one("local import", f"def f():\n    if a:\n        {text}")
    assert found.startswith("gnomon/ops/relu.py:3: function f imports gnomon")


def test_an_init_gives_names_alone():
    good = '"""D."""\nfrom gnomon.ops.relu import f\n__all__ = sorted(["f"])\nT = {"a": f}\n'
    good += 'N = "a b".split()\nif TYPE_CHECKING:\n    import x\ndef __getattr__(name): return 1'
    good += "\n__getattr__, __dir__ = top(__all__)"
    assert not one("init", good, "gnomon/ops/__init__.py")
    for bad in (
        "def f(): pass",
        "class C: pass",
        "x = f()",
        "x.y = f()",
        "for a in b: pass",
        "f = lambda: 1",
    ):
        assert not one("init", bad)
        (found,) = one("init", bad, "gnomon/ops/__init__.py")
        assert "holds public names alone" in found


@pytest.mark.parametrize("text", ["x = 1", '"""no full stop"""', '"""a\nb."""'])
def test_a_file_says_what_it_gives(text):
    assert one("docstring", text)
    assert not one("docstring", '"""What it gives."""\n')


@pytest.mark.parametrize("text", ["# TODO later", "@pytest.mark.skipif(x)", "pytest.skip('no')"])
def test_unfinished_work_is_found(text):
    assert lines(structure.unfinished_breaches(Source("gnomon/a.py", f"x\n{text}")))


def test_exceptions_excuse_and_must_be_needed():
    breaches = list(structure.length_breaches(Source("gnomon/a.py", "\n" * 9), 3))
    assert len(structure.unexcused("file", breaches, {})) == 1
    line = ("file", "gnomon/a.py", "file")
    assert structure.unexcused("file", breaches, {line: "why"}) == []
    (idle,) = structure.unexcused("file", [], {line: "why"})
    assert "nothing needs this exception" in idle


def test_what_is_imported_late_is_imported_under_the_lock():
    """By `load_module` of `ground/lock.py`: a fork waits, and no thread meets half of a module."""
    late = [s.path for s in PACKAGE if "import_module(" in "".join(s.lines)]
    assert list(map(str, late)) == ["gnomon/ground/lock.py"]

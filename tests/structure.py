"""The checker of the house rules: pure functions from parsed files to the places that break them.

A file is a `Source`. A rule takes what it needs (a source, or all of them with the ranks) and gives
`Breach`es; `test_structure.py` holds the ranks, the caps and the exceptions.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LLVM = re.compile(r"^\s*define |\bgetelementptr\b|\binttoptr\b", re.MULTILINE)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
VAGUE = re.compile(r"\b(nobody|somebody|whoever|whomever)\b", re.IGNORECASE)
SKIPPED = re.compile(r"\bpytest\.(mark\.)?(skip|skipif|xfail)\b")


@dataclass(frozen=True)
class Breach:
    """One place that breaks a rule; `key` is what an exception's line names it by."""

    path: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Source:
    """A Python file: its path from the repository's root, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def module(self) -> str:
        """The dotted name that imports this file."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def breach(self, line: int, key: str, message: str) -> Breach:
        return Breach(self.path, line, key, message)


def read(root: Path, *folders: str) -> list[Source]:
    """Every Python file below the folders of `root`, in order of its path."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    return [Source(f.relative_to(root).as_posix(), f.read_text(encoding="utf-8")) for f in files]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements right within `node`, and its clauses, which hold statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield child


# --- imports --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """An import of a module of gnomon: from where, and whether for types alone or in a function."""

    target: str
    line: int
    typing: bool
    function: str


@cache
def imports(source: Source, modules: frozenset[str]) -> tuple[Import, ...]:
    """The imports of gnomon's modules in `source`; `modules` are the names that exist."""
    found: list[Import] = []

    def visit(node: ast.AST, typing: bool, function: str) -> None:
        line = getattr(node, "lineno", 0)
        found.extend(Import(t, line, typing, function) for t in _targets(node, source, modules))
        typing = typing or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        function = node.name if isinstance(node, FUNCTIONS) else function
        for child in statements(node):
            visit(child, typing, function)

    visit(source.tree, False, "")
    return tuple(found)


def _targets(node: ast.AST, source: Source, modules: frozenset[str]) -> Iterator[str]:
    """The modules of gnomon that an import statement names; a name it takes from one stays off."""
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name.split(".")[0] == "gnomon")
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = source.module.split(".")
            depth = node.level - source.path.endswith("__init__.py")
            base = ".".join([*parts[: len(parts) - depth], *([base] if base else [])])
        if base.split(".")[0] == "gnomon":
            names = {f"{base}.{alias.name}" for alias in node.names} - {"gnomon.__version__"}
            yield from sorted({n if n in modules or base == "gnomon" else base for n in names})


def module_names(sources: Iterable[Source]) -> frozenset[str]:
    """The dotted names of all sources."""
    return frozenset(s.module for s in sources)


def rank_breaches(sources: list[Source], ranks: Mapping[str, int]) -> Iterator[Breach]:
    """Files without a rank, imports of a higher one, and of `gnomon` itself below the edge."""
    modules = module_names(sources)
    edge = max(ranks.values())
    for source in sources:
        if source.module == "gnomon":
            continue
        top = source.module.split(".")[1]
        if top not in ranks:
            yield source.breach(1, top, f"{top!r} has no rank: enter it in RANKS")
            continue
        for used in imports(source, modules):
            if (why := _why_not(used.target, ranks[top], ranks, modules, edge)) is not None:
                yield source.breach(used.line, used.target, f"rank {ranks[top]} {why}")


def _why_not(
    target: str, rank: int, ranks: Mapping[str, int], modules: frozenset[str], edge: int
) -> str | None:
    """Why a file of `rank` may not import `target`, or None where it may."""
    if target == "gnomon":
        return None if rank == edge else "imports 'gnomon' itself: import the module meant"
    if target not in modules:
        return f"imports {target}, which is no file: import the module by its full name"
    other = ranks.get(target.split(".")[1], edge)
    return f"imports {target} of rank {other}: only lower ranks" if other > rank else None


def room_breaches(sources: list[Source], rooms: Mapping[str, str]) -> Iterator[Breach]:
    """Imports of a later room of the same folder, and files of a folder with rooms in none."""
    modules = module_names(sources)
    for source in sources:
        _, top, *inner = *source.module.split("."), ""
        order = rooms.get(top, "").split()
        if not order or not inner[0]:
            continue
        if inner[0] not in order:
            yield source.breach(1, inner[0], f"{inner[0]!r} is no room of {top}: enter it in ROOMS")
            continue
        for used in imports(source, modules):
            _, other, *rest = *used.target.split("."), ""
            if other == top and rest[0] in order and order.index(rest[0]) > order.index(inner[0]):
                message = f"{inner[0]!r} imports {used.target} of {rest[0]!r}"
                yield source.breach(used.line, used.target, f"{message}: only rooms before it")


def cycle_breaches(sources: list[Source]) -> Iterator[Breach]:
    """Import cycles between files; imports for types alone make none."""
    modules = module_names(sources)
    graph = {
        s.module: sorted({i.target for i in imports(s, modules) if not i.typing} & modules)
        for s in sources
    }
    paths = {s.module: s for s in sources}
    for cycle in cycles(graph):
        yield paths[cycle[0]].breach(1, cycle[0], "imports in a cycle: " + " -> ".join(cycle))


def cycles(graph: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """One way round each strongly connected part: `[a, b, a]` where a and b import each other."""
    seen: set[str] = set()
    for start in sorted(graph):
        path = None if start in seen else _way_back(graph, start)
        if path:
            seen.update(path)
            yield path


def _way_back(graph: Mapping[str, list[str]], start: str) -> list[str] | None:
    """The shortest way from `start` to itself, or None."""
    came: dict[str, str] = {}
    queue = [start]
    for at in queue:
        fresh = [to for to in graph.get(at, ()) if to not in came]
        came.update(dict.fromkeys(fresh, at))
        queue += fresh
    if start not in came:
        return None
    path = [start]
    while len(path) == 1 or path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def local_import_breaches(source: Source, modules: frozenset[str]) -> Iterator[Breach]:
    """Imports of gnomon's modules inside functions."""
    for used in imports(source, modules):
        if used.function:
            message = f"function {used.function} imports {used.target}: move it to the top"
            yield source.breach(used.line, used.function, message)


# --- sizes ----------------------------------------------------------------------------------


def length_breaches(source: Source, cap: int) -> Iterator[Breach]:
    """Files longer than `cap` lines."""
    if len(source.lines) > cap:
        yield source.breach(
            cap, "file", f"{len(source.lines)} lines, {cap} allowed: split the file"
        )


def folder_breaches(sources: Iterable[Source], cap: int) -> Iterator[Breach]:
    """Folders with more than `cap` files of their own."""
    counts = Counter(source.path.rpartition("/")[0] for source in sources)
    for folder, count in counts.items():
        if count > cap:
            message = f"{count} files, {cap} allowed: give those of one meaning a room"
            yield Breach(folder, 1, "folder", message)


def column_breaches(source: Source, cap: int) -> Iterator[Breach]:
    """Lines wider than `cap` columns."""
    for number, line in enumerate(source.lines, 1):
        if len(line) > cap:
            yield source.breach(number, "column", f"{len(line)} columns, {cap} allowed")


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each function with its dotted name, those inside classes and functions too."""
    for node in statements(tree):
        name = f"{within}{node.name}" if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ""
        if isinstance(node, FUNCTIONS):
            yield name, node  # type: ignore[misc]
        yield from functions(node, f"{name}." if name else within)


def function_breaches(source: Source, cap: int) -> Iterator[Breach]:
    """Functions longer than `cap` lines, docstring included."""
    for name, node in functions(source.tree):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > cap:
            message = f"function {name} has {length} lines, {cap} allowed: give its steps names"
            yield source.breach(node.lineno, name, message)


def nesting_breaches(source: Source, cap: int) -> Iterator[Breach]:
    """Functions whose if, for, while, with, try and match go deeper than `cap`."""
    for name, node in functions(source.tree):
        depth, line = max(_depths(node, 0), default=(0, 0))
        if depth > cap:
            message = f"function {name} nests {depth} blocks, {cap} allowed: name the inner ones"
            yield source.breach(line, name, message)


def _depths(node: ast.AST, depth: int) -> Iterator[tuple[int, int]]:
    """Depth and line of each block in `node`; `elif` is no deeper than its `if`."""
    for child in statements(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner = depth + (isinstance(child, (*BLOCKS, ast.Match)) and not _is_elif(node, child))
        if inner > depth:
            yield inner, child.lineno  # type: ignore[attr-defined]
        yield from _depths(child, inner)


def _is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """Whether `child` is the `elif` of `parent`: an `if` alone in its `else`, as far left as it."""
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and parent.orelse == [child]
        and parent.col_offset == child.col_offset
    )


# --- contents -------------------------------------------------------------------------------


ATTRIBUTES = {"__getattr__", "__dir__"}


def init_breaches(source: Source) -> Iterator[Breach]:
    """Anything in an `__init__` but docstring, imports, tables, `__getattr__` and `__dir__`."""
    if not source.path.endswith("__init__.py"):
        return
    for node in source.tree.body:
        if not _is_name_giving(node):
            message = "an __init__ holds public names alone: move this into a file of its own"
            yield source.breach(node.lineno, getattr(node, "name", type(node).__name__), message)


def _is_name_giving(node: ast.stmt) -> bool:
    """Whether a statement of an `__init__` only says names."""
    if isinstance(node, FUNCTIONS):
        return node.name in ATTRIBUTES
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test) and all(map(_is_name_giving, node.body))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return (
            _names_given(node) in ({"__getattr__"}, {"__dir__"}, ATTRIBUTES)
            or node.value is None
            or not any(map(_is_computing, ast.walk(node.value)))
        )
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _names_given(node: ast.stmt) -> set[str]:
    """The names that an assignment gives."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _is_computing(node: ast.AST) -> bool:
    """Whether a part of a table's expression does more than list: calls but `sorted` and split."""
    if isinstance(node, ast.Call):
        ordered = isinstance(node.func, ast.Name) and node.func.id == "sorted"
        split = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
        return not (ordered or split)
    return isinstance(node, (ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.Await))


def docstring_breaches(source: Source) -> Iterator[Breach]:
    """Modules whose docstring is missing, or does not open with one sentence of one line."""
    first = (ast.get_docstring(source.tree) or "").split("\n")[0]
    if source.lines and not re.search(r"[.:`]$", first):
        yield source.breach(1, "docstring", "open the file with one sentence on what it gives")


def unfinished_breaches(source: Source) -> Iterator[Breach]:
    """Words for work left undone, and tests that are skipped."""
    for number, line in enumerate(source.lines, 1):
        for pattern in (UNFINISHED, SKIPPED):
            if found := pattern.search(line):
                message = f"{found[0]!r}: finish it, or open an issue"
                yield source.breach(number, found[0], message)


def vague_breaches(source: Source) -> Iterator[Breach]:
    """Persons in place of the thread, the job, the caller or the array that is meant."""
    for number, line in enumerate(source.lines, 1):
        if found := VAGUE.search(line):
            message = f"{found[0]!r}: name the thread, the job, the caller or the array"
            yield source.breach(number, found[0].lower(), message)


def unexcused(
    rule: str, breaches: Iterable[Breach], exceptions: Mapping[tuple[str, str, str], str]
) -> list[str]:
    """The messages of `breaches` without a line in `exceptions`, and of lines nothing needs."""
    messages, needed = [], set()
    for breach in breaches:
        line = (rule, breach.path, breach.key)
        needed.add(line)
        if line not in exceptions:
            messages.append(str(breach))
    idle = [line for line in exceptions if line[0] == rule and line not in needed]
    return messages + [f"{line}: nothing needs this exception: take it out" for line in idle]


def cached_property_breaches(source: Source) -> Iterator[Breach]:
    """The cached property of `functools`, whose lock a forked child may find taken for good."""
    for node in ast.walk(source.tree) if "cached_property" in source.text else ():
        names = [a.name for a in node.names] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module != "functools":
            continue
        if "cached_property" in names or (
            isinstance(node, ast.Attribute) and node.attr == "cached_property"
        ):
            message = "functools.cached_property: use that of gnomon.ground.record"
            yield source.breach(node.lineno, "fork", message)


def frames_breaches(source: Source) -> Iterator[Breach]:
    """The frames of other threads, which go on: CPython 3.11 follows them into freed memory."""
    for node in ast.walk(source.tree) if "_current_frames" in source.text else ():
        if isinstance(node, ast.Attribute) and node.attr == "_current_frames":
            yield source.breach(node.lineno, "frames", "frames of running threads: not to be read")


def llvm_breaches(source: Source) -> Iterator[Breach]:
    """Text of LLVM in a string."""
    for node in ast.walk(source.tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and LLVM.search(text):
            yield source.breach(node.lineno, "llvm", "text of LLVM: write a native function")
            return


OPENERS = {"open", "read_bytes", "read_text", "write_bytes", "write_text"}


def opening_breaches(source: Source) -> Iterator[Breach]:
    """A file opened in another way than by `gnomon.ground.files`, whose errors are MXNet's too."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = node.args or node.keywords
        by_name = isinstance(node.func, ast.Name) and node.func.id == "open"
        if by_name or (name in OPENERS and (given or name != "open")):
            message = f"{name or 'open'}(...): open files by gnomon.ground.files"
            yield source.breach(node.lineno, "open", message)
            return

"""What is written from the registry: pages of `docs/`, stubs, and the index of operators.

`python tests/generated.py` writes all of it again; with `--check` it names what has to be, and
`test_generated.py` asks that, in a process without the operators that other tests register.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import pathlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType

import gnomon
from gnomon.compatibility import absent
from gnomon.ground import folder_registry
from gnomon.onnx import table
from gnomon.ops import registry
from gnomon.ops.namespace import SPACES, full_names, names_of
from gnomon.ops.op import Op
from gnomon.ops.signature import namespaced

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "catalogue.md"
ONNX = ROOT / "docs" / "onnx.md"
FILES = ROOT / "gnomon" / "data" / "declared.txt"
_PUBLIC = tuple(space for space in SPACES if not space.startswith("_"))
FAMILIES = {"gnomon.ndarray": "NDArray", "gnomon.symbol": "Symbol"}

_HEAD = """# Every operator

Written from the registry by `python tests/generated.py`. Each operator is a function of `mx.nd`
and of `mx.sym` by each of its names (`_contrib_x` is `contrib.x`, `_linalg_x` is `linalg.x`, and so
on), and a node of model files. `help(mx.nd.Convolution)` tells its parameters. Under *MXNet*:
*equal*, checked against MXNet 1.9.1 or NumPy; *[differs](differences.md)* on purpose in something
that `differences.md` names; *ours*, which MXNet has not.
"""

_STUB = """# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

"""


@functools.cache
def operators() -> list[type[Op]]:
    """Every operator of gnomon's own, in order of its name."""
    found = {registry.find(name) for name in registry.names()}
    own = [cls for cls in found if cls.__module__.startswith("gnomon.ops.")]
    return sorted(own, key=lambda cls: cls.name.lower().lstrip("_"))


def page() -> str:
    """The page that lists every operator with its names and what MXNet makes of it."""
    known, told = absent.names()["operators"], _told()
    lines = [_HEAD, "| operator | also | what | MXNet |", "|---|---|---|---|"]
    for cls in operators():
        names = {cls.name, *cls.aliases}
        shorts = {namespaced(name)[1] for name in names}
        state = "equal" if names & known else "ours"
        if state == "equal" and (names | shorts) & told:
            state = "[differs](differences.md)"
        also = ", ".join(f"`{name}`" for name in sorted(names - {cls.name}))
        lines.append(f"| `{cls.name}` | {also} | {_summary(cls)} | {state} |")
    missing = sorted(known - set(registry.names()))
    listed = ", ".join(f"`{name}`" for name in missing) or "none"
    count = len(known) - len(missing)
    lines += ["", f"Of MXNet's {len(known)} names {count} are there. Missing: {listed}.", ""]
    return "\n".join(lines)


def files() -> str:
    """Which file declares each name that is looked up by folder (operators ...): a line a file."""
    for module in gnomon._MODULES:
        importlib.import_module(f"gnomon.{module}")
    found: dict[str, list[str]] = {}
    for kind in folder_registry.FOLDERS:
        for name, cls in kind.items():
            if cls.__module__.startswith(f"{kind.folder}."):
                place = f"{kind.folder}/{cls.__module__.removeprefix(kind.folder + '.')}"
                found.setdefault(place.removeprefix("gnomon."), []).append(name)
    return "".join(f"{file}: {' '.join(sorted(names))}\n" for file, names in sorted(found.items()))


def _told() -> set[str]:
    """What the first columns of the tables of `differences.md` name."""
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    spans = [span for row in rows for span in re.findall(r"`([^`]*)`", row)]
    return {re.split(r"[^\w.]", span.removeprefix("nd."))[0].split(".")[-1] for span in spans}


def _summary(cls: type[Op]) -> str:
    text = (inspect.getdoc(cls) or "").split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def stubs() -> dict[pathlib.Path, str]:
    """The stub of each module of `nd` and `sym` that has functions of operators."""
    made = {}
    for package, kind in FAMILIES.items():
        for space in ("", *_PUBLIC):
            name = f"{package}.{space}".rstrip(".")
            source = pathlib.Path(str(importlib.import_module(name).__file__))
            made[source.with_suffix(".pyi")] = _stub(name, space, kind)
    return made


def package() -> str:
    """The stub of the package, whose modules come to be when they are first used."""
    lines = [_STUB, "__version__: str\n"]
    lines += [f"from gnomon import {name} as {name}\n" for name in gnomon._MODULES]
    lines += [f"from gnomon import {full} as {name}\n" for name, full in gnomon._SHORT.items()]
    lines += [f"from gnomon.{own} import {n} as {n}\n" for n, own in gnomon._FROM.items()]
    return "".join(lines)


def _stub(name: str, space: str, kind: str) -> str:
    module = importlib.import_module(name)
    own = sorted(_listed(module))
    lines = [_STUB]
    if kind not in own:
        lines.append(f"from {name.rpartition('.')[0]} import {kind}\n")
    lines += [_imported(name, thing, getattr(module, thing)) for thing in own]
    if not space:
        lines += [f"from {name} import {other} as {other}\n" for other in _PUBLIC]
    above = set(names_of("")) if space else set()
    for short in sorted(set(names_of(space)) - set(own)):
        found = [full for full in full_names(space, short) if registry.has(full)]
        if short in above and registry.find(short) is registry.find(found[0]):
            lines.append(f"from {name.rpartition('.')[0]} import {short} as {short}\n")
        elif found and registry.find(found[0]) in operators():
            lines += _function(short, registry.find(found[0]), kind)
    return "".join(lines)


def _listed(module: ModuleType) -> list[str]:
    """The names of a module but for those found when asked: its `__all__`, or `x as x` and `*`."""
    tree = ast.parse(pathlib.Path(str(module.__file__)).read_text(encoding="utf-8"))
    assigned = {ast.unparse(n.targets[0]): n.value for n in tree.body if isinstance(n, ast.Assign)}
    if "__all__" in assigned:
        return ast.literal_eval(assigned["__all__"])
    found = []
    for node in tree.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "*":
                found += _listed(importlib.import_module(str(node.module)))
            elif alias.name == alias.asname:
                found.append(alias.name)
    return found


def _imported(module: str, name: str, thing: object) -> str:
    home = getattr(thing, "__module__", module)
    if home == module or not hasattr(importlib.import_module(home), name):
        return f"{name}: Any\n"
    return f"from {home} import {name} as {name}\n"


def _function(name: str, cls: type[Op], kind: str) -> Iterator[str]:
    fields = [_field(n, cls) for n in cls.fields if n != cls.variadic]
    if cls.variadic is not None or cls.open_inputs:
        many = cls.input_names[0] if cls.variadic and cls.input_names else "args"
        taken = [f"*{many}: {kind}", *fields]
    else:  # the first array must be given, and so what must be given right behind it
        first, *others = cls.usual_inputs() or ("",)
        taken = [f"{first}: {kind}"] if first else []
        taken += [f"{n}: {kind} | None = ..." for n in others] + fields
        asked = sum(1 for _ in itertools.takewhile(lambda text: "=" not in text, taken))
        taken[asked:] = [text if "=" in text else f"{text} = ..." for text in taken[asked:]]
    taken += [text for text in _TAILS[kind] if text.partition(":")[0] not in cls.fields]
    yield f"def {name}({', '.join(taken)}) -> {_result(cls, kind)}:\n"
    yield f"    {_quoted(_summary(cls))}\n"


_TAILS = {
    "NDArray": ("out: Any = ...", "name: str | None = ...", "ctx: Any = ..."),
    "Symbol": ("out: Any = ...", "name: str | None = ...", "attr: Any = ...", "**kwargs: Any"),
}


def _quoted(text: str) -> str:
    return f'r"""{text} """' if text.endswith('"') else f'r"""{text}"""'


_TYPES = {
    "string": "str",
    "tuple of ints": "int | Sequence[int]",
    "tuple of floats": "float | Sequence[float]",
    "dtype": "Any",
}


def _field(name: str, cls: type[Op]) -> str:
    field = cls.fields[name]
    base = field.kind.name
    text = _TYPES.get(base, base)
    if base.startswith("tuple") and "or None" in base:
        text = "int | Sequence[int | None]"
    if field.choices:
        text = f"Literal[{', '.join(map(repr, field.choices))}]"
    if field.kind.optional or field.default is None:
        text += " | None"
    if field.required:
        return f"{name}: {text}"
    return f"{name}: {text} = {'...' if base == 'dtype' else repr(field.default)}"


def _result(cls: type[Op], kind: str) -> str:
    if kind == "Symbol":
        return kind
    open_count = cls.outputs is not Op.outputs or (
        cls.num_visible_outputs is not Op.num_visible_outputs and cls.num_visible_outputs != 1
    )
    if open_count or getattr(cls.outputs, "__module__", "") == "gnomon.ops.property":
        return "Any"
    return kind if len(cls.output_names) == 1 or cls.num_visible_outputs == 1 else f"list[{kind}]"


def onnx_page() -> str:
    """The page on ONNX, with a table of what is written, and a list of what is read."""
    mark = "<!-- from here on written by tests/generated.py -->\n"
    head = ONNX.read_text(encoding="utf-8").partition(mark)[0]
    lines = [head + mark, "| MXNet | ONNX |", "|---|---|"]
    for name, export in sorted(table.exports().items(), key=lambda row: row[0].lower().lstrip("_")):
        lines.append(f"| `{name}` | {' '.join(export.to) or 'what it reads, or a constant'} |")
    lines += ["", f"Read are {len(table.imports())} operators of ONNX, and what is folded:", ""]
    return "\n".join([*lines, " ".join(f"`{name}`" for name in sorted(table.imports())), ""])


def everything() -> dict[pathlib.Path, str]:
    """Each written file with its text."""
    pages = {PAGE: page(), ONNX: onnx_page(), FILES: files()}
    return {**pages, ROOT / "gnomon" / "__init__.pyi": package(), **stubs()}


if __name__ == "__main__":
    for path, text in everything().items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(path.relative_to(ROOT))

"""Units: the text of some functions, of all native functions that those call, and of entries.

An entry is what Python calls: it looks at what comes, and gives back objects. The functions of a
*raw* unit know no objects and raise no errors, for all native code to call by their names.
"""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from gnomon.expr.source import parsed
from gnomon.native.calls import Calls
from gnomon.native.dependencies import ALWAYS, NoSource, content, name_of
from gnomon.native.emit import Emitter
from gnomon.native.function import Lowering, Made, Parameter, make
from gnomon.native.helpers import TEXT
from gnomon.native.ir import NULL, Value
from gnomon.native.kinds import (
    GIVEN,
    INT,
    OBJECT,
    PLAIN,
    WORDS,
    Kind,
    KitError,
    takes_none,
    word_type,
)
from gnomon.native.ownership import find_ownership
from gnomon.native.words import Reals, Words
from gnomon.runtime.statements import fields

_HINTS = """!0 = !{!"branch_weights", i32 1, i32 4000}
!1 = distinct !{!1, !2}
!2 = !{!"llvm.loop.unroll.disable"}
"""
_EMPTY: Any = {"returns": None} | ({"type_params": []} if sys.version_info >= (3, 12) else {})
_CALLED = re.compile(r"@(Py\w+)\(")


class Unit:
    """The text of a unit, and what it relies on."""

    lowering = Lowering
    short = 40  # lines of what becomes part of all that call it
    helpers = TEXT
    type_offset: int | None = fields.type_offset()

    def __init__(self, functions: Sequence[Any], as_methods: bool = False) -> None:
        self._functions = functions
        self._made: dict[Any, Made | None] = {}
        self._declared: dict[str, tuple[str, list[str]]] = {}
        self._texts: dict[str, str] = {}
        self.things: dict[tuple[str, str], Any] = {}  # objects in the text, by where they are found
        self._numbers: dict[tuple[str, str], int] = {}
        self._slots: dict[tuple[str, str, str], int] = {}
        self._modules: set[str] = set()
        entries = [self.entry(f, as_methods) for f in functions]
        self.text = self._whole(entries)
        self.relied = self._relied()

    def entry(self, function: Any, as_method: bool) -> str:
        """The text of the function that is called from outside."""
        return Entry(self, self.function(function), function, as_method).text()

    # --- asked by lowering -----------------------------------------------------------------------

    def function(self, function: Any) -> Made:
        """The native form of a function that one of the unit calls."""
        if function in self._made:
            made = self._made[function]
            if made is None:
                raise KitError(f"{function.__name__} calls itself")
            return made
        self._made[function] = None
        self._modules.add(function.__module__)
        made = make(self, function, _source(function), *self.head_of(function))
        self._made[function] = made
        return made

    def head_of(self, function: Any) -> tuple[str, str]:
        """A function's linkage and its name in the text."""
        return "internal", f'@"{function.__module__}.{function.__qualname__}"'

    def declare(self, name: str, result: str, types: list[str]) -> None:
        self._declared.setdefault(name, (result, types))

    def literal(self, number: int) -> str:
        """A number as an object in the text."""
        return self._thing(number, "", repr(number))

    def class_symbol(self, cls: type) -> str:
        """A class in the text."""
        return self._thing(cls, cls.__module__, cls.__qualname__)

    def _thing(self, thing: Any, module: str, shown: str) -> str:
        self.things.setdefault((module, shown), thing)
        return f"@thing.{[*self.things].index((module, shown))}"

    def text_symbol(self, said: str) -> str:
        """A text in the text, for functions in C."""
        name = f'@"said.{said}"'
        data = f"{said}\0".encode()
        shown = "".join(f"\\{b:02X}" for b in data)
        self._texts[name] = f'{name} = private constant [{len(data)} x i8] c"{shown}"\n'
        return name

    def symbol(self, thing: Any, shown: str, space: Mapping[str, Any]) -> str:
        """An object in the text: by where it is found again."""
        if thing is None or thing is True or thing is False:
            return f"@{thing}"
        shown = space.get("__meant__", {}).get(shown, shown)
        if isinstance(thing, str):
            return self._thing(sys.intern(thing), "", repr(thing))
        return self._thing(thing, space["__name__"], shown)

    def rely(self, shown: str, number: int, space: Mapping[str, Any]) -> None:
        """The text has this number for what the source calls so."""
        self._numbers[space["__name__"], shown] = number

    def rely_slot(self, cls: Any, name: str) -> None:
        """The text reads this slot."""
        found = fields.slot(cls, name)
        if found is not None:
            kind = found.kind
            self._slots[kind.__module__, kind.__qualname__, name] = found.offset
            self.rely_on_class(kind)

    def rely_on_class(self, cls: type) -> None:
        """The text has what the source of a class says."""
        self._modules.add(cls.__module__)

    # --- the whole ------------------------------------------------------------------------------

    def _whole(self, entries: Sequence[str]) -> str:
        parts = [made.text for made in self._made.values() if made is not None]
        parts = [_inlined(text, [*parts, *entries], self.short) for text in parts]
        things = [f"thing.{k}" for k in range(len(self.things))] + [*map(name_of, ALWAYS)]
        head = [f"@{name} = external global i64\n" for name in things]
        head += [
            f"declare {r} @{name}({', '.join(a)})\n" for name, (r, a) in self._declared.items()
        ]
        return "".join([*head, self.helpers, *self._texts.values(), *parts, *entries, _HINTS])

    def _relied(self) -> dict[str, Any]:
        return {
            "things": list(self.things),
            "numbers": [[*place, number] for place, number in self._numbers.items()],
            "slots": [[*place, offset] for place, offset in self._slots.items()],
            "type": self.type_offset,
            "sources": [[module, content(module)] for module in sorted(self._modules)],
            "called": sorted(set(_CALLED.findall(self.text))),
        }


def _inlined(text: str, parts: Sequence[str], most: int) -> str:
    """A function that is to be part of those who call it, if it is short, or one alone does."""
    head, _, _ = text.partition(" nounwind optsize {")
    name = head[head.index("@") : head.index("(")]
    calls = sum(part.count(f"{name}(") for part in parts) - 1  # one is its own head
    once = calls <= 1 and " internal " in head
    fits = once or text.count("\n") < most
    return text.replace(" nounwind", " alwaysinline nounwind", 1) if fits else text


@functools.lru_cache(maxsize=64)
def _definitions(
    file: str,
) -> tuple[dict[tuple[str, int], ast.FunctionDef], list[tuple[ast.stmt, set[str]]]]:
    """The functions of a file, by names and first lines, and its imports, with what they name."""
    found, imports = {}, list[tuple[ast.stmt, set[str]]]()
    lines = linecache.cache.get(file)  # of what is in no file, as in a notebook
    text = "".join(lines[2]) if lines and len(lines) > 2 else Path(file).read_text("utf-8")
    for node in parsed(text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_future(node):
            imports.append((node, {x.asname or x.name.partition(".")[0] for x in node.names}))
        if isinstance(node, ast.FunctionDef):
            first = min(node.lineno, *(d.lineno for d in node.decorator_list), node.lineno)
            found[node.name, first] = node
    return found, imports


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _source(function: Any) -> ast.FunctionDef:
    """The source of a function.

    Raises:
        NoSource: there is none, or it was changed since it was read.
        KitError: it is not written at the top of a module.
    """
    code = function.__code__
    if "<locals>" in function.__qualname__ or "." in function.__qualname__:
        place = f"{code.co_filename}:{code.co_firstlineno}"
        raise KitError(f"{place}: {function.__qualname__} is no function of the module", True)
    try:
        definitions, imports = _definitions(code.co_filename)
    except OSError as error:
        raise NoSource from error
    found = definitions.get((code.co_name, code.co_firstlineno))
    used = tuple(node for node, names in imports if not names.isdisjoint(code.co_names))
    told = code.co_code, code.co_names, code.co_varnames
    if found is None or _bytecode(found, used) != told:
        raise NoSource
    return found


@functools.lru_cache(maxsize=256)
def _bytecode(
    tree: ast.FunctionDef, imports: tuple[ast.stmt, ...]
) -> tuple[bytes, tuple[str, ...], tuple[str, ...]]:
    """What tells the source of a function from another; modules' names are compiled their way."""
    bare = ast.FunctionDef(tree.name, tree.args, tree.body, [], **_EMPTY)
    module = ast.Module([*imports, ast.copy_location(bare, tree)], [])
    flags = __future__.annotations.compiler_flag
    whole = compile(module, "<source>", "exec", flags, dont_inherit=True)
    made = (x for x in whole.co_consts if isinstance(x, CodeType))
    (code,) = (x for x in made if x.co_name == tree.name)  # beside it, what gives its annotations
    return code.co_code, code.co_names, code.co_varnames


class Entry(Calls):
    """Writes the function that Python calls: from an array of objects to a native function."""

    def __init__(self, unit: Unit, made: Made, function: Any, as_method: bool) -> None:
        super().__init__(unit, OBJECT, function.__globals__)
        self.made_of, self.function, self.as_method = made, function, as_method

    def text(self) -> str:
        """The function's text; it has the name of the one in Python."""
        name, parameters = self.function.__name__, self.made_of.parameters
        several = any(p.kind == GIVEN for p in parameters)
        if self.as_method and len(parameters) <= several:
            raise KitError(f"{name}: the first parameter of a method is its object")
        given = parameters[self.as_method :]
        self.fixed = len(given) - several  # arguments that there must be
        bare = self.as_method and not given  # a method without arguments gets none
        named = bool(self.function.__defaults__)  # arguments may be given by name, or left out
        self.args = "%sorted" if named else "%args"
        table = self._sort([p.name for p in given], several) if named else ""
        if not bare and not named:
            self._refuse_count(several)
        values = [self._argument(*each) for each in enumerate(parameters)]
        self.result(self.boxed(self.answer_of(self.made_of, values)))
        found = find_ownership(self.blocks, self.registers, may_lend=False)
        taken = "ptr %self, ptr %args" + ("" if bare else ", i64 %count")
        taken += ", ptr %keywords" if named else ""
        body = Emitter(self, found).text()
        return f"{table}define ptr @{name}({taken}) nounwind optsize {{\n{body}\n}}\n"

    def _given(self, k: int) -> str:
        """The object that Python gives for a parameter."""
        if k < self.as_method:
            return "%self"
        place = self.value(f"getelementptr ptr, ptr {self.args}, i64 {k - self.as_method}")
        return self.value(f"load ptr, ptr {place}")

    def _sort(self, names: list[str], several: bool) -> str:
        """Put arguments in the order of their parameters, or have the function in Python complain.

        Gives the table of the parameters' names, and of what stands for those that are left out.
        """
        function = self.function
        if several:
            raise KitError(f"{function.__name__}: defaults and `*` do not go together")
        left_out = [None] * len(names) + [repr(x) for x in function.__defaults__]
        rows = []
        for name, default in zip(names, left_out[-len(names) :], strict=True):
            stands = "null" if default is None else self._literal(default)
            rows.append(f"ptr {self.unit.symbol(name, name, {})}, ptr {stands}")
        table, right, wrong = f'@"places.{function.__name__}"', self.label(), self.label()
        self.allocas.append(f"%sorted = alloca ptr, i64 {len(names)}")
        given = Value("%args", WORDS), Value("%count", INT), Value("%keywords", OBJECT)
        sorts = Value("%sorted", WORDS), Value(table, WORDS)
        fits = self.call("kit.ordered", "i1", *given, *sorts)
        self.branch(fits, right, wrong)
        self.at(wrong)
        shown = Value(self.unit.symbol(function, function.__name__, self.space), OBJECT)
        itself = Value("%self", OBJECT) if self.as_method else NULL
        answer = self.call("kit.spread", "ptr", shown, itself, *given)
        self.result(self.owned(answer, OBJECT))  # null, too: an error
        self.at(right)
        types = "i64" + ", ptr, ptr" * len(rows)
        head = f"i64 {len(rows)}"
        return f"{table} = private constant {{{types}}} {{{', '.join([head, *rows])}}}\n"

    def _literal(self, shown: str) -> str:
        """A default as an object in the text: one that there is once."""
        thing = ast.literal_eval(shown)
        if thing is not None and thing != () and type(thing) not in (bool, int):
            raise KitError(f"{self.function.__name__}: {shown} is not supported as a default")
        symbol: str = self.unit.symbol(thing, shown, {"__name__": ""})
        return symbol

    def _refuse_count(self, several: bool) -> None:
        """Refuse another number of arguments."""
        wrong = self.value(f"icmp {'slt' if several else 'ne'} i64 %count, {self.fixed}")
        least = f"{'at least ' * several}{self.fixed} argument{'s' * (self.fixed != 1)}"
        said = f"{self.function.__name__} takes {least}, %zd were given"
        self.refuse(wrong, TypeError, said, Value("%count", INT))

    def _argument(self, k: int, parameter: Parameter) -> Value:
        """What Python gives, in the form that the native function takes."""
        name, kind, _ = parameter
        what = f"{self.function.__name__}: argument {name!r}"
        if kind == GIVEN:
            start = self.value(f"getelementptr ptr, ptr %args, i64 {self.fixed}")
            half = self.value(f"insertvalue {GIVEN.llvm} poison, ptr {start}, 0")
            more = self.value(f"sub i64 %count, {self.fixed}")
            return Value(self.value(f"insertvalue {GIVEN.llvm} {half}, i64 {more}, 1"), GIVEN)
        if word_type(kind.cls) is not None:
            raise KitError(f"{what}: Python gives no Words")
        given = self._given(k)
        if kind.llvm in PLAIN:
            return self.unboxed(Value(given, Kind("ptr", kind.cls)))
        if kind.cls is not object and k >= self.as_method:
            none = takes_none(self.function.__annotations__[name], self.space)
            self.refuse_others(given, kind, none, what)
        return Value(given, kind)


# --- without Python -------------------------------------------------------------------------------


class RawLowering(Lowering):
    """Lowers a function that needs nothing of Python."""

    def call(
        self, name: str, result: str, *given: Value, runs: str = "", fixed: int | None = None
    ) -> str:
        if name.startswith("Py"):
            raise KitError(f"{name}: a raw function has no objects")
        return super().call(name, result, *given, runs=runs, fixed=fixed)

    def boxed(self, value: Value) -> Value:
        raise KitError(f"{value.kind}: a raw function has no objects")

    def failure(self) -> str:
        raise KitError("a raw function raises no error")


class RawUnit(Unit):
    """The text of a raw unit, whose functions native code calls by their names."""

    lowering = RawLowering
    short = 20
    helpers, type_offset = "", None

    def entry(self, function: Any, as_method: bool) -> str:
        self.function(function)
        return ""

    def head_of(self, function: Any) -> tuple[str, str]:
        if function in self._functions:
            return "external", f"@{function.__name__}"
        return super().head_of(function)

    def symbol(self, thing: Any, shown: str, space: Mapping[str, Any]) -> str:
        if thing is None:
            return "null"
        if not isinstance(thing, (Words, Reals)):
            raise KitError(f"{shown}: a raw function has no objects")
        return super().symbol(thing, shown, space)

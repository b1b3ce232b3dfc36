"""The source of a Python function: its syntax tree in its file, and errors that point into it."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import types
import warnings
from contextlib import suppress
from typing import NoReturn

from gnomon.base import GnomonError

_TRIES = 20  # of which one in a hundred fails, in the worst of cases

ALLOWED = (
    "numbers, arguments, local names, + - * / // % **, & | ^ ~ << >> of integers, comparisons "
    "(also chained), and, or, not, if / elif / else, conditional expressions, return, and calls of "
    "abs, min, max, round, float, int, bool, functions of math and NumPy, and other operators"
)


class OperatorError(GnomonError, SyntaxError):
    """Python that a scalar operator cannot be made of; says where it stands and what can."""

    __str__ = GnomonError.__str__


class Source:
    """The syntax tree of a function, found in its file."""

    def __init__(self, function: types.FunctionType) -> None:
        self.code = function.__code__
        self.file = self.code.co_filename
        if hasattr(function, "__wrapped__"):
            raise OperatorError(
                f"{self.file}, line {self.code.co_firstlineno}: {function.__name__} is what "
                "another decorator made; write @op right above the function"
            )
        try:
            self.lines, _ = inspect.findsource(function)
        except (OSError, IndexError):
            raise OperatorError(
                f"{self.file}, line {self.code.co_firstlineno}: the source of {function.__name__} "
                "cannot be read; an operator is made from source, so write it in a file or notebook"
            ) from None
        self.node = self.find(function.__name__)

    def find(self, name: str) -> ast.FunctionDef | ast.Lambda:
        """The node of the function: by its first line, and for lambdas by its columns."""
        found: list[ast.FunctionDef | ast.Lambda] = []
        text = "".join(self.lines)
        for node in ast.walk(_parsed(text)):
            if isinstance(node, ast.AsyncFunctionDef) and self.starts(node, name):
                self.refuse(node, "an async function")
            elif isinstance(node, ast.FunctionDef) and self.starts(node, name):
                found.append(node)
            elif isinstance(node, ast.Lambda) and name == "<lambda>" and self.covers(node):
                found = [node]  # the walk goes inward: the innermost stays
        if len(found) != 1 or not _holds(text, self.file, self.code):
            where = f"{self.file}, line {self.code.co_firstlineno}"
            raise OperatorError(
                f"{where}: the source of {name} does not match what runs; has the file changed?"
            )
        return found[0]

    def starts(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
        """Whether a definition is of this name and begins where the code does."""
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == name and first == self.code.co_firstlineno

    def covers(self, node: ast.Lambda) -> bool:
        """Whether the instructions of the code all stand inside the body of a lambda."""
        body = node.body
        low, high = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
        spans = [(a, c, b, d) for a, b, c, d in self.code.co_positions() if d]
        if not spans:  # CPython 3.12 gives a constant that is returned no columns
            return node.lineno == self.code.co_firstlineno and _is_code_of(node, self.code)
        return all(low <= (a, c) and (b, d) <= high for a, c, b, d in spans)

    def arguments(self) -> list[str]:
        """The names of the arguments; they must be plain ones."""
        a = self.node.args
        if a.vararg or a.kwarg or a.kwonlyargs or a.defaults:
            self.refuse(self.node, "arguments with defaults, *, or keywords")
        names = [arg.arg for arg in (*a.posonlyargs, *a.args)]
        if not names:
            self.refuse(self.node, "an operator without arguments")
        return names

    def refuse(self, node: ast.AST, what: str, instead: str = f"Allowed: {ALLOWED}.") -> NoReturn:
        """An error at `node`, with its source line."""
        line = getattr(node, "lineno", self.code.co_firstlineno)
        text = (
            self.lines[line - 1] if line <= len(self.lines) else linecache.getline(self.file, line)
        )
        column = getattr(node, "col_offset", 0)
        raise OperatorError(
            f"{self.file}, line {line}: {what} cannot be compiled in an operator\n"
            f"    {text.rstrip()}\n    {' ' * column}^\n{instead}"
        )


@functools.lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():  # what is doubtful in the file has been said when it ran
        warnings.simplefilter("ignore")
        return parsed(text)


def parsed(text: str) -> ast.Module:
    """`ast.parse`, by several threads at once.

    CPython up to 3.12 counts for all threads together how deep it is in a tree. A collection, whose
    finalisers let another thread parse meanwhile, ends in a SystemError: then it is done again.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def _is_code_of(node: ast.Lambda, code: types.CodeType) -> bool:
    """Whether a lambda that takes nothing from around it is of this code."""
    own = _within(_compiled(ast.Expression(node), "eval"))
    return any(c.co_varnames == code.co_varnames and _outline(c) == _outline(code) for c in own)


def _holds(text: str, file: str, code: types.CodeType) -> bool:
    """Whether the text, compiled, gives this code somewhere."""
    here = _codes(text, file).get(code.co_firstlineno, ())
    return any(_outline(c) == _outline(code) for c in here)


def _outline(code: types.CodeType) -> list[tuple[str, str]]:
    """The instructions, but for what depends on the rest of the file: how attributes are called."""
    loose = ("CALL", "METHOD", "ATTR", "GLOBAL", "NULL")
    lines = [i for i in dis.get_instructions(code) if not any(word in i.opname for word in loose)]
    shown = [
        (i.opname, "" if "JUMP" in i.opname or isinstance(i.argval, types.CodeType) else i.argrepr)
        for i in lines
    ]
    return [*((name, "") for name in sorted(code.co_names)), *shown]


@functools.lru_cache(maxsize=16)
def _codes(text: str, file: str) -> dict[int, list[types.CodeType]]:
    """All code of a file, by first line."""
    found: dict[int, list[types.CodeType]] = {}
    waiting = [_compiled(text, "exec", file)]
    while waiting:
        code = waiting.pop()
        found.setdefault(code.co_firstlineno, []).append(code)
        waiting.extend(_within(code))
    return found


def _compiled(source: str | ast.Expression, mode: str, file: str = "<lambda>") -> types.CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, file, mode, dont_inherit=True)


def _within(code: types.CodeType) -> list[types.CodeType]:
    return [c for c in code.co_consts if isinstance(c, types.CodeType)]

"""What went wrong in a function: its exception, and the place that pushed it, told when asked.

A push keeps its place as a code object and the offset of an instruction in it, which costs a tenth
of a microsecond; the line is looked up when a message is written, and most never are.
"""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING
from weakref import ref

from gnomon.base import EngineError, EngineIndexError
from gnomon.ground.record import put
from gnomon.native.words import native

if TYPE_CHECKING:
    from gnomon.engine.var import Var

PACKAGE = str(Path(__file__).parent.parent) + os.sep
_ENGINE = str(Path(__file__).parent) + os.sep

Site = tuple[CodeType, int]


@native
def push_site() -> Site:
    """The innermost place outside gnomon that the call comes from.

    Where all of the program is gnomon's, as its own commands are, the innermost outside the engine.
    """
    depth = 0
    frame = sys._getframe(depth)
    own: Site | None = None
    while frame.f_code.co_filename.startswith(PACKAGE):
        if own is None and not frame.f_code.co_filename.startswith(_ENGINE):
            own = (frame.f_code, frame.f_lasti)
        depth += 1
        try:
            frame = sys._getframe(depth)  # where memory lacks, `f_back` says None, with an error
        except ValueError:
            return (frame.f_code, frame.f_lasti) if own is None else own
    return (frame.f_code, frame.f_lasti)


def line_of(site: Site) -> int:
    """The line of a place; the first of its function where the instruction has none."""
    code, offset = site
    for begin, end, line in code.co_lines():
        if begin <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def describe_site(site: Site | None) -> str:
    """A place as one line: file, line, function and, where it can be read, the source."""
    if site is None:
        return "pushed at a place that was not kept"
    code, line = site[0], line_of(site)
    source = linecache.getline(code.co_filename, line).strip()
    where = f'pushed at File "{code.co_filename}", line {line}, in {code.co_name}'
    return f"{where}\n    {source}" if source else where


class Failure:
    """One exception of one function, shared by every variable that it poisons.

    `reported` says whether it was reported: from then on a function that only writes a poisoned
    variable runs and heals it. `kept` refers to variables that have their value of before, since
    what was to write them did not run: a report restores them.
    """

    __slots__ = ("exception", "kept", "name", "reported", "site")

    def __init__(self, exception: BaseException, name: str, site: Site | None) -> None:
        self.exception = exception
        self.name = name
        self.site = site
        self.reported = False
        self.kept: set[ref[Var]] = set()

    def restore(self, var: Var, run_ctx: object) -> None:
        """Have one of those that are kept be what it was, unless another failure came since."""
        if var.failure is self:
            put(var, "failure", None)

    def raise_interrupt(self) -> None:
        """Raise a Ctrl-C that came while the function ran, once: it was meant for the program."""
        if isinstance(self.exception, KeyboardInterrupt) and not self.reported:
            self.reported = True
            raise self.exception

    def error(self) -> EngineError:
        """A fresh error to raise at a wait; its cause is the function's own exception."""
        kind = type(self.exception).__name__
        text = str(self.exception)
        what = f"{kind}: {text}" if text else kind
        raised = EngineIndexError if isinstance(self.exception, IndexError) else EngineError
        error = raised(f"function {self.name!r} failed: {what}\n  {describe_site(self.site)}")
        error.__cause__ = self.exception
        return error

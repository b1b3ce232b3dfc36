"""`gnomon run script.py`: a program written for MXNet and NumPy 1 runs as it is.

`import mxnet` gets gnomon in the whole process. The program's own files, those below its folder,
get `gnomon.old_numpy.old` where they import `numpy`; libraries imported beside notice nothing. An
error shows the program's traceback, and the process ends as Python's would.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from gnomon import compat
from gnomon.base import GnomonError, Later

if TYPE_CHECKING:
    from gnomon import old_numpy
else:  # it imports NumPy, which the program may not need
    old_numpy = Later("gnomon.old_numpy")


def _import(name: str, *details: Any, **named: Any) -> Any:
    """`__import__` of a program's own files."""
    module = builtins.__import__(name, *details, **named)
    return old_numpy.old if module.__name__ == "numpy" else module


_own_builtins = {**vars(builtins), "__import__": _import}


class _OwnLoader(SourceFileLoader):
    """Runs a file of the program with the `__import__` above."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = _own_builtins
        super().exec_module(module)


class _OwnFinder(MetaPathFinder):
    """Finds modules below a program's own folder, installed packages left out."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            return None
        file = Path(spec.origin).resolve()
        if not file.is_relative_to(self._folder) or "site-packages" in file.parts:
            return None
        spec.loader = _OwnLoader(spec.loader.name, spec.loader.path)
        return spec


def script(path: str, arguments: Sequence[str]) -> int:
    """Run the file `path` as `__main__` with these arguments; gives the exit code.

    Raises:
        GnomonError: there is no such file.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "__main__.py"
    try:
        with io.open_code(str(file.absolute())) as stream:
            text = stream.read()
    except OSError as error:
        raise GnomonError(f"run: cannot read {path!r}: {error.strerror}") from error
    folder = str(file.absolute().parent)
    _prepare(folder, folder)
    return _execute(text, str(file), [path, *arguments], None)


def module(name: str, arguments: Sequence[str]) -> int:
    """Run the module or package `name` as `python -m` would; gives the exit code.

    Raises:
        GnomonError: there is no such module, or it cannot be run.
    """
    _prepare(".", "")
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise GnomonError(f"run: no module {name!r} that can be run")
    return _execute(Path(spec.origin).read_bytes(), spec.origin, [spec.origin, *arguments], spec)


def _prepare(folder: str, entry: str) -> None:
    """Have `import mxnet` get gnomon, and files below `folder` NumPy's old names."""
    sys.path.insert(0, entry)
    compat.install()
    sys.meta_path.insert(0, _OwnFinder(folder))


def _execute(text: bytes, file: str, arguments: list[str], spec: ModuleSpec | None) -> int:
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=file,
        __builtins__=_own_builtins,
        __spec__=spec,
        __package__=spec.parent if spec else None,
    )
    sys.modules["__main__"] = main
    sys.argv[:] = arguments
    try:
        exec(compile(text, file, "exec", dont_inherit=True), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _show(error)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _show(error: BaseException) -> None:
    """Print an error as Python would have, without the frames of this file."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)

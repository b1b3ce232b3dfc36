"""`gnomon run script.py`: a program written for MXNet and NumPy 1 runs as it is.

`import mxnet` gets gnomon in the whole process. The program's own files, those below its folder,
get `old` of `compatibility/old_numpy.py` where they import `numpy`, and so do installed packages
that import `mxnet`, which were written for it too. Libraries imported beside notice nothing but
that NumPy prints numbers as NumPy 1 from the first such import on. Python's own modules get the
names that they had (`compatibility/old_python.py`). An error shows the program's traceback, and the
process ends as Python's would. Processes that it starts by `multiprocessing`, also by the methods
`spawn` and `forkserver`, are served likewise. In a notebook, `%load_ext gnomon.run` serves the
cells below, and files in the notebook's folder; a kernel that `gnomon run -m ipykernel_launcher`
starts has done so.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar
from zipimport import ZipImportError, zipimporter

from gnomon import compat
from gnomon.base import GnomonError, Later
from gnomon.compatibility import old_python

if TYPE_CHECKING:
    from gnomon.compatibility import old_numpy
else:  # it imports NumPy, which the program may not need
    old_numpy = Later("gnomon.compatibility.old_numpy")


_OF_NUMPY_1 = {"numpy", compat.NAME}


def _import(name: str, *details: Any, **named: Any) -> Any:
    """`__import__` of a program's own files."""
    module = builtins.__import__(name, *details, **named)
    old_python.restore(module)
    if name.partition(".")[0] not in _OF_NUMPY_1:
        return module
    old_numpy.behave_as_before()
    return old_numpy.old if module.__name__ == "numpy" else module


_own_builtins = {**vars(builtins), "__import__": _import}


class _OwnLoader(SourceFileLoader):
    """Runs a file of the program with the `__import__` above."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = _own_builtins
        super().exec_module(module)


class _ZippedLoader(zipimporter):
    """The same for a file in a zip archive."""

    @classmethod
    def of(cls, loader: zipimporter) -> Any:
        """One for the same place in the same archive."""
        return cls(str(Path(loader.archive, loader.prefix)))

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = _own_builtins
        super().exec_module(module)


class _InstalledLoader(SourceFileLoader):
    """Runs a file of an installed package, with that `__import__` where the package uses MXNet.

    Which it does is known from the first of its files that imports `mxnet`.
    """

    users: ClassVar[set[str]] = set()  # packages

    def exec_module(self, module: ModuleType) -> None:
        code: Any = self.get_code(module.__name__)
        package = module.__name__.partition(".")[0]
        if any(name.partition(".")[0] == compat.NAME for name in code.co_names):
            self.users.add(package)
        if package in self.users:
            module.__dict__["__builtins__"] = _own_builtins
        exec(code, module.__dict__)


# where Python's own modules are, and installed packages
_LIBRARY = Path(io.__file__).resolve().parent
_INSTALLED = {"site-packages", "dist-packages"}
# what is below these is gnomon's wherever it lies, and `compat` finds it
_GNOMON = {"gnomon", compat.NAME}


class _OwnFinder:
    """Finds modules below a program's own folder, and those of installed packages."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()

    def serves(self, folder: str) -> bool:
        """Whether its files are those below `folder`."""
        return self._folder == Path(folder).resolve()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in _GNOMON:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not spec.origin:
            return None
        file = Path(spec.origin).resolve()
        loader: Any = spec.loader  # typeshed knows no archive's as one
        if type(loader) is zipimporter and file.is_relative_to(self._folder):
            spec.loader = _ZippedLoader.of(loader)
            return spec
        if type(spec.loader) is not SourceFileLoader:
            return None
        if _INSTALLED.isdisjoint(file.parts):
            if not file.is_relative_to(self._folder) or file.is_relative_to(_LIBRARY):
                return None
            spec.loader = _OwnLoader(spec.loader.name, spec.loader.path)
        else:
            spec.loader = _InstalledLoader(spec.loader.name, spec.loader.path)
        return spec


# their programs are cells, which they run in a namespace that only an extension is shown
_SHELLS = {"IPython", "ipykernel", "ipykernel_launcher"}


def script(path: str, arguments: Sequence[str]) -> int:
    """Run the file `path` as `__main__` with these arguments; gives the exit code.

    As of Python's own command, `path` may be a folder or a zip archive with a `__main__.py`, or
    `-`, the standard input.

    Raises:
        GnomonError: there is no such file.
    """
    if path == "-":
        _prepare(".", "")
        return _execute(sys.stdin.buffer.read(), "<stdin>", [path, *arguments], None)
    file = Path(path)
    if file.is_dir():
        file = file / "__main__.py"
    try:
        with io.open_code(str(file.absolute())) as stream:
            text = stream.read()
    except OSError as error:
        raise GnomonError(f"run: cannot read {path!r}: {error.strerror}") from error
    if b"\0" in text:  # which Python's source has not
        return _archive(path, arguments)
    folder = str(file.absolute().parent)
    _prepare(folder, folder)
    return _execute(text, str(file), [path, *arguments], None)


def _archive(path: str, arguments: Sequence[str]) -> int:
    """Run the `__main__.py` of a zip archive."""
    place = str(Path(path).absolute())
    _prepare(place, place)
    try:
        loader: Any = _ZippedLoader(place)
        text = loader.get_data("__main__.py")
    except (ZipImportError, OSError) as error:
        expected = "Python's source, or a zip archive with a __main__.py"
        raise GnomonError(f"run: {path!r}: expected {expected}") from error
    file = f"{place}/__main__.py"
    return _execute(text, file, [path, *arguments], ModuleSpec("__main__", loader, origin=file))


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
    if name in _SHELLS:
        arguments = [*arguments, f"--ext={__name__}"]
    return _execute(Path(spec.origin).read_bytes(), spec.origin, [spec.origin, *arguments], spec)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext gnomon.run` does: serve the cells of this notebook."""
    _serve(".")
    shell.user_ns["__builtins__"] = _own_builtins


def _prepare(folder: str, entry: str) -> None:
    """Look for modules in `entry` first, and serve files below `folder`."""
    sys.path.insert(0, entry)
    _serve(folder)


def _serve(folder: str) -> None:
    """Have `import mxnet` get gnomon, and files below `folder` NumPy's old names."""
    if any(type(each) is _OwnFinder and each.serves(folder) for each in sys.meta_path):
        return
    compat.install()
    for name in old_python.NAMES.keys() & sys.modules.keys():  # for libraries that use MXNet late
        old_python.restore(sys.modules[name])
    sys.meta_path[:0] = [_OwnFinder(folder), _SpawnFinder(folder)]
    if (spawn := sys.modules.get(_SPAWN)) is not None:
        _tell_children(spawn, folder)


def _execute(text: bytes, file: str, arguments: list[str], spec: ModuleSpec | None) -> int:
    main = sys.modules["__main__"] = _new_main("__main__", file, spec)
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
    """Print an error as Python would have, without the frames of this file and of imports."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = _shown(each.__traceback__)
        each = each.__context__ if each.__cause__ is None else each.__cause__
    # as Python does: what runs at the exit asks for it, and debuggers
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)


def _shown(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without such frames."""
    kept: TracebackType | None = None
    frames = list[TracebackType]()
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        file = frame.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen importlib"):
            frame.tb_next = kept
            kept = frame
    return kept


def _new_main(name: str, file: str, spec: ModuleSpec | None) -> ModuleType:
    """An empty module for the program's first file."""
    main = ModuleType(name)
    main.__dict__.update(
        __file__=file,
        __builtins__=_own_builtins,
        __spec__=spec,
        __loader__=spec.loader if spec else None,
        __package__=spec.parent if spec else None,
    )
    return main


# --- processes that the program starts ------------------------------------------------------

_SPAWN = "multiprocessing.spawn"


class _SpawnFinder(_OwnFinder):
    """Finds `multiprocessing.spawn`, and has it tell new processes to serve the program's files."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _SPAWN else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _SpawnLoader(str(self._folder), spec.loader)
        return spec


class _SpawnLoader(SourceFileLoader):
    def __init__(self, folder: str, loader: SourceFileLoader) -> None:
        super().__init__(loader.name, loader.path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _tell_children(module, self._folder)


def _tell_children(spawn: Any, folder: str) -> None:
    """Have what `spawn` sends to a new process also say what is done in this file."""
    spawn.get_preparation_data = partial(_data, spawn.get_preparation_data, folder)


def _data(original: Callable[[str], dict[str, Any]], folder: str, name: str) -> dict[str, Any]:
    """What a new process is told: how to prepare, and which file it runs as `__mp_main__`."""
    data = original(name)
    file = data.pop("init_main_from_path", None)
    module = data.pop("init_main_from_name", None)
    return {**data, "gnomon": _Child(str(Path(folder).resolve()), file, module)}


class _Child:
    """What serves a new process as soon as it reads this."""

    def __init__(self, folder: str, file: str | None, module: str | None) -> None:
        self._given = folder, file, module

    def __reduce__(self) -> Any:
        return _serve_child, self._given


def _serve_child(folder: str, file: str | None, module: str | None) -> None:
    _serve(folder)
    spawn: Any = sys.modules[_SPAWN]
    spawn.prepare = partial(_prepare_child, spawn.prepare, file, module)


def _prepare_child(
    original: Callable[[dict[str, Any]], None],
    file: str | None,
    module: str | None,
    data: dict[str, Any],
) -> None:
    """`multiprocessing.spawn.prepare`, the program's first file run by this one."""
    original(data)
    spec = None
    if module is not None and not module.endswith("__main__"):  # whose files guard nothing
        spec = importlib.util.find_spec(module)
        file = spec.origin if spec else None
    if file is None or not Path(file).is_file():
        return
    main = _new_main("__mp_main__", file, spec)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    exec(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True), main.__dict__)

"""Every kind of error gnomon raises, and the one sentence they are all written in.

Behind them stand the small helpers that programs written for MXNet import from `mx.base`: those
that mean something where no C library is behind the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.ground.lock import load_module


class Later:
    """A module that is imported when something of it is first asked for.

    For what most programs never need, or not until a kernel is compiled: it stands in the `else` of
    an `if TYPE_CHECKING` that imports the module by its name.

    >>> Later("math").floor(2.5)
    2
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(load_module(self._module), name)
        setattr(self, name, found)
        return found


class GnomonError(RuntimeError):
    """The root of gnomon's own errors; `MXNetError` is another name of it."""

    def __reduce__(self) -> Any:
        """Pickled as it is, its text with it, whatever the constructor takes."""
        if isinstance(self, OSError):  # what such a one says is more than its `args`
            return super().__reduce__()
        return _made_anew, (type(self), *self.args), vars(self)


def _made_anew(kind: type[GnomonError], *args: Any) -> GnomonError:
    """An error that no constructor was asked for."""
    return kind.__new__(kind, *args)


MXNetError = GnomonError


class ShapeError(GnomonError, ValueError):
    """Shapes or ranks that do not go together."""


class DTypeError(GnomonError, TypeError):
    """Data types that are unknown or do not go together."""


class ParamError(GnomonError, ValueError):
    """A parameter or setting that is unknown, missing or out of range."""


class ArgumentError(ParamError, TypeError):
    """An argument of a kind that a function does not take."""


class UnknownNameError(GnomonError, KeyError, ValueError):
    """A name that nothing is registered under."""

    __str__ = GnomonError.__str__  # KeyError would print the message's repr


class FormatError(GnomonError, ValueError):
    """A file or byte stream that is not what it should be."""


class FileError(OSError, GnomonError):
    """A file that cannot be read or written: an OSError too, with its `errno` and `filename`.

    Made of a sentence, or as OSError of the three that `errno`, `strerror` and `filename` are.
    """

    attempt = "cannot open"  # what was tried: where, and to read or to write

    def __str__(self) -> str:
        if self.filename is None:
            return GnomonError.__str__(self)
        return f"{self.attempt} {self.filename!r}: {self.strerror}"


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder that is not there."""


class FilePermissionError(FileError, PermissionError):
    """A file that this user may not read or write."""


class NotSupportedForSparseNDArray(GnomonError):
    """What an array in sparse storage cannot do: it has no memory of all its elements."""

    def __init__(self, function: Any, alias: str | None = None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        also = f" (or {alias})" if alias else ""
        given = f" with arguments {args}" if args else ""
        super().__init__(
            f"{name}{also}{given} is for arrays in default storage; x.tostype('default') gives one"
        )


class NotImplementedForSymbol(GnomonError):
    """Something that only arrays can do: a symbol has no data."""


class DeviceError(GnomonError):
    """A device that is missing, or refuses to work."""


class EngineError(GnomonError):
    """A misuse of the dependency engine, or a function of it that failed."""


class EngineIndexError(EngineError, IndexError):
    """A function of the engine that found an index out of bounds."""


class MidwayError(EngineError):
    """A finaliser or signal's handler asked for what its thread is amidst: it is there later."""


def complaint(where: str, argument: str, expected: object, got: object) -> str:
    """The sentence every error is written in: where, which argument, what was expected, what came.

    Of arrays the shape is told, and of what is long the first part.

    >>> complaint("dot", "rhs", "3 rows", "shape (4, 2)")
    "dot: argument 'rhs': expected 3 rows, got shape (4, 2)"
    """
    wanted, came = (_told(x) for x in (expected, got))
    return f"{where}: argument {argument!r}: expected {wanted}, got {came}"


LONGEST = 1000  # characters of what was expected, or came, that an error tells


def _told(what: object) -> str:
    text = shown(what) if _is_array(what) else str(what)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def shown(value: Any) -> str:
    """`value` in a line, for errors: of arrays the shape in place of the elements.

    >>> import numpy as np
    >>> shown([1, np.ones((2, 3))]), shown((1, 2)), len(shown("a" * 100))
    ('a list of 2: 1, an ndarray of shape (2, 3)', '(1, 2)', 60)
    """
    kinds = [kind.__name__ for kind in type(value).__mro__]
    kind = "ndarray" if "ndarray" in kinds else kinds[0]  # NumPy's, of whatever class
    article = "an" if kind.upper().startswith(("A", "E", "I", "O", "ND")) else "a"
    if _is_array(value):
        return f"{article} {kind} of shape {value.shape}"
    if isinstance(value, (list, tuple)) and any(map(_is_array, value)):
        parts = ", ".join(map(shown, value[:2]))
        return f"{article} {kind} of {len(value)}: {parts}{', ...' if len(value) > 2 else ''}"
    return f"{value!r:.60}".replace("\n", " ")


def _is_array(value: object) -> bool:
    """Whether it has elements, which no error shows."""
    return hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "__len__")


def check_kind(
    where: str, argument: str, value: object, kinds: type | tuple[type, ...], expected: str
) -> None:
    """Raises ArgumentError, a TypeError, where an argument is none of these kinds.

    >>> check_kind("nd.eye", "N", "x", int, "an int")
    Traceback (most recent call last):
    gnomon.base.ArgumentError: nd.eye: argument 'N': expected an int, got 'x'
    """
    if not isinstance(value, kinds):
        raise ArgumentError(complaint(where, argument, expected, shown(value)))


def check_functions(where: str, **given: object) -> None:
    """Raises TypeError where one of these arguments cannot be called.

    >>> check_functions("foreach", body=5)
    Traceback (most recent call last):
    TypeError: foreach: argument 'body': expected a function, got 5
    """
    for argument, value in given.items():
        if not callable(value):
            raise TypeError(complaint(where, argument, "a function", shown(value)))


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the known names closest to `name`, or an empty string where none is close.

    >>> nearest("momentun", ["momentum", "wd"])
    "; did you mean 'momentum'?"
    """
    alike = sorted(names, key=lambda known: known[:1] == name[:1])  # Trainer before trainer
    by_lower = {known.lower(): known for known in alike}
    close = load_module("difflib").get_close_matches(name.lower(), by_lower, n=3)
    return f"; did you mean {' or '.join(repr(by_lower[c]) for c in close)}?" if close else ""


# What programs written for MXNet import from here

if TYPE_CHECKING:
    import ctypes
    import inspect
    import os

    import numpy as np
else:
    ctypes, inspect, os, np = Later("ctypes"), Later("inspect"), Later("os"), Later("numpy")

string_types = (str,)
long = int


def __getattr__(name: str) -> Any:
    """The names whose values are elsewhere, looked up when first asked for."""
    if name.startswith("__"):  # every import from here asks for `__path__`
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made: dict[str, Callable[[], Any]] = {
        "register_error": lambda: Later("gnomon.error").register_error,
        "mx_real_t": lambda: np.float32,
        "integer_types": lambda: (int, np.int32, np.int64),
        "mx_float": lambda: ctypes.c_float,
        "mx_int": lambda: ctypes.c_int,
        "mx_uint": lambda: ctypes.c_uint,
        "numeric_types": lambda: (float, int, np.generic),
    }
    if name not in made:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{nearest(name, made)}")
    return globals().setdefault(name, made[name]())


class _Library:
    """What stands for MXNet's C library, which programs import as `_LIB`: it has no function."""

    def __getattr__(self, name: str) -> Any:
        text = "gnomon has no C library; what MXNet does by one is done by Python's functions"
        raise AttributeError(f"mx.base._LIB.{name}: {text}", name=name)


_LIB = _Library()


def check_call(ret: int) -> None:
    """What programs wrap around calls of `_LIB`.

    Raises:
        GnomonError: the call failed: `ret` is not 0.
    """
    if ret != 0:
        raise GnomonError(complaint("check_call", "ret", "0, what C functions give back", ret))


def _as_list(obj: Any) -> Any:
    """A list or tuple as it is, anything else as the only element of a list."""
    return obj if isinstance(obj, (list, tuple)) else [obj]


class _NullType:
    """The mark of an argument that is not given, where None is a value."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


def py_str(x: bytes | str) -> str:
    """Text from UTF-8, or as it is: callbacks of monitors call it with names, bytes in MXNet.

    >>> py_str(b"gnomon"), py_str("gnomon")
    ('gnomon', 'gnomon')
    """
    return x if isinstance(x, str) else x.decode("utf-8")


def data_dir_default() -> str:
    """Where data is kept where `MXNET_HOME` says nothing: `.mxnet` in the user's home."""
    return str(Path.home() / ".mxnet")


def data_dir() -> str:
    """The folder of data sets and models: `MXNET_HOME`, or `data_dir_default()`."""
    return os.environ.get("MXNET_HOME") or data_dir_default()


class classproperty:
    """A property of a class itself, by a function of the class.

    >>> class Circle:
    ...     @classproperty
    ...     def sides(cls): return 1
    >>> Circle.sides
    1
    """

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._get = func

    def __get__(self, instance: object, owner: type) -> Any:
        return self._get(owner)


def with_metaclass(meta: type, *bases: type) -> type:
    """A base of `bases` whose metaclass is `meta`.

    >>> class Kind(type): ...
    >>> type(with_metaclass(Kind, dict)).__name__
    'Kind'
    """
    return meta("with_metaclass", bases, {})  # type: ignore[no-any-return]


def c2pyerror(err_msg: str) -> tuple[str, str | None]:
    """A message of native code, and the name of the error that it begins with.

    >>> c2pyerror("ValueError: no such axis"), c2pyerror("no such axis")
    (('ValueError: no such axis', 'ValueError'), ('no such axis', None))
    """
    head, colon, _ = err_msg.split("\n", 1)[0].partition(":")
    return err_msg, head if colon and head.isidentifier() else None


def c_str(string: str) -> ctypes.c_char_p:
    """`string` as C has it."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Iterable[str]) -> ctypes.Array[Any]:
    """An array of C strings."""
    texts = [s.encode("utf-8") for s in strings]
    return (ctypes.c_char_p * len(texts))(*texts)


def c_array(ctype: Any, values: Iterable[Any]) -> ctypes.Array[Any]:
    """An array of C values.

    >>> import ctypes
    >>> list(c_array(ctypes.c_int, (1, 2)))
    [1, 2]
    """
    given = list(values)
    return (ctype * len(given))(*given)  # type: ignore[no-any-return]


def c_array_buf(ctype: Any, buf: Any) -> ctypes.Array[Any]:
    """The memory of a writable buffer, as from `array.array`, as an array of C values."""
    return (ctype * len(buf)).from_buffer(buf)  # type: ignore[no-any-return]


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """A copy of `length` bytes at a pointer to characters.

    Raises:
        TypeError: `cptr` points at something else.
    """
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise TypeError(complaint("ctypes2buffer", "cptr", "a pointer to c_char", repr(cptr)))
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: tuple[int, ...]) -> Any:
    """The memory at a pointer to floats as a NumPy array of `shape`, not copied.

    Raises:
        RuntimeError: `cptr` points at something else.
    """
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_float)):
        raise RuntimeError(complaint("ctypes2numpy_shared", "cptr", "a pointer to floats", cptr))
    return np.ctypeslib.as_array(cptr, shape)


def build_param_doc(
    arg_names: Iterable[str],
    arg_types: Iterable[str],
    arg_descs: Iterable[str],
    remove_dup: bool = True,
) -> str:
    """The section on parameters of a docstring; a name that comes again is left out."""
    rows: dict[str, str] = {}
    for number, (name, kind, text) in enumerate(zip(arg_names, arg_types, arg_descs, strict=True)):
        key = name if remove_dup else str(number)
        if name != "num_args":
            rows.setdefault(key, f"{name} : {kind}" + (f"\n    {text}" if text else ""))
    return "Parameters\n----------\n" + "\n".join(rows.values()) + "\n"


def power_of_numbers(base: Any, exp: Any) -> Any:
    """`base ** exp`; of ints whose power has many digits as of floats, which takes no time.

    >>> power_of_numbers(3, 5)
    243

    Raises:
        OverflowError: it is beyond all floats.
    """
    if isinstance(base, int) and isinstance(exp, int) and exp * base.bit_length() > 1 << 12:
        return float(base) ** float(exp)
    return base**exp

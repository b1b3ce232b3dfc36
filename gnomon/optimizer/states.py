"""Optimizer states as bytes: arrays and plain values. MXNet's pickles are read, and run no code.

The bytes: `MAGIC`, the length of a JSON text, the text, then an array file. The text is the content
with `[kind, what]` for everything but plain values: a list, a tuple, a dict (by plain keys), an
array (its number in the file), an optimizer or a scheduler (its class and its attributes).

A pickle is a program. Here it is run by Python's slow reader with the opcodes that MXNet's need,
and what it would call is only written down; of the names it may use each has a line in `_MEANING`.
"""

from __future__ import annotations

import inspect
import io
import json
import pickle
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import FormatError, ParamError, complaint
from gnomon.lr_scheduler import LRScheduler
from gnomon.ndarray import serialize
from gnomon.ndarray.core import Array
from gnomon.ndarray.files import array_of, record_of
from gnomon.optimizer.base import Optimizer

MAGIC = b"gnomon's states\n"
PLAIN = (bool, int, float, str, type(None))
_LENGTH = struct.Struct("<Q")


# --- our own format --------------------------------------------------------------------------


def dumps(content: Any) -> bytes:
    """`content` as bytes: plain values, arrays, optimizers, and lists, tuples and dicts of them.

    Raises:
        ParamError: something else is among it.
    """
    arrays: list[Any] = []
    text = json.dumps(_described(content, "states", arrays)).encode()
    return MAGIC + _LENGTH.pack(len(text)) + text + serialize.dumps(arrays)


def loads(data: bytes) -> Any:
    """What `dumps` was given, or what MXNet pickled.

    Raises:
        FormatError: the bytes are neither; no code of theirs has run.
    """
    try:
        return _read(data) if data.startswith(MAGIC) else _unpickled(data)
    except Exception as error:  # what is damaged may fail anywhere
        expected = "optimizer states of gnomon or MXNet"
        got = f"{type(error).__name__}: {error}"
        raise FormatError(complaint("set_states", "states", expected, got)) from error


def _described(x: Any, where: str, arrays: list[Any]) -> Any:
    if isinstance(x, np.generic):
        x = x.item()
    if type(x) in PLAIN:
        return x
    if isinstance(x, (Array, np.ndarray)):
        arrays.append(record_of(x) if isinstance(x, Array) else x)
        return ["array" if isinstance(x, Array) else "numpy", len(arrays) - 1]
    if isinstance(x, (list, tuple)):
        kind = "list" if isinstance(x, list) else "tuple"
        return [kind, [_described(y, f"{where}[{k}]", arrays) for k, y in enumerate(x)]]
    if isinstance(x, dict) and all(type(key) in PLAIN for key in x):
        return ["dict", [[k, _described(y, f"{where}[{k!r}]", arrays)] for k, y in x.items()]]
    if isinstance(x, (Optimizer, LRScheduler)):
        kind = type(x)
        attributes = _described(x.__getstate__(), kind.__name__, arrays)
        return ["object", [kind.__module__, kind.__qualname__, attributes]]
    expected = "plain values, arrays, optimizers, schedulers, and lists, tuples, dicts of them"
    raise ParamError(complaint("get_states", where, expected, f"a {type(x).__name__}"))


def _read(data: bytes) -> Any:
    start = len(MAGIC) + _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, len(MAGIC))
    records, _ = serialize.read(data[start + length :])
    return _made(json.loads(data[start : start + length]), records)


def _made(x: Any, records: list[Any]) -> Any:
    if not isinstance(x, list):
        return x
    kind, what = x
    if kind in ("array", "numpy"):
        return array_of(records[what]) if kind == "array" else records[what]
    if kind == "dict":
        return {key: _made(value, records) for key, value in what}
    if kind == "object":
        module, name, attributes = what
        return _revived(_class(module, name), _made(attributes, records))
    return {"list": list, "tuple": tuple}[kind](_made(y, records) for y in what)


def _class(module: str, name: str) -> type:
    """A class of optimizers or schedulers that the program has; nothing is imported."""
    for kind in _subclasses(Optimizer, LRScheduler):
        if (kind.__module__, kind.__qualname__) == (module, name):
            return kind
    raise ParamError(f"there is no optimizer or scheduler {module}.{name} in this program")


def _subclasses(*kinds: type) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _subclasses(*kind.__subclasses__())


def _revived(kind: type, attributes: dict[str, Any]) -> Any:
    made = kind.__new__(kind)
    getattr(made, "__setstate__", vars(made).update)(attributes)
    return made


# --- MXNet's pickles -------------------------------------------------------------------------


class _Name(NamedTuple):
    """A name that a pickle uses, with its module's before it."""

    name: str


class _Made:
    """What a pickle would have made by calling a name."""

    def __init__(self, name: _Name, args: tuple[Any, ...]) -> None:
        self.name, self.args, self.state = name, args, None


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """Writes down what a pickle would call, and does nothing of it."""

    def find_class(self, module: str, name: str) -> _Name:
        whole = f"{module}.{name}"
        if _meaning(whole) is None:
            raise pickle.UnpicklingError(f"states have no use for {whole}")
        return _Name(whole)

    def load_call(self) -> None:
        args, name = self.stack.pop(), self.stack.pop()
        if not isinstance(name, _Name) or not isinstance(args, tuple):
            raise pickle.UnpicklingError("a call of what is no name")
        self.stack.append(_Made(name, args))

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(made, _Made):
            raise pickle.UnpicklingError("a state of what is no object")
        made.state = state

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self._enter(items[::2], items[1::2])

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._enter([key], [value])

    def _enter(self, keys: list[Any], values: list[Any]) -> None:
        table = self.stack[-1]
        if type(table) is not dict or any(type(key) not in PLAIN for key in keys):
            raise pickle.UnpicklingError("a key that is no plain value")
        table.update(zip(keys, values, strict=True))


_AS_PYTHON = """
proto frame stop none true false binint binint1 binint2 long1 long4 binfloat binbytes
short_binbytes binbytes8 binunicode short_binunicode binunicode8 empty_list empty_tuple
empty_dictionary append appends tuple tuple1 tuple2 tuple3 mark memoize binput long_binput binget
long_binget global stack_global
""".split()
_SLOW: Any = pickle._Unpickler  # type: ignore[attr-defined]
_KEPT = [getattr(_SLOW, f"load_{name}") for name in _AS_PYTHON]
_OWN = {"REDUCE": "call", "NEWOBJ": "call", "BUILD": "build"}
_OWN |= {"SETITEM": "setitem", "SETITEMS": "setitems"}
_Unpickler.dispatch = {code: load for code, load in _SLOW.dispatch.items() if load in _KEPT}
_Unpickler.dispatch |= {
    getattr(pickle, code)[0]: getattr(_Unpickler, f"load_{name}") for code, name in _OWN.items()
}


def _unpickled(data: bytes) -> Any:
    return _Meant().of(_Unpickler(io.BytesIO(data)).load())


class _Meant:
    """What a pickle means, each object once, however often it is used."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def of(self, x: Any) -> Any:
        if type(x) in PLAIN or type(x) is bytes:
            return x
        if id(x) not in self._known:
            self._known[id(x)] = None  # an object within itself: MXNet has none
            self._known[id(x)] = self._new(x)
        return self._known[id(x)]

    def _new(self, x: Any) -> Any:
        if type(x) in (list, tuple):
            return type(x)(map(self.of, x))
        if type(x) is dict:
            return {key: self.of(value) for key, value in x.items()}
        if type(x) is _Made:
            meaning = _meaning(x.name.name)
            return meaning(x.name.name, *map(self.of, x.args), self.of(x.state))
        raise pickle.UnpicklingError(f"a {type(x).__name__} by itself")


def _array(name: str, handle: None, state: dict[str, Any]) -> Any:
    """An NDArray of any storage: its state has the bytes."""
    return array_of(serialize.read_array(state["handle"]))


def _bytes(name: str, data: Any, *_: Any) -> bytes:
    """A byte array, by older protocols of a text."""
    return data if isinstance(data, bytes) else data.encode("latin-1")


def _number(name: str, *args: Any) -> Any:
    """A dtype of NumPy's, or a scalar, which is given by a dtype and bytes."""
    if name == "numpy.dtype":
        return np.dtype({"f": "f", "i": "i", "u": "u", "b": "b"}[args[0][0]] + args[0][1:])
    kind, data = args[:2]
    return np.frombuffer(data, kind, 1)[0].item()


def _object(base: type) -> Callable[..., Any]:
    """Optimizers or schedulers of MXNet's, as gnomon's of the same name."""

    def made(name: str, *rest: Any) -> Any:
        attributes = rest[-1]
        ours = [c for c in _subclasses(base) if c.__name__ == name.rpartition(".")[2]]
        kind = next(c for c in ours if c.__module__.partition(".")[0] == "gnomon")
        wanted = inspect.signature(kind.__init__).parameters.values()
        given = {
            p.name: attributes[p.name]
            for p in wanted
            if p.default is p.empty and p.name in attributes
        }
        thing = kind(**given)
        known = {k: v for k, v in attributes.items() if k in vars(thing)}
        getattr(thing, "__setstate__", vars(thing).update)(known)
        return thing

    return made


_MEANING: dict[str, Callable[..., Any]] = {
    "mxnet.ndarray": _array,
    "mxnet.numpy": _array,
    "mxnet.optimizer": _object(Optimizer),
    "mxnet.lr_scheduler": _object(LRScheduler),
    "builtins.bytearray": _bytes,
    "__builtin__.bytearray": _bytes,
    "numpy.dtype": _number,
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
}


def _meaning(name: str) -> Callable[..., Any] | None:
    """What is made of a name, or of any in its module; None where it is not for states."""
    return next((m for k, m in _MEANING.items() if f"{name}.".startswith(f"{k}.")), None)

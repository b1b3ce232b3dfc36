"""Optimizer states as bytes: the pickles of MXNet, written and read without running code of theirs.

A pickle is a program. Here it is run by Python's slow reader with the opcodes that MXNet's need,
and what it would call is only written down (`_Made`); of the names it may use each has a line in
`_MEANING`, but for optimizers and schedulers that the program itself has. What is written is the
same the other way round: objects become `_Made`, with MXNet's names for its classes.
"""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import FormatError, ParamError, complaint
from gnomon.ground.files import kind_of
from gnomon.lr_scheduler import LRScheduler
from gnomon.ndarray.api import serialize
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.files import array_of, device_of, record_of
from gnomon.optimizer.base import Optimizer

PLAIN = (bool, int, float, str, type(None))
_PROTOCOL = 4
_CLASS_OF_STORAGE = {
    "default": "mxnet.ndarray.ndarray.NDArray",
    "csr": "mxnet.ndarray.sparse.CSRNDArray",
    "row_sparse": "mxnet.ndarray.sparse.RowSparseNDArray",
}
#: MXNet's module of each of gnomon's; other optimizers are in the first one
_MODULES = {
    "gnomon.optimizer": "mxnet.optimizer.optimizer",
    "gnomon.optimizer.contrib": "mxnet.optimizer.contrib",
    "gnomon.lr_scheduler": "mxnet.lr_scheduler",
}
#: attributes that MXNet's optimizers have beside ours, by class
_MORE: dict[str, dict[str, Any]] = {
    "Optimizer": {"allow_np_array": False},
    "LARS": {"skip": 0, "last_lr": None, "cur_lr": None},
    "DCASGD": {"weight_previous": {}},
}


class _Name(NamedTuple):
    """A name that a pickle uses, with its module's."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class _Made:
    """What a pickle makes: of a class without its constructor, or by calling a name."""

    def __init__(self, name: _Name, args: tuple[Any, ...], state: Any = None) -> None:
        self.name, self.args, self.state = name, args, state


def dumps(content: Any) -> bytes:
    """`content` as bytes: plain values, arrays, optimizers, and lists, tuples and dicts of them.

    Raises:
        ParamError: something else is among it.
    """
    stream = io.BytesIO()
    _Pickler(stream, _PROTOCOL).dump(_Described().of(content, "states"))
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """What `dumps` was given, or what MXNet pickled.

    Raises:
        FormatError: the bytes are neither; no code of theirs has run.
    """
    try:
        return _Meant().of(_Unpickler(io.BytesIO(data)).load())
    except Exception as error:  # what is damaged may fail anywhere
        expected = "optimizer states of gnomon or MXNet"
        kind = "" if data.startswith(b"\x80") else kind_of(data[:16])  # states are a pickle, too
        got = f"{data[:8]!r}{kind}" if kind else f"{type(error).__name__}: {error}"
        raise FormatError(complaint("set_states", "states", expected, got)) from error


# --- writing ---------------------------------------------------------------------------------


class _Described:
    """Content as what a pickle of it makes: each dict once, as optimizers share their counts."""

    def __init__(self) -> None:
        self._dicts: dict[int, Any] = {}

    def of(self, x: Any, where: str) -> Any:
        if isinstance(x, np.generic):
            x = x.item()
        if type(x) in PLAIN:
            return x
        if isinstance(x, Array):
            raw = serialize.dumps_array(record_of(x), device_of(x))
            data = _Made(_Name("builtins", "bytearray"), (raw,))
            name = _Name(*_CLASS_OF_STORAGE[x.stype].rsplit(".", 1))
            return _Made(name, (None,), {"handle": data})
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            dtype = _Made(_Name("numpy", "dtype"), (x.dtype.newbyteorder("=").str[1:],))
            data = np.ascontiguousarray(x, x.dtype.newbyteorder("=")).tobytes()
            return _Made(_Name("numpy", "ndarray"), (x.shape, dtype, data))
        if isinstance(x, (list, tuple)):
            return type(x)([self.of(y, f"{where}[{k}]") for k, y in enumerate(x)])
        if isinstance(x, dict) and all(type(key) in PLAIN for key in x):
            if id(x) not in self._dicts:
                self._dicts[id(x)] = {k: self.of(y, f"{where}[{k!r}]") for k, y in x.items()}
            return self._dicts[id(x)]
        if isinstance(x, (Optimizer, LRScheduler)):
            return self._object(x)
        expected = "plain values, arrays, optimizers, schedulers, and lists, tuples, dicts of them"
        raise ParamError(complaint("get_states", where, expected, f"a {type(x).__name__}"))

    def _object(self, x: Any) -> _Made:
        """An optimizer or a scheduler: its class under the name it has in MXNet, its attributes."""
        kind = type(x)
        own = dict(x.__getstate__())
        if isinstance(x, Optimizer):
            own.setdefault("aggregate_num", x.aggregate_num)
        found = self.of(own, kind.__name__)
        for base in kind.__mro__:
            found = {**_MORE.get(base.__name__, {}), **found}
        module = _MODULES.get(kind.__module__, kind.__module__)
        if module.startswith("gnomon."):
            module = _MODULES["gnomon.optimizer"]
        return _Made(_Name(module, kind.__qualname__), (), found)


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes plain values, lists, tuples, dicts and `_Made`, which are all there is."""

    def save_name(self, name: _Name) -> None:
        self.save(name.module)
        self.save(name.name)
        self.write(pickle.STACK_GLOBAL)

    def save_made(self, made: _Made) -> None:
        self.save(made.name)
        self.save(made.args)
        self.write(pickle.REDUCE if made.args else pickle.NEWOBJ)
        self.memoize(made)
        if made.state is not None:
            self.save(made.state)
            self.write(pickle.BUILD)


_Pickler.dispatch = {**_Pickler.dispatch, _Name: _Pickler.save_name, _Made: _Pickler.save_made}


def _class(module: str, name: str) -> type | None:
    """A class of optimizers or schedulers that the program has; nothing is imported."""
    for kind in _subclasses(Optimizer, LRScheduler):
        if (kind.__module__, kind.__qualname__) == (module, name):
            return kind
    return None


def _subclasses(*kinds: type) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _subclasses(*kind.__subclasses__())


# --- reading ---------------------------------------------------------------------------------


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """Writes down what a pickle would call, and does nothing of it."""

    def find_class(self, module: str, name: str) -> _Name:
        found = _Name(module, name)
        if _meaning(found) is None:
            raise pickle.UnpicklingError(f"states have no use for {found}")
        return found

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
            meaning: Any = _meaning(x.name)
            return meaning(x.name, *map(self.of, x.args), self.of(x.state))
        raise pickle.UnpicklingError(f"a {type(x).__name__} by itself")


def _array(name: _Name, handle: None, state: dict[str, Any]) -> Any:
    """An NDArray of any storage: its state has the bytes."""
    return array_of(*serialize.read_array(state["handle"]))


def _bytes(name: _Name, data: Any, *_: Any) -> bytes:
    """A byte array, by older protocols of a text."""
    return data if isinstance(data, bytes) else data.encode("latin-1")


def _number(name: _Name, *args: Any) -> Any:
    """A dtype of NumPy's, or a scalar, which is given by a dtype and bytes."""
    if name.name == "dtype":
        return np.dtype({"f": "f", "i": "i", "u": "u", "b": "b"}[args[0][0]] + args[0][1:])
    kind, data = args[:2]
    return np.frombuffer(data, kind, 1)[0].item()


def _numpy(name: _Name, shape: tuple[int, ...], kind: Any, data: bytes, _: None) -> Any:
    """An array of NumPy's."""
    return np.frombuffer(data, np.dtype(kind)).reshape(shape).copy()


def _object(base: type) -> Callable[..., Any]:
    """Optimizers or schedulers of MXNet's, as gnomon's of the same name."""

    def made(name: _Name, *rest: Any) -> Any:
        attributes = rest[-1]
        ours = [c for c in _subclasses(base) if c.__name__ == name.name]
        kind = next(c for c in ours if c.__module__.partition(".")[0] == "gnomon")
        wanted = inspect.signature(kind.__init__).parameters.values()
        given = {
            p.name: attributes[p.name]
            for p in wanted
            if p.default is p.empty and p.name in attributes
        }
        thing = kind(**given)
        return _with(thing, {k: v for k, v in attributes.items() if k in vars(thing)})

    return made


def _own(name: _Name, *rest: Any) -> Any:
    """An optimizer or a scheduler of the program's, with its attributes."""
    kind: Any = _class(*name)
    return _with(kind.__new__(kind), rest[-1])


def _with(thing: Any, attributes: dict[str, Any]) -> Any:
    getattr(thing, "__setstate__", vars(thing).update)(attributes)
    return thing


_MEANING: dict[str, Callable[..., Any]] = {
    "mxnet.ndarray": _array,
    "mxnet.numpy": _array,
    "mxnet.optimizer": _object(Optimizer),
    "mxnet.lr_scheduler": _object(LRScheduler),
    "builtins.bytearray": _bytes,
    "__builtin__.bytearray": _bytes,
    "numpy.dtype": _number,
    "numpy.ndarray": _numpy,
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
}


def _meaning(name: _Name) -> Callable[..., Any] | None:
    """What is made of a name, or of any in its module; None where it is not for states."""
    if name.module.partition(".")[0] != "gnomon" and _class(*name):
        return _own
    return next((m for k, m in _MEANING.items() if f"{name}.".startswith(f"{k}.")), None)

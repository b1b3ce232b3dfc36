"""oneDNN's C interface: the library, memory descriptors, primitives; every handle has an owner.

The library runs on one thread here: primitives are made and executed under an OpenMP thread count
of 1, and the pool of gnomon shares the work (see phases.py). It is loaded when first asked for.

Its functions keep the interpreter's lock: no other thread forks while one makes a primitive, so
that a child never finds the library's own locks taken by a thread that it does not have.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec
from weakref import WeakValueDictionary

from gnomon import config
from gnomon import dtype as dtypes
from gnomon.base import DeviceError, GnomonError, Later
from gnomon.dtype import DType
from gnomon.ground.lock import first_use
from gnomon.runtime.once import once

if TYPE_CHECKING:
    from importlib import metadata
else:  # 10 ms, not for every program
    metadata = Later("importlib.metadata")

_PACKAGE = "onednn-cpu-gomp"
_OPENMP = 2
_TYPE = {dtypes.float16: 1, dtypes.bfloat16: 2, dtypes.float32: 3}
_ANY = 1
_CPU = 1
_IN_ORDER = 1
_SCRATCHPAD_BY_USER = 1
_LINEAR = 0x26
_Dims = ctypes.c_int64 * 12
P = ParamSpec("P")

LATEST = 128  # primitives that are kept for steps made later
_HELD = {"reorder": 9, "sum": 9, "pooling": 75, "matmul": 120}  # KB, half of it code
_USUAL = 45  # of others

STATUS = (
    "success", "out of memory", "invalid arguments", "unimplemented", "last implementation reached",
    "runtime error", "not required", "invalid graph", "invalid graph operation", "invalid shape",
    "invalid data type",
)  # fmt: skip

# the number of an operand as argument of an execution, and in a query of a descriptor
ARGUMENT = {"src": 1, "dst": 17, "weights": 33, "bias": 41, "workspace": 64, "scratchpad": 80,
            "diff_src": 129, "diff_dst": 145, "diff_weights": 161, "diff_bias": 169}  # fmt: skip
_QUERY = {"src": 129, "diff_src": 130, "weights": 131, "diff_weights": 132, "dst": 133,
          "diff_dst": 134, "workspace": 135, "scratchpad": 136}  # fmt: skip
_QUERY_NAME, _QUERY_AXES = 8, 256


class Library:
    """The loaded library, an engine and a stream for the processor."""

    def __init__(self, dnnl: ctypes.CDLL, gomp: ctypes.CDLL) -> None:
        self.dnnl, self.gomp = dnnl, gomp
        dnnl.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        dnnl.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        dnnl.dnnl_set_primitive_cache_capacity(0)  # or what is dropped here would stay there
        self.engine = _new(dnnl.dnnl_engine_create, _CPU, ctypes.c_size_t(0))
        self.stream = _new(dnnl.dnnl_stream_create, self.engine, _IN_ORDER)


class _Version(ctypes.Structure):
    _fields_ = [("numbers", ctypes.c_int * 3), ("hash", ctypes.c_char_p),
                ("runtimes", ctypes.c_uint * 2)]  # fmt: skip


class Unsupported(GnomonError):
    """oneDNN does not do this."""


def _check(status: int) -> None:
    if status:
        word = STATUS[status] if status < len(STATUS) else str(status)
        raise Unsupported(f"oneDNN: {word}")


def _new(create: Any, *arguments: Any) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _check(create(ctypes.byref(handle), *arguments))
    return handle


def why_not() -> str:
    """Why oneDNN is not used, or an empty string when it is."""
    if not config.get("onednn"):
        return "the setting 'onednn' is off"
    found = _load()
    return found if isinstance(found, str) else ""


def available() -> bool:
    """Whether oneDNN is installed with the libgomp it needs, and the setting `onednn` is on."""
    return not why_not()


def library() -> Library:
    """The library; DeviceError with the reason where it is not available."""
    found = _load()
    if isinstance(found, str):
        raise DeviceError(f"oneDNN is not available: {found}")
    return found


@once
def _load() -> Library | str:
    with first_use:
        return _loaded()


def _loaded() -> Library | str:
    try:
        gomp = ctypes.CDLL("libgomp.so.1")
    except OSError as error:
        return f"libgomp is missing ({error})"
    try:
        dnnl = ctypes.PyDLL(_file())  # see above: the interpreter's lock is kept
    except OSError as error:
        return f"the library of package {_PACKAGE} cannot be loaded ({error})"
    dnnl.dnnl_version.restype = ctypes.POINTER(_Version)
    version = dnnl.dnnl_version().contents
    if version.numbers[0] != 3 or version.runtimes[0] != _OPENMP:
        return f"version {list(version.numbers)}, runtime {version.runtimes[0]}: expected 3, OpenMP"
    return Library(dnnl, gomp)


def _file() -> str:
    """The path of the wheel's library, or the name of the system's."""
    name = "libdnnl.so.3"
    usual = Path(sys.prefix, "lib", name)  # where wheels put it, unless told otherwise
    if usual.exists():
        return str(usual)
    try:
        inside = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return name
    return next((str(f.locate()) for f in inside if f.name == name), name)


@contextmanager
def one_thread() -> Iterator[Library]:
    """A scope in which oneDNN, called from this thread, counts on one OpenMP thread."""
    found = library()
    before = found.gomp.omp_get_max_threads()
    found.gomp.omp_set_num_threads(1)
    try:
        yield found
    finally:
        found.gomp.omp_set_num_threads(before)


class Owned:
    """A handle that is destroyed with its object."""

    __slots__ = ("_destroy", "handle")

    def __init__(self, handle: ctypes.c_void_p, destroy: Any) -> None:
        self.handle = handle
        self._destroy = destroy

    @property
    def address(self) -> int:
        """The handle as an integer."""
        return self.handle.value or 0

    def __del__(self) -> None:
        if hasattr(self, "_destroy"):  # or an interrupt came before it was there
            self._destroy(self.handle)


class Description(Owned):
    """A memory descriptor: dimensions, type and layout of an operand; the same one for ever."""

    __slots__ = ("_equal", "nbytes")

    def __init__(self, handle: ctypes.c_void_p) -> None:
        dnnl = library().dnnl
        self._equal = dnnl.dnnl_memory_desc_equal
        super().__init__(handle, dnnl.dnnl_memory_desc_destroy)
        self.nbytes: int = dnnl.dnnl_memory_desc_get_size(handle)

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def plain(
        shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType = dtypes.float32
    ) -> Description:
        """Elements of `dtype` with these strides, in elements."""
        create = library().dnnl.dnnl_memory_desc_create_with_strides
        made = _new(create, len(shape), _Dims(*shape), _TYPE[dtype], _Dims(*strides))
        return Description(made)

    @classmethod
    def open(cls, shape: Sequence[int]) -> Description:
        """float32 in the layout that a primitive chooses."""
        create = library().dnnl.dnnl_memory_desc_create_with_tag
        return cls(_new(create, len(shape), _Dims(*shape), _TYPE[dtypes.float32], _ANY))

    @classmethod
    def borrowed(cls, address: int) -> Description:
        """A copy of a descriptor that a primitive owns."""
        create = library().dnnl.dnnl_memory_desc_clone
        return cls(_new(create, ctypes.c_void_p(address)))

    def part(self, shape: Sequence[int], start: Sequence[int]) -> Description:
        """A block of this operand; Unsupported where the layout has no such block."""
        create = library().dnnl.dnnl_memory_desc_create_submemory
        return Description(_new(create, self.handle, _Dims(*shape), _Dims(*start)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        dnnl, axes, dims = library().dnnl, ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
        dnnl.dnnl_memory_desc_query(self.handle, _QUERY_AXES, ctypes.byref(axes))
        dnnl.dnnl_memory_desc_query(self.handle, _QUERY_AXES + 1, ctypes.byref(dims))
        return tuple(dims[: axes.value])

    def __eq__(self, other: object) -> bool:
        # without names of this module, which are gone where primitives go as Python ends
        if type(other) is not type(self):
            return NotImplemented
        return self is other or bool(self._equal(self.handle, other.handle))

    def __hash__(self) -> int:
        return hash(self.nbytes)


class Operands(dict[str, Description]):
    """The descriptors of a primitive's operands by name, each asked for once."""

    def __init__(self, owner: Owned) -> None:
        self._owner = owner

    def __missing__(self, name: str) -> Description:
        query = library().dnnl.dnnl_primitive_desc_query_md
        found = query(self._owner.handle, _QUERY[name], 0)
        if not found:
            raise KeyError(name)
        self[name] = Description.borrowed(found)
        return self[name]


class Primitive:
    """A computation: its implementation's name and its operands' descriptors.

    `held` is about how many bytes the library keeps for it.

    Its code, which takes up to a millisecond, is made when its address is first asked for. Where
    two threads ask together, the later one's is dropped before it is seen: both execute the same.
    """

    __slots__ = ("__weakref__", "_code", "_description", "held", "name", "operands")

    def __init__(self, description: Owned, kind: str = "") -> None:
        self.held = _HELD.get(kind, _USUAL) << 10
        self._description = description
        self._code: dict[str, Owned] = {}
        name = ctypes.c_char_p()
        query = library().dnnl.dnnl_primitive_desc_query
        query(description.handle, _QUERY_NAME, 0, ctypes.byref(name))
        self.name = (name.value or b"").decode()
        self.operands = Operands(description)

    @property
    def address(self) -> int:
        """What executes it; the same address as long as the primitive lives."""
        if "made" not in self._code:
            with one_thread() as found:
                create = found.dnnl.dnnl_primitive_create
                made = _new(create, self._description.handle)
                self._code.setdefault("made", Owned(made, found.dnnl.dnnl_primitive_destroy))
        return self._code["made"].address

    @property
    def scratch(self) -> Description | None:
        """The scratch memory that an execution wants."""
        try:
            found = self.operands["scratchpad"]
        except KeyError:
            return None
        return found if found.nbytes else None


def primitive(create: str, *arguments: Any) -> Primitive:
    """The primitive that `describe` with these arguments describes."""
    return Primitive(describe(create, *arguments), create.split("_")[1])


_latest: deque[Primitive] = deque(maxlen=LATEST)


def kept(make: Callable[P, Primitive]) -> Callable[P, Primitive]:
    """A function that gives the primitive which `make` made before, as long as a step owns that, or
    it is one of the `LATEST` of all such functions."""
    made: WeakValueDictionary[Hashable, Primitive] = WeakValueDictionary()

    @functools.wraps(make)
    def found(*given: P.args, **named: P.kwargs) -> Primitive:
        key = given, *named.items()
        one = made.get(key)
        if one is None:
            one = made[key] = make(*given, **named)
            _latest.append(one)
        return one

    return found


@functools.lru_cache(maxsize=256)
def attributes(alpha: float = 1.0, beta: float = 0.0) -> Owned:
    """Attributes of a primitive: scratch memory is given by the caller; the result is `alpha` times
    what it computes plus `beta` times what was in the destination."""
    dnnl = library().dnnl
    made = Owned(_new(dnnl.dnnl_primitive_attr_create), dnnl.dnnl_primitive_attr_destroy)
    _check(dnnl.dnnl_primitive_attr_set_scratchpad_mode(made.handle, _SCRATCHPAD_BY_USER))
    if alpha != 1 or beta:
        after = Owned(_new(dnnl.dnnl_post_ops_create), dnnl.dnnl_post_ops_destroy)
        zero = ctypes.c_float(0)
        if alpha != 1:
            scale = ctypes.c_float(alpha)
            _check(dnnl.dnnl_post_ops_append_eltwise(after.handle, _LINEAR, scale, zero))
        if beta:
            scale = ctypes.c_float(beta)
            _check(dnnl.dnnl_post_ops_append_sum(after.handle, scale, 0, 0))
        _check(dnnl.dnnl_primitive_attr_set_post_ops(made.handle, after.handle))
    return made


def describe(create: str, *arguments: Any) -> Owned:
    """A primitive's descriptor by the library's function `create`; Unsupported where it has none.

    Sequences of integers become dimension arrays, `Owned` objects their handles.
    """
    dnnl = library().dnnl
    made = _new(getattr(dnnl, create), *(_argument(a) for a in arguments))
    return Owned(made, dnnl.dnnl_primitive_desc_destroy)


def _argument(value: Any) -> Any:
    if isinstance(value, Owned):
        return value.handle
    return _Dims(*value) if isinstance(value, tuple) else value


@kept
def reorder(source: Description, dest: Description) -> Primitive:
    """The copy from one layout to another."""
    with one_thread() as found:
        engine = found.engine
        name = "dnnl_reorder_primitive_desc_create"
        return primitive(name, source, engine, dest, engine, attributes())


def memory(description: Description) -> Owned:
    """A memory object without an address yet."""
    found = library()
    made = _new(found.dnnl.dnnl_memory_create, description.handle, found.engine, None)
    return Owned(made, found.dnnl.dnnl_memory_destroy)


@kept
def total(elements: int, terms: int) -> Primitive:
    """The sum of `terms` rows of as many elements."""
    flat = Description.plain((elements,), (1,))
    scales = (ctypes.c_float * terms)(*[1.0] * terms)
    sources = (ctypes.c_void_p * terms)(*[flat.address] * terms)
    with one_thread() as found:
        create = "dnnl_sum_primitive_desc_create"
        return primitive(create, found.engine, flat, terms, scales, sources, attributes())

"""`mx.util`: scopes of NumPy's meaning of shapes, environment variables, facts about devices."""

from __future__ import annotations

import functools
import inspect
import operator
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from gnomon import config
from gnomon.base import GnomonError, complaint
from gnomon.context import Context, gpu_memory_info, num_gpus

T = TypeVar("T")


def is_np_shape() -> bool:
    """Whether `()` and sizes of 0 mean what they mean in NumPy, and -1 a size that is not known.

    Off by default: there, `()` and 0 are what is not known yet.
    """
    return bool(config.get("np_shape"))


def set_np_shape(active: bool) -> bool:
    """Switch NumPy's meaning of shapes on or off for the process; gives what it was before.

    Raises:
        TypeError: `active` is neither a truth value nor an integer.
    """
    before = is_np_shape()
    config.set("np_shape", bool(operator.index(active)))
    return before


@contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """A scope in which this thread takes shapes as NumPy does, or does not.

    >>> with np_shape():
    ...     is_np_shape()
    True
    """
    with config.using(np_shape=bool(active)):
        yield


def use_np_shape(func: T) -> T:
    """A function, or a class with all its methods and properties, that runs within `np_shape()`.

    >>> use_np_shape(is_np_shape)()
    True

    Raises:
        TypeError: `func` is neither.
    """
    if inspect.isclass(func):
        return _each_method(func, use_np_shape)  # type: ignore[no-any-return]
    if not callable(func):
        raise TypeError(complaint("use_np_shape", "func", "a function or class", repr(func)))

    @functools.wraps(func)
    def within(*args: Any, **kwargs: Any) -> Any:
        with np_shape():
            return func(*args, **kwargs)

    return within  # type: ignore[return-value]


def _each_method(cls: Any, wrap: Callable[[Any], Any]) -> Any:
    """`cls`, whose own methods and properties are wrapped."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member):
            setattr(cls, name, wrap(member))
        elif isinstance(member, property):
            get, put, drop = (p and wrap(p) for p in (member.fget, member.fset, member.fdel))
            setattr(cls, name, property(get, put, drop, member.__doc__))
    return cls


def is_np_array() -> bool:
    """Whether layers make arrays of `mx.np`: never, gnomon has none."""
    return False


@contextmanager
def np_array(active: bool = True) -> Iterator[None]:
    """A scope in which layers make arrays of `mx.np`, if `active`; gnomon has none.

    Raises:
        GnomonError: `active` is true.
    """
    _no_np(active, "np_array")
    yield


def use_np_array(func: T) -> T:
    """Refused: there are no arrays of `mx.np`."""
    _no_np(True, "use_np_array")
    return func


def use_np(func: T) -> T:
    """Refused: there are no arrays of `mx.np`; `use_np_shape` gives NumPy's shapes."""
    _no_np(True, "use_np")
    return func


def set_np(shape: bool = True, array: bool = True) -> None:
    """`set_np_shape(shape)`; arrays of `mx.np` are refused.

    Raises:
        GnomonError: `array` is true.
    """
    _no_np(array, "set_np")
    set_np_shape(shape)


def reset_np() -> None:
    """Shapes mean what they mean by default."""
    set_np(shape=False, array=False)


def _no_np(active: bool, where: str) -> None:
    if active:
        expected = "False: mx.np is out of gnomon's scope, mx.nd has the same operators"
        raise GnomonError(complaint(where, "array", expected, active))


def set_module(module: str | None) -> Callable[[T], T]:
    """A decorator that sets where a function or class says that it is defined."""

    def enter(func: T) -> T:
        if module is not None:
            func.__module__ = module
        return func

    return enter


def getenv(name: str) -> str | None:
    """The environment variable `name`, None where there is none."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or remove it where `value` is None.

    gnomon reads its settings' variables once, when each is first needed.
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """How many GPUs gnomon computes on."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free and total bytes of a GPU; DeviceError where there is none."""
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int | None:
    """The architecture of a GPU, as 90 for 9.0; None for the processor.

    Raises:
        DeviceError: `ctx` is a GPU that is not there.
    """
    if ctx.device_type == "gpu":
        gpu_memory_info(ctx.device_id)
    return None


#: keyword arguments of NumPy's functions that are taken with these values alone
_USUAL = {
    "where": (True,),
    "casting": ("same_kind",),
    "order": ("K",),
    "dtype": (),
    "subok": (True,),
}


def wrap_np_unary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one array that takes NumPy's keyword arguments, with their usual values.

    >>> wrap_np_unary_func(lambda x, out=None: x + 1)(2, where=True, order="K")
    3

    Raises:
        NotImplementedError: another value, when it is called.
        TypeError: another keyword, when it is called.
    """
    return _with_numpys_keywords(func)


def wrap_np_binary_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """As `wrap_np_unary_func`, for a function of two arrays."""
    return _with_numpys_keywords(func)


def _with_numpys_keywords(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapped(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        for name, value in kwargs.items():
            if name not in _USUAL:
                raise TypeError(f"{name} is an invalid keyword to function {func.__name__!r}")
            if value not in _USUAL[name]:
                raise NotImplementedError(f"{name}={value} is not implemented yet")
        return func(*args, out=out)

    return wrapped

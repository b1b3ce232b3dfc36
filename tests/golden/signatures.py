"""Names and parameters of Gluon, older layers and helpers, read off MXNet or gnomon alike.

`described(mx)` gives three tables. `names`: module -> the public names in it. `parameters`: module
-> function, or class and method -> the parameters that may be given by position, each `[name]` or
`[name, default]` where the default is plain. `aliases`: class of blocks -> what their names begin
with.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

ROOTS = "gluon rnn module model callback monitor executor_manager".split()
#: modules of which only what they show themselves is read
FLAT = """
attribute contrib.amp contrib.autograd contrib.io contrib.svrg_optimization contrib.tensorboard
contrib.text.embedding contrib.text.utils contrib.text.vocab engine initializer libinfo log
lr_scheduler metric name optimizer random registry runtime symbol.random test_utils util
""".split()
# what MXNet's modules import for themselves, and its inner machinery of worker processes
HELPERS = frozenset(
    """
    cpu gpu num_gpus gluon_loss metric_loss is_np_array is_np_shape np_array np_shape set_np zeros
    py_str ConnectionWrapper Queue SimpleQueue fetcher_loop_v1 worker_loop_v1 rebuild_ndarray
    rebuild_np_ndarray reduce_ndarray reduce_np_ndarray Context NDArray Symbol
    c_array c_array_buf c_handle_array c_str c_str_array check_call classproperty with_metaclass
    np_symbol np_ufunc_legal_option
    """.split()
)
PLAIN = int, float, str, bool, type(None)


def modules(mx: Any) -> Iterator[str]:
    """Paths below the package, those of packages before those of what is in them."""
    yield from FLAT
    for root in ROOTS:
        module = importlib.import_module(f"{mx.__name__}.{root}")
        yield root
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
            if not found.name.rpartition(".")[2].startswith("_"):
                yield found.name.partition(".")[2]


def described(mx: Any) -> dict[str, Any]:
    """Names and parameters of all modules; those of what several modules have in the first."""
    names: dict[str, list[str]] = {}
    homes: dict[Any, tuple[str, str]] = {}  # the first module that has it, and its name there
    for path in sorted(modules(mx), key=lambda each: (each.count("."), each)):
        module = importlib.import_module(f"{mx.__name__}.{path}")
        names[path] = public(mx, module)
        for name in names[path]:
            homes.setdefault(getattr(module, name), (path, name))
    parameters: dict[str, Any] = {}
    for value, (path, name) in homes.items():
        found = functions(value)
        parameters.setdefault(path, {}).update({name + m: listed(f) for m, f in found})
    aliases = {
        f"{path}:{name}": value._alias(object.__new__(value))
        for value, (path, name) in homes.items()
        if hasattr(value, "_alias") and name != "Activation"  # that asks the object
    }
    return {"names": names, "parameters": parameters, "aliases": aliases}


def public(mx: Any, module: Any) -> list[str]:
    """Names of functions and classes of the library in a module."""

    def is_own(name: str) -> bool:
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        return (inspect.isfunction(value) or inspect.isclass(value)) and (
            home.split(".")[0] == mx.__name__
        )

    return sorted(n for n in dir(module) if n[0] != "_" and n not in HELPERS and is_own(n))


def functions(value: Any) -> Iterator[tuple[str, Any]]:
    """A function, or the methods that a class defines itself."""
    if not inspect.isclass(value):
        yield "", value
        return
    for member, function in vars(value).items():
        known = member in ("__init__", "__call__") or member[0] != "_"
        if known and inspect.isfunction(function):
            yield f".{member}", function


def listed(function: Any) -> list[list[Any]]:
    """What may be given by position; a default that is no plain value is left out."""
    given = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    every = inspect.signature(function).parameters.values()
    return [[each.name, *defaults(each.default)] for each in every if each.kind in given]


def defaults(value: Any) -> list[Any]:
    """The default in a list; of tuples of one number that number, as both mean the same."""
    if isinstance(value, tuple) and len(set(value)) == 1:
        value = value[0]
    if value is inspect.Parameter.empty or not isinstance(value, PLAIN):
        return []
    return [] if isinstance(value, str) and "/" in value else [value]

"""How a parameter's name and attributes choose its initial value.

The attribute `__init__` (JSON `["name", {arguments}]`, what `Variable(init=...)` writes, and what
operators give their auxiliary states) goes first. Without it the end of the name decides: a weight
is the initializer's own matter; biases, gammas and betas have one sensible start. A name that says
nothing is an error. A plain string, without attributes, says more by convention: moving averages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon.base import DTypeError, Later, ParamError, complaint
from gnomon.ground.arguments import CheckedArguments
from gnomon.ground.folder_registry import FolderRegistry
from gnomon.registry import class_name, enter_class, get_alias_func

if TYPE_CHECKING:
    import json
else:
    json = Later("json")

INITIALIZERS: FolderRegistry[type[Initializer]] = FolderRegistry(
    "initializer", "gnomon.initializer", ignore_case=True
)


class InitDesc(str):
    """The name of a parameter with its attributes, and the initializer of the whole model.

    >>> desc = InitDesc("fc_bias", {"__init__": '["one", {}]'})
    >>> desc, desc.attrs
    ('fc_bias', {'__init__': '["one", {}]'})
    """

    attrs: Mapping[str, str]
    global_init: Initializer | None

    def __new__(
        cls,
        name: str,
        attrs: Mapping[str, str] | None = None,
        global_init: Initializer | None = None,
    ) -> InitDesc:
        """Describe the parameter `name`."""
        self = super().__new__(cls, name)
        self.attrs = attrs or {}
        self.global_init = global_init
        return self


# End of a parameter's name -> the method that fills it; the first that fits.
_BY_SUFFIX = {
    "weight": "_init_weight",
    "bias": "_init_bias",
    "gamma": "_init_gamma",
    "beta": "_init_beta",
    "min": "_init_zero",
    "max": "_init_one",
}
_BY_SUFFIX_OF_PLAIN_NAMES = {
    **_BY_SUFFIX,
    "moving_mean": "_init_zero",
    "moving_var": "_init_one",
    "moving_inv_var": "_init_zero",
    "moving_avg": "_init_zero",
}


class Initializer(CheckedArguments):
    """Base of initializers: called with a parameter's name and its array, it fills the array.

    A subclass says how by `_init_weight(name, array)`. Its arguments go to this constructor by
    name, so that `dumps` can write them down.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[Any], str] = _magnitude

    def set_verbosity(
        self, verbose: bool = False, print_func: Callable[[Any], str] | None = None
    ) -> Initializer:
        """Log every array that is filled, by `print_func(array)` or by its root mean square."""
        self._verbose = verbose
        self._print_func = print_func or _magnitude
        return self

    def dumps(self) -> str:
        """JSON that `create` makes the same initializer of.

        >>> from gnomon.initializer import Xavier
        >>> Xavier(magnitude=2).dumps()
        '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 2}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        """Whether they are of one class, whose constructors handed the same keywords on."""
        if not isinstance(other, Initializer) or type(self) is not type(other):
            return False
        mine, theirs = self._kwargs, other._kwargs
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[k], theirs[k]) for k in mine
        )

    def __hash__(self) -> int:
        return hash(type(self))

    def __call__(self, desc: str, arr: Any) -> None:
        """Fill `arr`, which belongs to the parameter `desc` (a plain name, or an InitDesc).

        Raises:
            ParamError: the name says nothing and there is no `__init__` attribute.
        """
        if not isinstance(desc, str):
            got = type(desc).__name__
            raise DTypeError(complaint("Initializer", "desc", "a name or an InitDesc", got))
        described = isinstance(desc, InitDesc)
        if described and desc.global_init is None:
            desc.global_init = self
        stated = desc.attrs.get("__init__") if described else None
        if stated:
            create(stated)._init_weight(desc, arr)
            self._log(desc, stated, arr)
            return
        method = self._chosen(desc, arr)
        method(desc, arr)
        self._log(desc, type(self).__name__, arr)

    def _chosen(self, name: str, arr: Any) -> Callable[[str, Any], None]:
        plain = not isinstance(name, InitDesc)
        if plain and name.startswith("stn_loc"):
            return self._init_zero if name.endswith("weight") else self._init_loc_bias
        if plain and name.startswith("upsampling"):
            return self._init_bilinear
        table = _BY_SUFFIX_OF_PLAIN_NAMES if plain else _BY_SUFFIX
        for suffix, method in table.items():
            if name.endswith(suffix):
                chosen: Callable[[str, Any], None] = getattr(self, method)
                return chosen
        return self._init_default

    def _log(self, desc: str, how: str, arr: Any) -> None:
        if self._verbose:
            logging.info("Initialized %s as %s: %s", desc, how, self._print_func(arr))

    def _init_weight(self, name: str, arr: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _init_weight(name, array)")

    def _init_bias(self, _: str, arr: Any) -> None:
        arr[:] = 0.0

    def _init_gamma(self, _: str, arr: Any) -> None:
        arr[:] = 1.0

    def _init_beta(self, _: str, arr: Any) -> None:
        arr[:] = 0.0

    def _init_zero(self, _: str, arr: Any) -> None:
        arr[:] = 0.0

    def _init_one(self, _: str, arr: Any) -> None:
        arr[:] = 1.0

    def _init_loc_bias(self, name: str, arr: Any) -> None:
        if tuple(arr.shape) != (6,):
            raise ParamError(complaint("Initializer", name, "shape (6,)", arr.shape))
        arr[:] = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])

    def _init_bilinear(self, name: str, arr: Any) -> None:
        create("bilinear")._init_weight(name, arr)

    def _init_default(self, name: str, _: Any) -> None:
        endings = ", ".join(_BY_SUFFIX)
        raise ParamError(
            f"Initializer: the name {name!r} does not say how to start: expected one that ends in "
            f"{endings}, or Variable({name!r}, init=...)"
        )


def _magnitude(arr: Any) -> str:
    return f"{np.sqrt(np.square(arr.asnumpy()).mean()):g}"


def register(klass: type[Initializer], *aliases: str) -> type[Initializer]:
    """Make an initializer class known to `create` by its lower-case name; a decorator."""
    name = class_name("initializer.register", klass)
    return enter_class(INITIALIZERS, name, klass, aliases)


def create(spec: Any, **kwargs: Any) -> Any:
    """An initializer from its name with arguments, from JSON of `dumps`, or `spec` itself.

    >>> create('["constant", {"value": 2}]').value, create("xavier", magnitude=2).magnitude
    (2, 2.0)
    """
    return INITIALIZERS.create(spec, **kwargs)


INITIALIZERS.serves(Initializer)
alias = get_alias_func(Initializer, "initializer")

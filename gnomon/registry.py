"""Tables from names to things, with aliases and errors that name what was meant.

`Registry` is what gnomon's own tables are. The four `get_...` functions are MXNet's `mx.registry`:
they make the table of a class of the program's own, or give that of one of gnomon's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, ItemsView, Iterator, KeysView
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gnomon.base import Later, ParamError, UnknownNameError, check_kind, complaint, nearest

if TYPE_CHECKING:
    import json
else:
    json = Later("json")

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Generic[T]):
    """Things of one `kind` by name; `ignore_case` where users may write names either way.

    >>> shapes = Registry("shape")
    >>> shapes.register("circle", complex, aliases=("disc",)) is shapes.get("disc")
    True
    >>> shapes.create('["circle", {"real": 1}]')
    (1+0j)
    >>> shapes.get("circel")
    Traceback (most recent call last):
        ...
    gnomon.base.UnknownNameError: shape 'circel' is not registered; did you mean 'circle'?
    """

    def __init__(self, kind: str, *, ignore_case: bool = False) -> None:
        self.kind = kind
        self._fold = str.lower if ignore_case else str
        self._things: dict[str, T] = {}
        self._names: list[str] = []

    def register(
        self, name: str, thing: T, aliases: tuple[str, ...] = (), *, replace: bool = False
    ) -> T:
        """Enter `thing` under `name` and `aliases`, and give it back.

        Raises:
            ParamError: another thing has one of the names, and `replace` is false.
        """
        for known in (name, *aliases):
            if self.other(known, thing) is not None and not replace:
                raise ParamError(f"{self.kind} {known!r} is registered already")
        for known in (name, *aliases):
            self._things[self._fold(known)] = thing
        if name not in self._names:
            self._names.append(name)
        return thing

    def other(self, name: str, thing: T) -> T | None:
        """What else than `thing` has been registered under a name."""
        found = self._things.get(self._fold(name))
        return None if found is thing else found

    def get(self, name: str) -> T:
        """The thing called `name`.

        Raises:
            UnknownNameError: there is none; the message has the nearest names.
            TypeError: `name` is no string.
        """
        check_kind(self.kind, "name", name, str, "a string")
        if name in self:
            return self._things[self._fold(name)]
        hint = nearest(name, self._things)
        raise UnknownNameError(f"{self.kind} {name!r} is not registered{hint}")

    def names(self) -> list[str]:
        """The registered names without their aliases, in order of registration."""
        self._look_for(None)
        return list(self._names)

    def table(self) -> dict[str, T]:
        """Every name and alias, as they are looked up, with its thing."""
        return dict(self.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __getitem__(self, name: str) -> T:
        self._look_for(name)
        return self._things[self._fold(name)]

    def keys(self) -> KeysView[str]:
        """Every name and alias, as they are looked up."""
        self._look_for(None)
        return self._things.keys()

    def items(self) -> ItemsView[str, T]:
        """Every name and alias with its thing."""
        self._look_for(None)
        return self._things.items()

    def serves(self, base: type) -> None:
        """Be the table that `get_registry(base)` shows."""
        _BY_CLASS[base] = self

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        self._look_for(name)
        return self._fold(name) in self._things

    def _look_for(self, name: str | None) -> None:
        """Have what is called so registered, or with None everything, where that is to come yet."""

    def create(self, spec: Any, **kwargs: Any) -> Any:
        """An instance: of the name `spec`, of JSON `["name", {kwargs}]`, or `spec` itself.

        Raises:
            ParamError: JSON of another form, or arguments beside a finished instance.
            UnknownNameError: the name is not registered.
        """
        if not isinstance(spec, str):
            if kwargs:
                got = f"{spec!r} beside {', '.join(kwargs)}"
                raise ParamError(complaint(self.kind, "spec", "a name to take arguments", got))
            return spec
        name = spec
        if spec.startswith("["):
            name, kwargs = self._parse(spec, kwargs)
        thing: Any = self.get(name)
        return thing(**kwargs)

    def _parse(self, spec: str, kwargs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The name and the arguments in the JSON text `spec`; `kwargs` go above its own."""
        try:
            name, *rest = json.loads(spec)
            own: dict[str, Any] = dict(*rest)
            if isinstance(name, str):
                return name, {**own, **kwargs}
        except (ValueError, TypeError):
            pass
        expected = 'JSON ["name", {arguments}]'
        raise ParamError(complaint(self.kind, "spec", expected, repr(spec)))


_BY_CLASS: dict[type, Registry[Any]] = {}


def class_name(where: str, klass: Any) -> str:
    """The name that a class is registered by, in lower case; TypeError where it is no class."""
    check_kind(where, "klass", klass, type, "a class")
    name: str = klass.__name__.lower()
    return name


def enter_class(
    table: Registry[Any], name: str, klass: C, aliases: tuple[str, ...] = (), stacklevel: int = 3
) -> C:
    """Register a class of the program's own; a warning where another one had one of the names."""
    for known in (name, *aliases):
        before = table.other(known, klass)
        if before is not None:
            text = f"{table.kind} {known!r} was {before}, now it is {klass}"
            warnings.warn(text, stacklevel=stacklevel)
    table.register(name, klass, aliases, replace=True)
    return klass


def get_registry(base_class: type) -> dict[str, Any]:
    """The subclasses of `base_class` by the names they are registered under."""
    return _BY_CLASS[base_class].table() if base_class in _BY_CLASS else {}


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers subclasses of `base_class` by their lower-case name.

    >>> class Shape: ...
    >>> register = get_register_func(Shape, "shape")
    >>> @register
    ... class Circle(Shape): ...
    >>> get_registry(Shape)
    {'circle': <class 'gnomon.registry.Circle'>}
    """
    return lambda klass, name=None: _enter(base_class, nickname, klass, name)


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers subclasses of `base_class` under the names it is given."""

    def alias(*names: str) -> Callable[[type], type]:
        def enter(klass: type) -> type:
            for name in names:
                _enter(base_class, nickname, klass, name)
            return klass

        return enter

    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that makes an instance of a registered subclass of `base_class`.

    It takes a name and arguments, an instance (given back), a dictionary or JSON
    `{"NICKNAME": name, ...}`, or JSON `["name", {arguments}]`.
    """

    def create(*args: Any, **kwargs: Any) -> Any:
        name, *rest = args or (kwargs.pop(nickname, None),)
        if isinstance(name, str) and name.startswith("{"):
            name = json.loads(name)
        if isinstance(name, dict):
            return create(*rest, **{**name, **kwargs})
        if not isinstance(name, (str, base_class)):
            expected = f"a name, a mapping or a {base_class.__name__}"
            raise ParamError(complaint(f"{nickname}.create", nickname, expected, repr(name)))
        table = _table(base_class, nickname)
        if isinstance(name, str) and rest:
            return table.get(name)(*rest, **kwargs)
        if rest:
            raise ParamError(
                complaint(f"{nickname}.create", nickname, "a name to take arguments", repr(name))
            )
        return table.create(name, **kwargs)

    return create


def _table(base_class: type, nickname: str) -> Registry[Any]:
    return _BY_CLASS.setdefault(base_class, Registry(nickname, ignore_case=True))


def _enter(base_class: type, nickname: str, klass: type, name: str | None) -> type:
    if not (isinstance(klass, type) and issubclass(klass, base_class)):
        expected = f"a subclass of {base_class.__name__}"
        raise ParamError(complaint(f"{nickname}.register", "klass", expected, repr(klass)))
    name = name or klass.__name__
    return enter_class(_table(base_class, nickname), name, klass, stacklevel=4)

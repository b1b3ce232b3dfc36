"""A table from names to things, with aliases and errors that name what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gnomon.base import Later, ParamError, UnknownNameError, complaint, nearest

if TYPE_CHECKING:
    import json
else:
    json = Later("json")

T = TypeVar("T")


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
            if not replace and self._things.get(self._fold(known), thing) is not thing:
                raise ParamError(f"{self.kind} {known!r} is registered already")
        for known in (name, *aliases):
            self._things[self._fold(known)] = thing
        if name not in self._names:
            self._names.append(name)
        return thing

    def get(self, name: str) -> T:
        """The thing called `name`.

        Raises:
            UnknownNameError: there is none; the message has the nearest names.
        """
        try:
            return self._things[self._fold(name)]
        except KeyError:
            hint = nearest(name, self._things)
        raise UnknownNameError(f"{self.kind} {name!r} is not registered{hint}")

    def names(self) -> list[str]:
        """The registered names without their aliases, in order of registration."""
        return list(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._fold(name) in self._things

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

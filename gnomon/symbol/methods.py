"""Operators as methods of symbols: `net.reshape((0, -1))` is `sym.reshape(net, (0, -1))`."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from gnomon.base import NotImplementedForSymbol, UnknownNameError, complaint, shown
from gnomon.symbol.apply import Composite, apply, function


class Operator:
    """A method that applies the operator of its own name, or of `alias`, with the symbol first."""

    def __init__(self, alias: str = "") -> None:
        self.alias = alias

    def __set_name__(self, owner: type, name: str) -> None:
        self.alias = self.alias or name

    def __get__(self, symbol: Any, owner: type) -> Any:
        try:
            method = _function(owner, self.alias)
        except UnknownNameError as error:
            raise AttributeError(f"{owner.__name__}: {error}") from None
        return method if symbol is None else functools.partial(method, symbol)


@functools.cache
def _function(owner: Any, alias: str) -> Any:
    return function(owner, alias, alias, "gnomon.symbol")


class Unsupported:
    """A method that only arrays have."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, symbol: Any, owner: type) -> Any:
        return functools.partial(_refuse, self.name)


def _refuse(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    text = f"Symbol.{name}: a symbol has no data; bind it, or use an NDArray"
    raise NotImplementedForSymbol(text)


class OfArrays:
    """An attribute that only arrays have, so that `hasattr` finds none."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, symbol: Any, owner: type) -> NoReturn:
        text = f"{owner.__name__!r} object has no attribute {self.name!r}, as arrays have"
        raise AttributeError(f"{text}: a symbol has no data; bind it, or do not hybridize")


class Methods(Composite):
    """The operators that symbols have as methods."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()}.difference(OF_ARRAYS))

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """The same elements in another shape: `net.reshape((0, -1))`, `net.reshape(0, -1)`."""
        if args and all(isinstance(a, int) for a in args):
            args = (args,)
        return _function(type(self), "reshape")(self, *args, **kwargs)

    # `inplace` asks arrays for a view; a symbol's result has its elements in any case

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Any:
        """The same elements with an axis of 1 at `axis`."""
        return _function(type(self), "expand_dims")(self, axis=axis, **kwargs)

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Any:
        """The same elements with all axes but the first joined."""
        return _function(type(self), "flatten")(self, **kwargs)

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Any:
        """The same elements without axes of 1."""
        return _function(type(self), "squeeze")(self, axis=axis, **kwargs)

    def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
        """Parts along `axis`: so many equal ones, or cut before each of these indices.

        Raises:
            TypeError: neither a number nor a tuple of them.
        """
        cuts = {"indices": [], "axis": axis, "squeeze_axis": squeeze_axis, "sections": 0}
        if isinstance(indices_or_sections, int):
            cuts["sections"] = indices_or_sections
        elif isinstance(indices_or_sections, (tuple, list)):
            cuts["indices"] = [0, *indices_or_sections]
        else:
            expected = "an int or a tuple of ints"
            got = shown(indices_or_sections)
            raise TypeError(complaint("split_v2", "indices_or_sections", expected, got))
        return apply(type(self), "_split_v2", "_split_v2", (self,), {}, cuts)

    # a name that Python or MXNet's signature says differently
    astype = Operator("cast")
    __bool__ = Unsupported()
    as_in_context = Unsupported()
    asnumpy = Unsupported()
    asscalar = Unsupported()
    backward = Unsupported()
    copy = Unsupported()
    detach = Unsupported()
    wait_to_read = Unsupported()


NAMES = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort
broadcast_axes broadcast_like broadcast_to cbrt ceil clip cos cosh degrees depth_to_space diag
exp expm1 fix flip floor log log10 log1p log2 log_softmax max mean min
nanprod nansum norm one_hot ones_like pad pick prod radians rcbrt reciprocal relu repeat
reshape_like rint round rsqrt shape_array sigmoid sign sin sinh size_array slice slice_axis
slice_like softmax softmin sort space_to_depth split sqrt square sum swapaxes take tan
tanh tile topk transpose trunc zeros_like
""".split()

for _name in NAMES:
    setattr(Methods, _name, Operator(_name))

OF_ARRAYS = "T attach_grad context ctx dtype grad ndim shape size stype".split()

for _name in OF_ARRAYS:
    setattr(Methods, _name, OfArrays(_name))

"""Pooling layers, and how windows and layouts are given."""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.base import ParamError, complaint, shown
from gnomon.gluon.block import HybridBlock
from gnomon.ops.fields import Field

LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def sizes(where: str, argument: str, value: Any, axes: int) -> tuple[int, ...]:
    """A number for each axis, given as one for all or one each.

    >>> sizes("Conv2D", "strides", 2, 2)
    (2, 2)

    Raises:
        ParamError: another number of them, or no integers.
    """
    found = (value,) * axes if not isinstance(value, (tuple, list)) else tuple(value)
    if len(found) != axes or not all(hasattr(n, "__index__") for n in found):
        expected = f"an integer, or {axes} of them"
        raise ParamError(complaint(where, argument, expected, shown(value)))
    return tuple(map(int, found))


def check_layout(where: str, layout: str | None, axes: int, argument: str = "layout") -> str:
    """`layout`, or the usual one; ParamError where it is none of so many axes."""
    known = LAYOUTS[axes]
    layout = known[0] if layout is None else layout
    if not isinstance(layout, str) or layout not in known:
        raise ParamError(complaint(where, argument, f"one of {', '.join(known)}", repr(layout)))
    return layout


class _Pooling(HybridBlock):
    """What pooling layers share."""

    _axes: int | None = None  # as many as the layout has where None

    _fields: ClassVar = {
        "pool_size": Field("Pooling.kernel"),
        "strides": Field("Pooling.stride", optional=True),
        "padding": Field("Pooling.pad"),
        "count_include_pad": Field("Pooling.count_include_pad"),
    }

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: Any,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str | None,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        where, axes = type(self).__name__, self._axes or len(layout or "NCHW") - 2
        window = sizes(where, "pool_size", pool_size, axes)
        self._kwargs: dict[str, Any] = {
            "kernel": window,
            "stride": window if strides is None else sizes(where, "strides", strides, axes),
            "pad": sizes(where, "padding", padding, axes),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": check_layout(where, layout, axes),
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        known = self._kwargs
        names = {"size": "kernel", "stride": "stride", "padding": "pad"}
        told = [f"{name}={known[key]}" for name, key in names.items()]
        told.append(f"ceil_mode={known['pooling_convention'] == 'full'}")
        told += [f"{key}={known[key]}" for key in ("global_pool", "pool_type", "layout")]
        return f"{type(self).__name__}({', '.join(told)})"


class _MaxPool(_Pooling):
    """What poolings by the largest element share: the order of their arguments but that of 3-D."""

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool1D(_MaxPool):
    """The largest element of each window along one axis."""

    _axes = 1


class MaxPool2D(_MaxPool):
    """The largest element of each window along two axes.

    >>> import gnomon as mx
    >>> MaxPool2D(2)(mx.nd.array([[[[1, 2], [3, 4]]]])).asnumpy()
    array([[[[4.]]]], dtype=float32)
    """

    _axes = 2


class MaxPool3D(_MaxPool):
    """The largest element of each window along three axes."""

    _axes = 3

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class _AvgPool(_Pooling):
    """What poolings by the mean share: the order of their arguments but that of 1-D."""

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        how = ceil_mode, False, "avg", layout, count_include_pad
        super().__init__(pool_size, strides, padding, *how, **kwargs)


class AvgPool1D(_AvgPool):
    """The mean of each window along one axis."""

    _axes = 1

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        how = ceil_mode, layout, count_include_pad
        super().__init__(pool_size, strides, padding, *how, **kwargs)


class AvgPool2D(_AvgPool):
    """The mean of each window along two axes."""

    _axes = 2


class AvgPool3D(_AvgPool):
    """The mean of each window along three axes."""

    _axes = 3


class _GlobalPool(_Pooling):
    """What poolings of all elements of a channel share."""

    _pool_type = "max"

    def __init__(self, layout: str | None = None, **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, self._pool_type, layout, **kwargs)


class GlobalMaxPool1D(_GlobalPool):
    """The largest element of each channel."""

    _axes = 1


class GlobalMaxPool2D(_GlobalPool):
    """The largest element of each channel."""

    _axes = 2


class GlobalMaxPool3D(_GlobalPool):
    """The largest element of each channel."""

    _axes = 3


class GlobalAvgPool1D(_GlobalPool):
    """The mean of each channel."""

    _axes, _pool_type = 1, "avg"


class GlobalAvgPool2D(_GlobalPool):
    """The mean of each channel.

    >>> import gnomon as mx
    >>> GlobalAvgPool2D()(mx.nd.ones((1, 3, 4, 4))).shape
    (1, 3, 1, 1)
    """

    _axes, _pool_type = 2, "avg"


class GlobalAvgPool3D(_GlobalPool):
    """The mean of each channel."""

    _axes, _pool_type = 3, "avg"

# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.symbol import Symbol
def adjust_lighting(data: Symbol, alpha: float | Sequence[float], out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Three numbers times the directions in which colours of natural images differ, added."""
def crop(data: Symbol, x: int, y: int, width: int, height: int, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The part `width` wide and `height` high whose upper left corner is at (x, y)."""
def flip_left_right(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The image mirrored from left to right."""
def flip_top_bottom(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The image mirrored from top to bottom."""
def normalize(data: Symbol, mean: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0), std: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0), out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Each channel minus its mean, divided by its standard deviation; channels come first."""
def random_brightness(data: Symbol, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Colours times a random factor."""
def random_color_jitter(data: Symbol, brightness: float, contrast: float, saturation: float, hue: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Brightness, contrast, saturation and hue changed at random, in random order."""
def random_contrast(data: Symbol, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Colours moved away from their mean by a random factor."""
def random_flip_left_right(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The image, or as likely the image mirrored from left to right."""
def random_flip_top_bottom(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The image, or as likely the image mirrored from top to bottom."""
def random_hue(data: Symbol, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Hues turned by a random factor of the circle of colours."""
def random_lighting(data: Symbol, alpha_std: float = 0.05, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Random numbers times the directions in which colours of natural images differ, added."""
def random_saturation(data: Symbol, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Colours moved away from gray by a random factor."""
def resize(data: Symbol, size: int | Sequence[int] = (), keep_ratio: bool = False, interp: int = 1, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""The image, or each of a batch, scaled to a size."""
def to_tensor(data: Symbol, out: Any = ..., name: str | None = ..., attr: Any = ..., **kwargs: Any) -> Symbol:
    r"""Channels first, and numbers of 0 to 255 divided by 255, as float32."""

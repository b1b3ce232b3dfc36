# Written from the registry by tests/generated.py.

from collections.abc import Sequence
from typing import Any, Literal

from gnomon.ndarray import NDArray
def adjust_lighting(data: NDArray, alpha: float | Sequence[float], out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Three numbers times the directions in which colours of natural images differ, added."""
def crop(data: NDArray, x: int, y: int, width: int, height: int, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The part `width` wide and `height` high whose upper left corner is at (x, y)."""
def flip_left_right(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The image mirrored from left to right."""
def flip_top_bottom(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The image mirrored from top to bottom."""
def normalize(data: NDArray, mean: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0), std: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0), out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Each channel minus its mean, divided by its standard deviation; channels come first."""
def random_brightness(data: NDArray, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Colours times a random factor."""
def random_color_jitter(data: NDArray, brightness: float, contrast: float, saturation: float, hue: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Brightness, contrast, saturation and hue changed at random, in random order."""
def random_contrast(data: NDArray, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Colours moved away from their mean by a random factor."""
def random_flip_left_right(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The image, or as likely the image mirrored from left to right."""
def random_flip_top_bottom(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The image, or as likely the image mirrored from top to bottom."""
def random_hue(data: NDArray, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Hues turned by a random factor of the circle of colours."""
def random_lighting(data: NDArray, alpha_std: float = 0.05, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Random numbers times the directions in which colours of natural images differ, added."""
def random_saturation(data: NDArray, min_factor: float, max_factor: float, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Colours moved away from gray by a random factor."""
def resize(data: NDArray, size: int | Sequence[int] = (), keep_ratio: bool = False, interp: int = 1, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""The image, or each of a batch, scaled to a size."""
def to_tensor(data: NDArray, out: Any = ..., name: str | None = ..., ctx: Any = ...) -> NDArray:
    r"""Channels first, and numbers of 0 to 255 divided by 255, as float32."""

"""The calls of cuDNN that gnomon makes: the surface that the real and the simulated share."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gnomon.dtype import DType
from gnomon.ground.record import record
from gnomon.shape import channels_last, row_major

Sizes = tuple[int, ...]
Factors = tuple[float, float]  # of what is computed, and of what the result was
Pair = tuple[int, int]


@record()
class Convolve:
    """Which convolution, and which part of it: `forward`, the gradient of the `data` or `weight`.

    `data` (N, C, space...), `weight` (filters, C / groups, kernel...) and `out` (N, filters,
    places...) lie without gaps, with two or three axes of space; where it is `last`, all three in
    the order of (N, space..., C). Sums of 16 bits are made in 32.
    """

    part: str
    dtype: DType
    data: Sizes
    weight: Sizes
    out: Sizes
    stride: Sizes
    pad: Sizes
    dilate: Sizes
    groups: int
    last: bool = False

    @property
    def shapes(self) -> tuple[Sizes, Sizes, Sizes]:
        """The shapes of the first and the second operand, and of the result."""
        return {
            "forward": (self.data, self.weight, self.out),
            "data": (self.weight, self.out, self.data),
            "weight": (self.data, self.out, self.weight),
        }[self.part]

    def __str__(self) -> str:
        where = f"stride {self.stride}, pad {self.pad}, dilate {self.dilate}, {self.groups} groups"
        where += ", channels last" if self.last else ""
        what = "result" if self.part == "forward" else f"gradient of the {self.part}"
        return (
            f"convolution, {what}: {self.dtype.name}, data {self.data}, weight {self.weight}, "
            f"output {self.out}, {where}"
        )


@record()
class Mean:
    """Which pooling by means, and whether its result or the gradient of its data.

    `data` (N, C, space...) and `out` lie without gaps, with two or three axes of space; where it is
    `last`, in the order of (N, space..., C). Where it is `counted`, padding counts as zeros.
    """

    backward: bool
    dtype: DType
    data: Sizes
    out: Sizes
    kernel: Sizes
    stride: Sizes
    pad: Sizes
    counted: bool
    last: bool = False

    @property
    def shapes(self) -> tuple[Sizes, Sizes]:
        """The shapes of the operand and of the result."""
        return (self.out, self.data) if self.backward else (self.data, self.out)

    def __str__(self) -> str:
        return (
            f"pooling, {'gradient' if self.backward else 'result'} of means: {self.dtype.name}, "
            f"data {self.data}, output {self.out}, kernel {self.kernel}, stride {self.stride}, "
            f"pad {self.pad}, {'' if self.counted else 'not '}counted"
            f"{', channels last' if self.last else ''}"
        )


def strides(what: Convolve | Mean, shape: Sizes) -> Sizes:
    """The strides of an operand or result of this shape."""
    return channels_last(shape) if what.last else row_major(shape)


class Algorithm(NamedTuple):
    """A way in which cuDNN can convolve: its number, and whether results are the same each time."""

    number: int
    deterministic: bool


class Dnn(Protocol):
    """What is asked of cuDNN, in the context entered by the calling thread."""

    def create(self) -> int:
        """A new handle."""

    def destroy(self, handle: int) -> None:
        """Forgets a handle; its work is still done."""

    def set_stream(self, handle: int, stream: int) -> None:
        """Work is given to this stream from now on."""

    def describe(self, what: Convolve | Mean) -> int:
        """Descriptors of a convolution or pooling."""

    def forget(self, described: int) -> None:
        """Forgets descriptors."""

    def algorithms(self, handle: int, described: int) -> list[Algorithm]:
        """The ways of a convolution, by cuDNN's guess the fastest first; none: it has none."""

    def workspace(self, handle: int, described: int, algorithm: int) -> int | None:
        """The bytes that a way needs; None where it is none for this convolution."""

    def convolve(
        self,
        handle: int,
        described: int,
        algorithm: int,
        factors: Factors,
        operands: tuple[int, int, int],
        workspace: Pair,
    ) -> None:
        """result = first factor * convolution + second * result, when the stream comes to it.

        `operands` are the addresses of those of `Convolve.shapes`; `workspace` is an address and
        bytes. Where the second factor is 0 the result is only written.
        """

    def pool(self, handle: int, described: int, factors: Factors, operands: Pair) -> None:
        """The same of a pooling; `operands` are the addresses of those of `Mean.shapes`."""

"""Images in another size: an operator that works on data, by OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.ops.host import Array, HostOp
from gnomon.ops.image import ImageOp
from gnomon.ops.image_files import opencv
from gnomon.ops.infer import UNKNOWN, Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


@op("_image_resize")
class Resize(ImageOp, HostOp):
    """The image, or each of a batch, scaled to a size."""

    ranks = (3, 4)
    size: Dims = param((), low=1, doc="(width, height), or one number for both.")
    keep_ratio: bool = param(False, doc="One number is the shorter side; the other one follows.")
    interp: int = param(
        1,
        low=0,
        high=4,
        doc="0: nearest pixel, 1: bilinear, 2: bicubic, 3: mean of areas, 4: Lanczos.",
    )

    def check(self) -> None:
        if len(self.size) not in (1, 2):
            raise self.wrong("size", "(width, height), or one number")

    def sides(self, h: int, w: int) -> tuple[int, int]:
        """Height and width of the result."""
        if len(self.size) == 2:
            return self.size[1], self.size[0]
        (short,) = self.size
        if not self.keep_ratio:
            return short, short
        if UNKNOWN in (h, w):
            return UNKNOWN, UNKNOWN
        return (short, short * w // h) if h < w else (short * h // w, short)

    def shapes(self, s: Shapes) -> None:
        *batch, h, w, c = self.image(s)
        s["output"] = (*batch, *self.sides(h, w), c)

    def types(self, t: Types) -> None:
        t.same("data", "output")
        found = t["data"]
        if found is not None and found.name not in ("uint8", "float32", "float64"):
            raise t.refuse("data", "uint8, float32 or float64", found.name)

    def compute(self, *inputs: Array, **context: Any) -> Array:
        (data,) = inputs
        h, w = self.sides(*data.shape[-3:-1])
        made = np.empty((*data.shape[:-3], h, w, data.shape[-1]), data.dtype)
        if made.size:
            pairs = [(data, made)] if data.ndim == 3 else zip(data, made, strict=True)
            for image, out in pairs:
                scaled = opencv(self.name).resize(image, (w, h), interpolation=self.interp)
                out[...] = scaled.reshape(out.shape)
        return made

    # There is none: asking for it is refused, not answered by 0.
    backward_needs, run_backward = Op.backward_needs, Op.run_backward

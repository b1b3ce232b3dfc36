"""How many elements fall between edges: an operator that works on data, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.dtype import DType, int64
from gnomon.ops.derive import Needs
from gnomon.ops.infer import Shape, Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import Floats, param
from gnomon.ops.requests import check_requests
from gnomon.ops.sorting import store


@op("_histogram", inputs=("data", "bins"), outputs=("output0", "output1"))
class Histogram(Op):
    """How many elements of `data` lie in each bin, and the edges: `bins`, or `bin_cnt` equal ones.

    An edge belongs to the bin behind it, the last one to the bin before it.
    """

    bin_cnt: int | None = param(None, low=1, doc="How many bins of one width; None: by `bins`.")
    range: Floats | None = param(None, doc="The first and the last edge.")

    def check(self) -> None:
        if (self.bin_cnt is None) != (self.range is None):
            raise self.wrong("range", "given together with bin_cnt")
        if self.range is not None and not (len(self.range) == 2 and self.range[0] < self.range[1]):
            raise self.wrong("range", "(lowest, highest)")

    def arguments(self) -> tuple[str, ...]:
        return ("data", "bins") if self.bin_cnt is None else ("data",)

    def shapes(self, s: Shapes) -> None:
        edges = s.rank("bins", 1)[0] if self.bin_cnt is None else self.bin_cnt + 1
        s["output0"], s["output1"] = (edges - 1,), (edges,)

    def types(self, t: Types) -> None:
        t.same(*self.arguments(), "output1")
        t["output0"] = int64

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        data, *given = (blob.tensor.numpy() for blob in in_data)
        bins: Any = self.bin_cnt
        between: Any = self.range
        edges = given[0] if given else np.histogram_bin_edges(data, bins, between)
        if data.itemsize < 4:
            data = data.astype(np.float32)
        found = np.histogram(data, edges)  # of edges it sorts, by vectors, which takes less time
        for blob, request, values in zip(out_data, req, found, strict=True):
            store(blob, request, values)

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        return Needs((), (), ())

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        check_requests(self.name, req, in_grad)
        for blob, request in zip(in_grad, req, strict=True):
            if blob is not None:
                store(blob, request, np.zeros(blob.shape_, np.float32))

"""The weights of recurrent layers joined to the one vector that the operator RNN takes."""

from __future__ import annotations

import numpy as np

from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.join import Concat
from gnomon.ops.op import op
from gnomon.ops.param import count, param


@op("_rnn_param_concat", variadic="num_args")
class RNNParamConcat(Concat):
    """The inputs one after another; lengths that are not known, of both directions, are equal."""

    num_args: int = count(doc="How many inputs there are.")
    dim: int = param(1, doc="The axis they are joined along.")
    cases = (case((3,), (4,), num_args=2, dim=0), case((2, 3), (2, 1), num_args=2))

    def shapes(self, s: Shapes) -> None:
        parts = self.arguments()
        whole = s["output"]
        sizes = [(s[n] or (UNKNOWN,))[0] for n in parts]
        count = sizes.count(UNKNOWN)
        if count and whole is not None and len(whole) == 1 and UNKNOWN not in whole:
            rest = whole[0] - sum(n for n in sizes if n != UNKNOWN)
            for name, size in zip(parts, sizes, strict=True):
                if size == UNKNOWN:
                    s[name] = (rest // count,)
        super().shapes(s)

    def reference(self, *args: Array) -> Array:
        return np.concatenate(args, self.dim)

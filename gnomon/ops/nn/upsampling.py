"""UpSampling: larger images, by nearest neighbours or by a learned kernel."""

from __future__ import annotations

from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.nn.deconvolution import Deconvolution
from gnomon.ops.op import Op, op
from gnomon.ops.param import count, param


@op("UpSampling", variadic="num_args")
class UpSampling(Op):
    """Every input enlarged to `scale` times the first, joined along the channels or added up.

    `bilinear` enlarges one input by a deconvolution with the input `weight`, a kernel a channel.
    """

    scale: int = param(low=1, doc="How many times larger the first input becomes.")
    num_filter: int = param(0, low=0, doc="Channels, for bilinear.")
    sample_type: str = param(choices=("bilinear", "nearest"), doc="How values between are found.")
    multi_input_mode: str = param("concat", choices=("concat", "sum"), doc="What joins the inputs.")
    num_args: int = count(doc="How many inputs there are.")
    workspace: int = param(512, low=0, doc="No meaning here.")

    def arguments(self) -> tuple[str, ...]:
        return super().arguments() if self.sample_type == "nearest" else ("data", "weight")

    def smooth(self) -> Deconvolution:
        """The deconvolution that enlarges smoothly."""
        return Deconvolution(
            kernel=(2 * self.scale - self.scale % 2,) * 2,
            stride=(self.scale,) * 2,
            pad=(self.scale // 2,) * 2,
            num_filter=self.num_filter,
            num_group=self.num_filter,
        )

    def check(self) -> None:
        if self.sample_type == "bilinear" and self.num_filter < 1:
            raise self.wrong("num_filter", "the channels")

    def shapes(self, s: Shapes) -> None:
        if self.sample_type == "bilinear":
            self.smooth().shapes(s)
            return
        first = s.rank("arg0", 4)
        space = tuple(d * self.scale for d in first[2:])
        channels = [s.rank(name, 4)[1] for name in self.arguments()]
        for name in self.arguments():
            self.fits(s, name, space)
        joint = channels[0] if self.multi_input_mode == "sum" else sum(channels)
        s["output"] = (first[0], joint, *space)

    def fits(self, s: Shapes, name: str, space: tuple[int, ...]) -> None:
        """Refuse an input whose sizes do not divide the output's."""
        shape = s.rank(name, 4)
        pairs = zip(shape[2:], space, strict=True)
        if any(UNKNOWN not in (d, n) and (d == 0 or n % d) for d, n in pairs):
            raise s.refuse(name, f"sizes that divide {space}", f"shape {shape}")

    def forward(self, *args: Expr) -> Expr:
        if self.sample_type == "bilinear":
            return self.smooth().forward(*args)
        height, width = (d * self.scale for d in args[0].shape[2:])
        wide = [enlarged(x, height // x.shape[2], width // x.shape[3]) for x in args]
        if self.multi_input_mode == "concat":
            return ext.concat(wide, 1) if len(wide) > 1 else wide[0]
        total = wide[0]
        for x in wide[1:]:
            total = total + x
        return total


def enlarged(x: Expr, rows: int, columns: int) -> Expr:
    """Every element of the last two axes `rows` by `columns` times."""
    n, c, h, w = x.shape
    apart = ext.reshape(x, (n, c, h, 1, w, 1))
    return ext.reshape(
        ext.broadcast_to(apart, (n, c, h, rows, w, columns)), (n, c, h * rows, w * columns)
    )

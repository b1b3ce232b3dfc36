"""What a detector learns of boxes: which ones match, and moves from anchors to boxes and back."""

from __future__ import annotations

import numpy as np

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, one_dtype
from gnomon.ops.op import Op, op
from gnomon.ops.param import param

Parts = tuple[Expr, Expr, Expr, Expr]
SIDES = np.random.default_rng(2).uniform(1, 2, (2, 2, 5, 2))
BOXES = np.concatenate([SIDES[0], SIDES[0] + SIDES[1]], -1)  # for cases


def parts(boxes: Expr) -> Parts:
    """The four numbers of boxes (batch, n, 4), each (batch, n, 1)."""
    batch, n, _ = boxes.shape
    a, b, c, d = (ext.slice_(boxes, (0, 0, k), (batch, n, k + 1)) for k in range(4))
    return a, b, c, d


def middles(boxes: Expr, form: str = "corner") -> Parts:
    """Centers, widths and heights of boxes."""
    x, y, right, bottom = parts(boxes)
    if form == "center":
        return x, y, right, bottom
    return (x + right) * 0.5, (y + bottom) * 0.5, right - x, bottom - y


@op(
    "_contrib_box_encode",
    inputs=("samples", "matches", "anchors", "refs", "means", "stds"),
    outputs=("output0", "output1"),
)
class BoxEncode(Op):
    """How `anchors` (batch, n, 4) move to the boxes `refs` (batch, m, 4) they match, and a mask.

    An anchor counts where `samples` (batch, n) is above 0.5; `matches` (batch, n) is the number of
    its box, the nearest that there is. All are corners. A move is a share of the anchor's size, or
    the logarithm of a ratio of sizes; less one of `means` (4,), divided by one of `stds` (4,).
    """

    cases = (
        case([[1, 0, 0.6], [0.5, 1, -1]], [[0, 1, 1.0], [1, 1, 9]], BOXES[:, :3], BOXES[:, 3:],
             (4,), [0.1, 0.1, 0.2, 0.2]),
        case((0, 2), (0, 2), (0, 2, 4), (0, 1, 4), (4,), (4,)),
    )  # fmt: skip
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.same("samples", "matches")
        s["samples"] = (-1, -1)
        batch, n = s.need("samples")
        s["anchors"], s["refs"] = (batch, n, 4), (batch, -1, 4)
        s["means"] = s["stds"] = (4,)
        s["output0"] = s["output1"] = s.need("anchors")
        s["samples"] = (s.need("refs")[0], n)

    def forward(self, *inputs: Expr) -> tuple[Expr, Expr]:
        samples, matches, anchors, refs, means, stds = inputs
        batch, m, _ = refs.shape
        place = fn.clip(cast(matches, int64), 0, max(m - 1, 0))
        place = place + ext.iota(place.shape, 0, int64) * m
        found = ext.take(ext.reshape(refs, (batch * m, 4)), place)
        x, y, width, height = middles(found)
        left, top, wide, high = middles(anchors)
        moves = [(x - left) / wide, (y - top) / high, fn.log(width / wide), fn.log(height / high)]
        whole = ext.concat(moves, 2)
        means, stds = (ext.broadcast_axis(e, whole.shape, 2) for e in (means, stds))
        whole = (whole - means) / stds
        counts = ext.broadcast_to(ext.reshape(fn.gt(samples, 0.5), (*place.shape, 1)), whole.shape)
        return fn.where(counts, whole, 0.0), cast(counts, whole.dtype)

    def reference(self, *inputs: Array) -> tuple[Array, Array]:
        samples, matches, anchors, refs, means, stds = inputs
        moves, mask = np.zeros((2, *anchors.shape))
        for k, n in np.argwhere(samples > 0.5):
            low, high = refs[k, min(int(matches[k, n]), refs.shape[1] - 1)].reshape(2, 2)
            left, right = anchors[k, n].reshape(2, 2)
            near = ((low + high) - (left + right)) / 2 / (right - left)
            sizes = np.log((high - low) / (right - left))
            moves[k, n], mask[k, n] = (np.append(near, sizes) - means) / stds, 1
        return moves, mask


@op("_contrib_box_decode", inputs=("data", "anchors"))
class BoxDecode(Op):
    """Corners of `anchors` (1, n, 4) moved by `data` (batch, n, 4): the inverse of `box_encode`.

    A center moves by `data * std` sizes of its anchor, a size is multiplied by `exp(data * std)`.
    """

    std0: float = param(1.0, doc="What moves along x are multiplied by.")
    std1: float = param(1.0, doc="What moves along y are multiplied by.")
    std2: float = param(1.0, doc="What logarithms of widths are multiplied by.")
    std3: float = param(1.0, doc="What logarithms of heights are multiplied by.")
    clip: float = param(-1.0, doc="The most a logarithm may be; without a limit if not above 0.")
    format: str = param("center", choices=("center", "corner"), doc="What `anchors` are.")
    cases = (
        case((2, 3, 4), (1, 3, 4), std0=0.1, std3=0.2),
        case((2, 3, 4), (1, 3, 4), format="corner", clip=0.5),
        case((2, 0, 4), (1, 0, 4)),
    )
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        s["data"] = (-1, -1, 4)
        s["anchors"] = (1, s.need("data")[1], 4)
        s["data"] = (-1, s.need("anchors")[1], 4)

    def forward(self, data: Expr, anchors: Expr) -> Expr:
        a, b, c, d = parts(data)
        left, top, wide, high = (
            ext.broadcast_to(e, a.shape) for e in middles(anchors, self.format)
        )
        x, y = a * self.std0 * wide + left, b * self.std1 * high + top
        half_wide, half_high = self.grown(c * self.std2) * wide, self.grown(d * self.std3) * high
        return ext.concat([x - half_wide, y - half_high, x + half_wide, y + half_high], 2)

    def grown(self, logarithm: Expr) -> Expr:
        """Half of what a size is multiplied by."""
        if self.clip > 0:
            logarithm = fn.minimum(logarithm, self.clip)
        return fn.exp(logarithm) * 0.5

    def reference(self, data: Array, anchors: Array) -> Array:
        low, high = anchors[..., :2], anchors[..., 2:]
        middle, size = (low, high) if self.format == "center" else ((low + high) / 2, high - low)
        logarithms = data[..., 2:] * np.array([self.std2, self.std3])
        logarithms = np.minimum(logarithms, self.clip) if self.clip > 0 else logarithms
        center = data[..., :2] * np.array([self.std0, self.std1]) * size + middle
        half = np.exp(logarithms) * size / 2
        return np.concatenate([center - half, center + half], -1)


@op("_contrib_bipartite_matching", outputs=("output0", "output1"))
class BipartiteMatching(HostOp):
    """The column that each row of `data` (..., n, m) is matched with, and the row of each column.

    Pairs are matched greedily, best score first (of equal ones that which comes first), as long as
    row and column are free and the score is beyond `threshold`; -1 is for no match.
    """

    is_ascend: bool = param(False, doc="The best score is the lowest one.")
    threshold: float = param(doc="Only scores above it match; below it where `is_ascend`.")
    topk: int = param(-1, doc="There are up to `topk` + 1 matches; as many as can be if not > 0.")
    cases = (
        case((2, 3, 4), threshold=-1.0),
        case((4, 3), threshold=1.5, is_ascend=True, topk=1),
        case([[[1.0, 1.0], [1.0, 2.0]]], threshold=0.5),
        case((2, 0, 3), threshold=0.5),
        case((0, 3, 2), threshold=0.5),
    )
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        shape = s.need("data")
        if len(shape) < 2:
            raise s.refuse("data", "2 axes or more", f"shape {shape}")
        s["output0"], s["output1"] = shape[:-1], (*shape[:-2], shape[-1])

    def compute(self, data: Array) -> tuple[Array, Array]:
        *batch, n, m = data.shape
        if not data.size:
            return np.full((*batch, n), -1), np.full((*batch, m), -1)
        scores = np.reshape(data if self.is_ascend else -data, (-1, n, m))
        beyond = scores < (self.threshold if self.is_ascend else -self.threshold)
        order = np.argsort(scores.reshape(-1, n * m), -1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(n * m), -1)
        ranks = np.where(beyond, rank.reshape(scores.shape), n * m)
        rows, columns = matched(ranks)
        if self.topk > 0:
            rows, columns = self.best(ranks, rows, columns)
        return rows.reshape(*batch, n), columns.reshape(*batch, m)

    def best(self, ranks: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The best `topk` + 1 matches alone."""
        k, row = np.nonzero(rows >= 0)
        column = rows[k, row]
        taken: Array = np.full(rows.shape, ranks.shape[1] * ranks.shape[2])
        taken[k, row] = ranks[k, row, column]
        place = min(self.topk, taken.shape[1] - 1)
        last = np.sort(taken, -1)[..., place]
        late = taken[k, row] > last[k]
        rows[k[late], row[late]] = -1
        columns[k[late], column[late]] = -1
        return rows, columns

    def reference(self, data: Array) -> tuple[Array, Array]:
        *batch, n, m = data.shape
        rows, columns = np.full((*batch, n), -1.0), np.full((*batch, m), -1.0)
        sign = 1 if self.is_ascend else -1
        for at in np.ndindex(*batch):
            self.one(sign * data[at], sign * self.threshold, rows[at], columns[at])
        return rows, columns

    def one(self, scores: Array, limit: float, rows: Array, columns: Array) -> None:
        """Match pair by pair, lowest score first."""
        for place in np.argsort(scores, None, "stable"):
            i, j = divmod(int(place), scores.shape[1])
            if scores[i, j] < limit and rows[i] < 0 and columns[j] < 0:
                rows[i], columns[j] = j, i
            if 0 < self.topk < (rows >= 0).sum():
                break


def matched(ranks: Array) -> tuple[Array, Array]:
    """Greedy matches by `ranks` (batch, n, m), lowest first; those of n m are for none.

    A pair that comes first both in its row and in its column is matched by the greedy way, whatever
    else is: all such pairs are taken at once, and their rows and columns are out.
    """
    batch, n, m = ranks.shape
    rows, columns = np.full((batch, n), -1), np.full((batch, m), -1)
    left = ranks.copy()
    while left.size:
        first = left.argmin(2)
        lowest = np.take_along_axis(left, first[..., None], 2)[..., 0]
        mutual = np.take_along_axis(left.argmin(1), first, 1) == np.arange(n)
        k, row = np.nonzero(mutual & (lowest < n * m))
        if not len(k):
            break
        column = first[k, row]
        rows[k, row], columns[k, column] = column, row
        left[k, row], left[k, :, column] = n * m, n * m
    return rows, columns

"""Convolutions as other expressions, for where no library does them.

Groups of few channels and filters are sums over windows, which a loop nest computes without a copy
of the data. Else the windows are laid out as the columns of matrices, and products of those with
the weight give every group of every image, or the gradient of every group's weight.
"""

from __future__ import annotations

from gnomon.expr.call.dot import batch_dot
from gnomon.expr.ext import broadcast_to, reduce, reshape, transpose
from gnomon.expr.ext.pack_col2patch import Pack, Patch, Unpack
from gnomon.expr.node import Expr
from gnomon.ground.record import record
from gnomon.shape import prod

Sizes = tuple[int, ...]
NARROW = 16  # channels times filters of a group, up to which a sum takes less than a product


@record()
class Parts:
    """The sizes of a convolution: of its groups, of the windows, and how many of these there are.

    Columns are (groups, channels, kernel..., n, places...), the axes of `whole` without `filters`.
    """

    patch: Patch
    groups: int
    filters: int
    channels: int
    n: int
    places: Sizes

    @property
    def whole(self) -> Sizes:
        """An axis for everything that a convolution goes through."""
        ours = self.groups, self.filters, self.channels
        return (*ours, *self.patch.kernel, self.n, *self.places)

    @property
    def narrow(self) -> bool:
        """Whether matrix products would have few rows and columns."""
        return self.groups > 1 and self.filters * self.channels <= NARROW

    @property
    def rows(self) -> int:
        """How many elements of a group a window has."""
        return self.channels * prod(self.patch.kernel)

    def spread(self, e: Expr, missing: Sizes) -> Expr:
        """`e`, which has all axes of `whole` but some, along these as well."""
        sizes = [1 if a in missing else n for a, n in enumerate(self.whole)]
        return broadcast_to(reshape(e, sizes), self.whole)

    def columns(self, data: Expr) -> Expr:
        """The windows of `data` along all axes but that of the filters."""
        apart = self.groups, self.channels, *self.whole[3:]
        return reshape(Unpack(data, self.patch), apart)

    def spread_columns(self, data: Expr) -> Expr:
        """The windows of `data` along all axes."""
        return self.spread(self.columns(data), (1,))

    def spread_weight(self, weight: Expr) -> Expr:
        """`weight` along all axes."""
        return self.spread(weight, tuple(range(3 + self.rank, len(self.whole))))

    def spread_grad(self, grad: Expr) -> Expr:
        """The gradient of the result along all axes."""
        return self.spread(self.grad_by_filters(grad), tuple(range(2, 3 + self.rank)))

    @property
    def rank(self) -> int:
        """How many axes of space there are."""
        return len(self.places)

    def grad_by_filters(self, grad: Expr) -> Expr:
        """The gradient of the result, its images behind its filters."""
        return transpose(grad, (1, 0, *range(2, grad.ndim)))

    def weights(self, weight: Expr) -> Expr:
        """A matrix with a row for each filter, for every group of every image."""
        each = (self.filters, self.rows)
        if self.groups == 1:
            return broadcast_to(reshape(weight, (1, *each)), (self.n, *each))
        all_images = broadcast_to(
            reshape(weight, (1, self.groups, *each)), (self.n, self.groups, *each)
        )
        return reshape(all_images, (self.n * self.groups, *each))


def forward(data: Expr, weight: Expr, parts: Parts) -> Expr:
    """The convolution, with the axes (n, groups, filters, places...) joined as may be."""
    if parts.narrow:
        product = parts.spread_columns(data) * parts.spread_weight(weight)
        found = reduce(product, "sum", range(2, 3 + parts.rank))
        return transpose(found, (2, 0, 1, *range(3, found.ndim)))
    columns = Unpack(data, parts.patch)
    at = 1 + parts.rank  # the axis of the images
    by_image = transpose(columns, (at, *range(at), *range(at + 1, columns.ndim)))
    matrices = reshape(by_image, (parts.n * parts.groups, parts.rows, prod(parts.places)))
    return batch_dot(parts.weights(weight), matrices)


def to_data(grad: Expr, weight: Expr, parts: Parts, space: Sizes) -> Expr:
    """What the data receives: what every window does, added up."""
    kernel, n = parts.patch.kernel, parts.n
    shape = (parts.groups * parts.channels, *kernel, n, *parts.places)
    if parts.narrow:
        product = parts.spread_weight(weight) * parts.spread_grad(grad)
        return Pack(reshape(reduce(product, "sum", 1), shape), parts.patch, space)
    matrices = reshape(grad, (n * parts.groups, parts.filters, prod(parts.places)))
    columns = batch_dot(parts.weights(weight), matrices, transpose_a=True)
    by_image = reshape(columns, (n, *shape[: 1 + parts.rank], *parts.places))
    at = 2 + parts.rank
    order = (*range(1, at), 0, *range(at, by_image.ndim))
    return Pack(transpose(by_image, order), parts.patch, space)


def to_weight(data: Expr, grad: Expr, parts: Parts) -> Expr:
    """What the weight receives: (groups, filters, channels, kernel...), joined as may be."""
    if parts.narrow:
        product = parts.spread_columns(data) * parts.spread_grad(grad)
        return reduce(product, "sum", range(3 + parts.rank, product.ndim))
    size = parts.n * prod(parts.places)
    columns = reshape(parts.columns(data), (parts.groups, parts.rows, size))
    rows = reshape(parts.grad_by_filters(grad), (parts.groups, parts.filters, size))
    return batch_dot(rows, columns, transpose_b=True)

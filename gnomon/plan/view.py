"""Views: chainers over data in memory that are nothing but other sizes and strides become buffers.

A reshape, which would cost divisions as an index rule, moves through maps to the leaves, and from
the root to the destination. A number that is spread over a shape is that number, and what depends
on an element's place in a row of all alone has one axis: one kernel fills arrays of every shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.expr.composite import Call, Chainer
from gnomon.expr.ext.philox import Philox
from gnomon.expr.ext.reduce import Broadcast, Reduce
from gnomon.expr.ext.reshape import Reshape
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.layout import JOINED, UNIT
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.rewrite import with_children
from gnomon.expr.walk import postorder
from gnomon.ground.record import put
from gnomon.plan.statement import Axis, Store
from gnomon.shape import prod

_SOMEWHERE = 1 << 48  # an address for data of which the shape alone is asked


def views(stores: Sequence[Store]) -> list[Store]:
    """The same statements with as few index rules as can be."""
    stores = [unshaped(s) for s in stores]
    order = postorder([s.value for s in stores])
    given = {c for node in order if isinstance(node, Call) for c in node.children}
    new: dict[Expr, Expr] = {}
    for node in order:
        children = node.children
        made = with_children(node, [new[c] for c in children]) if children else node
        new[node] = made if node in given and stays(made) else viewed(made)
    alone = len(stores) == 1
    bared = [Store(s.dest, s.saver, bare(new[s.value])) for s in stores]
    again = [unshaped(reduced(s, alone)) for s in bared]
    return in_a_row(again) if any(isinstance(node, Philox) for node in order) else again


def in_a_row(stores: list[Store]) -> list[Store]:
    """Statements of random numbers, dense data and maps over one axis; others stay as they are."""
    shape, order = stores[0].dest.shape, postorder([s.value for s in stores])
    if len(shape) < 2 or not all(s.dest.shape == shape and s.dest.contiguous for s in stores):
        return stores
    row = (prod(shape),)
    new = _sunk_all(order, shape, row)
    if not all(
        isinstance(n, (Buffer, Scalar, Map, Cast, Philox)) for n in postorder([*new.values()])
    ):
        return stores
    return [Store(reshaped(s.dest, row), s.saver, new[s.value]) for s in stores]


def bare(node: Expr) -> Expr:
    """A number that is spread over a shape as that number; others as they are."""
    return node.src if isinstance(node, Broadcast) and isinstance(node.src, Scalar) else node


def spread(number: Expr, shape: Sequence[int]) -> Expr:
    """A number over a shape."""
    return Broadcast(number, tuple(shape), tuple(range(len(shape))))


def unshaped(store: Store) -> Store:
    """A reshaped value for a dense destination becomes the value for the destination reshaped.

    So does the transpose of what a library computes.
    """
    dest, value = store.dest, store.value
    if isinstance(value, Transpose) and isinstance(value.src, Call):
        strides = [dest.strides[a] for a in value.inverse]
        dest = Buffer(value.src.shape, dest.dtype, strides, dest.address, dest, dest.device)
        return Store(dest, store.saver, value.src)
    while dest.contiguous:
        inner = reshaped_inside(value)
        if inner is None:
            break
        dest, value = reshaped(dest, inner.shape), inner
    return store if value is store.value else Store(dest, store.saver, value)


def reshaped_inside(value: Expr) -> Expr | None:
    """What `value` is a reshape of: `x` of a reshape of x, and of that combined with numbers."""
    maps: list[Map] = []
    while isinstance(value, Map):
        operands = [a for a in value.args if not isinstance(a, Scalar)]
        if len(operands) != 1:
            return None
        maps.append(value)
        (value,) = operands
    if not isinstance(value, Reshape):
        return None
    return mapped(maps, value.src)


def mapped(maps: Sequence[Map], inner: Expr) -> Expr:
    """The same maps, outermost first, of another operand; all others are numbers."""
    for outer in reversed(maps):
        args = tuple(a if isinstance(a, Scalar) else inner for a in outer.args)
        inner = Map(outer.fn, args, inner.shape, outer.dtype)
    return inner


def stays(node: Expr) -> bool:
    """Whether a call's operand is a reshape of what is computed: `unshaped` then undoes it."""
    return isinstance(node, Reshape) and not isinstance(node.src, Buffer)


def viewed(node: Expr) -> Expr:
    """`node` as a buffer where it is a view of one; reshapes sunk below maps."""
    if isinstance(node, Reshape):
        return sunk(node.src, node.shape)
    if isinstance(node, Map):
        args = tuple(map(bare, node.args))
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        numbers = all(isinstance(a, Scalar) for a in args)
        return node if same or numbers else Map(node.fn, args, node.shape, node.dtype)
    if isinstance(node, Chainer) and len(node.children) == 1:
        (src,) = node.children
        number = bare(src)
        if (
            number is not src
            and node.view(Buffer(src.shape, src.dtype, None, _SOMEWHERE)) is not None
        ):
            return spread(number, node.shape)
        if isinstance(src, Buffer):
            found = node.view(src)
            return node if found is None else found
    return node


def reduced(store: Store, alone: bool) -> Store:
    """A reduction that is all a statement does, numbers beside, over as few axes as can be.

    Only where the statement is `alone`, equal sizes are not told: others may read the same leaves.
    """
    maps: list[Map] = []
    node = store.value
    while isinstance(node, Map):
        operands = [a for a in node.args if not isinstance(a, Scalar)]
        if len(operands) != 1:
            return store
        maps.append(node)
        (node,) = operands
    if not isinstance(node, Reduce) or not store.dest.contiguous:
        return store
    made = joined(node, alone)
    if made is None:
        return store
    return Store(reshaped(store.dest, made.shape), store.saver, mapped(maps, made))


def joined(node: Reduce, alone: bool = True) -> Reduce | None:
    """A reduction of dense data with neighbouring axes as one, where both are kept or neither is.

    Few kernels do then for all shapes. Data with gaps stay: a reshape of them costs divisions.
    """
    sizes, gone = merged(node.src.shape, node.axes, alone)
    axes = tuple(k for k, along in enumerate(gone) if along)
    src = sunk(node.src, list(map(Axis, sizes, range(len(sizes)))) if alone else sizes)
    if not all(isinstance(n, (Buffer, Scalar, Map, Cast)) for n in postorder([src])):
        return None
    made = Reduce(src, node.reducer, axes, False)
    put(made, "shape", tuple(n for n, along in zip(src.shape, gone, strict=True) if not along))
    return made


def merged(
    shape: Sequence[int], axes: Sequence[int], alone: bool = True
) -> tuple[list[int], list[bool]]:
    """Sizes with neighbouring axes as one, and which of them are reduced; one is, at least.

    Of three and more in a statement `alone`, the first is kept, or there is one of a single element
    before it: the kernels of four axes then serve three, too.

    >>> merged((2, 3, 1, 4, 5), (1, 2)), merged((2, 3, 4), (0, 2))
    (([2, 3, 20], [False, True, False]), ([1, 2, 3, 4], [False, True, False, True]))
    """
    sizes: list[int] = []
    gone: list[bool] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        if gone and gone[-1] == (axis in axes):
            sizes[-1] *= n
        else:
            sizes.append(n)
            gone.append(axis in axes)
    if True not in gone:  # what is reduced has one element
        sizes.append(1)
        gone.append(True)
    if alone and gone[0] and len(gone) > 2:
        return [1, *sizes], [False, *gone]
    return sizes, gone


def sunk(src: Expr, shape: Sequence[int]) -> Expr:
    """The reshape of maps as the maps of reshapes, down to what is not a map."""
    return _sunk_all(postorder([src]), src.shape, shape)[src]


def _sunk_all(
    order: Iterable[Expr], before: Sequence[int], shape: Sequence[int]
) -> dict[Expr, Expr]:
    """What stands for each of some nodes of one shape, operands first, and for numbers in them."""
    new: dict[Expr, Expr] = {}
    for node in order:
        if node.shape == before:
            new[node] = _sunk_one(node, new, shape)
        elif not node.shape:  # a number, as it is or converted
            new[node] = node
    return new


def _sunk_one(node: Expr, new: dict[Expr, Expr], shape: Sequence[int]) -> Expr:
    if isinstance(node, Scalar):
        return node
    if isinstance(node, Map) and node.args:
        return Map(node.fn, tuple(new[a] for a in node.args), tuple(shape), node.dtype)
    if isinstance(node, Cast):
        return Cast(new[node.src], node.dtype)
    if isinstance(node, Reshape):
        return (
            _sunk_one(node.src, new, shape) if node.src in new else Reshape(node.src, tuple(shape))
        )
    if isinstance(node, Buffer) and node.contiguous:
        return reshaped(node, shape)
    if isinstance(node, Philox):
        return Philox(node.state, tuple(shape), node.kind_of, node.of)
    number = bare(node)
    return Reshape(node, tuple(shape)) if number is node else spread(number, shape)


def reshaped(buffer: Buffer, shape: Sequence[int]) -> Buffer:
    """A dense buffer seen in another shape."""
    made = Buffer(shape, buffer.dtype, None, buffer.address, buffer, buffer.device)
    if shape and isinstance(shape[0], Axis):  # an axis of one is like others
        put(made, "_layout", (*[JOINED] * (len(shape) - 1), UNIT))
    return made

"""Small and middle matrix products by code of our own: see `code/tiles.py`.

A library brings parts of both operands into an order of its own before it multiplies. Where C has
few rows or the inner axis is short, that takes as long as the product.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gnomon import dtype as dtypes
from gnomon.code import tiles
from gnomon.dtype import DType
from gnomon.expr.call import rnn
from gnomon.expr.node import Buffer
from gnomon.plan.statement import Store
from gnomon.runtime.compiler import jit, objects
from gnomon.runtime.compiler.host import baseline
from gnomon.runtime.execution import threads
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries.product import Product, ProductStep, bits

_GRAIN = 400_000  # multiply-adds below which another thread does not pay
_GRAIN_VECTOR = 80_000  # the same where A is a row, and what takes time is reading B
_EDGE = 16  # rows or columns that a piece is a multiple of
_SMALL = 300_000  # multiply-adds up to which packing takes longer than it saves
_MIDDLE = 4_000_000
_LARGE = 4 * _MIDDLE
_DEEP = 256  # of the inner axis: a panel is on the stack, 64 KB of it
_AGAIN, _AGAIN_TURNED = 160, 64  # rows of C for which a part of B that is packed is read again
_BROAD = 32  # rows and columns from which on elements of both are read often enough
_WIDE = 64  # bytes of a register where there are 32 of them
_ELEMENTS = {dtypes.float32: "float", dtypes.float64: "double"}


def fits(p: Product) -> bool:
    """Whether a product is one that this does faster than a library.

    Measured on one core, float32, in microseconds, this before oneDNN: (32 128 784) with B turned
    45, 65; (32 500 800) so 172, 223; (10 64 32) with A turned 0.4, 1.4; (1 128 784) 2.6, 14; on two
    cores, with B turned, (128 128 784) 99, 111; (100 128 1024) 105, 149; but (128 64 128) 12, 10;
    on one (128 500 800) 640, 610, and (20 200 800) with nothing turned 37, 33. With A turned, on
    one core, (64 64 148) 8.6, 9.2; (32 192 600) 44, 50; but (10 500 320) 28, 23. By strips, on one
    core, (600 64 256) 116, 115, (600 256 64) 116, 122; with B turned (64 64 64) 4.1, 4.7,
    (256 192 64) 39.1, 38.5; with A turned (256 64 320) 64, 72. Of batches those with A turned, 16
    times (41 16 41) 8, 10, (100 64 100) 125, 133; with nothing turned (100 16 100) 41, 32. A
    library makes code for each size, which takes as long as many of these; tiles are there for all.
    """
    if p.packed:
        return True
    if p.dtype is not dtypes.float32 or (p.transpose_a and p.transpose_b):
        return False
    if min(p.m, p.n, p.k, p.batch) < 1 or not _has_fma():
        return False
    if p.batch > 1:
        return p.work <= _SMALL and p.transpose_a
    if p.work <= _SMALL or _by_strips(p):
        return True
    if p.transpose_b:
        return p.work <= _LARGE and p.m <= 128 and p.k >= 512
    return p.work <= _MIDDLE and (p.k <= 64 or (p.transpose_a and min(p.m, p.n) >= _BROAD))


def _by_strips(p: Product) -> bool:
    """Whether parts of B are packed: where enough rows of C read each, and there are registers for
    tiles of that many columns; with fewer registers a library is faster."""
    machine, least = _machine(p.dtype), _AGAIN_TURNED if p.transpose_b else _AGAIN
    if p.packed or p.batch > 1 or p.k > _DEEP or p.work > _LARGE:
        return False
    return tiles.panel(machine) > tiles.WIDEST and p.n >= columns(p.dtype) and p.m >= least


def packs(dtype: DType) -> bool:
    """Whether there is code here for products whose B is `packed`, one B for a whole batch."""
    return dtype in _ELEMENTS and _has_fma()


def panels(matrix: Buffer) -> tuple[Buffer, Callable[[], list[Store]]]:
    """Where `matrix` (k, n) is to lie as products that are `packed` read it, and what stores it so.

    A panel is as many columns as a tile has. What a tile reads of B is then one piece of memory,
    read from end to end: a product of 16 rows is done in two thirds of a library's time, which
    packs its part each time.
    """
    strides = matrix.strides[::-1]
    turned = Buffer(matrix.shape[::-1], matrix.dtype, strides, matrix.address, matrix)
    wide = columns(matrix.dtype)
    out = temporary(Buffer(rnn.in_panels(turned.shape, wide), matrix.dtype))
    return out, lambda: [Store(out, "saveto", rnn.panels(turned, wide))]


def columns(dtype: DType) -> int:
    """How many columns a panel has."""
    machine = _machine(dtype)
    return tiles.panel(machine) * machine.lanes


@functools.cache
def _has_fma() -> bool:
    """Whether a product and a sum are one instruction here; else they would be a function."""
    here = baseline()
    return "fma" in here.features or not here.triple.startswith(("x86", "i686", "amd64"))


def _machine(dtype: DType) -> tiles.Machine:
    wide = baseline().vector_bytes
    registers = 32 if wide >= _WIDE else 16
    return tiles.Machine(_ELEMENTS[dtype], dtype.size, wide // dtype.size, registers)


class Code:
    """The code of products of one dtype: what goes over them, and those tiles that some needed."""

    def __init__(self, machine: tiles.Machine) -> None:
        self.machine = machine
        self.numbers = {name: k for k, name in enumerate(tiles.names(machine))}
        self.table = Block([0] * len(self.numbers))
        self.tiles: dict[str, jit.Module] = {}
        self.module = objects.compiled(tiles.text(machine))

    def have(self, names: Iterable[str]) -> None:
        """From now on these tiles are in the table.

        Several threads may compile one at once. The first to be done has made it for all.
        """
        for name in names:
            number = self.numbers[name]
            if not self.table.words[number]:
                made = objects.compiled(tiles.tile(self.machine, name))
                self.table.words[number] = self.tiles.setdefault(name, made).address("tile")


@functools.cache
def _code(dtype: DType) -> Code:
    return Code(_machine(dtype))


class TileStep(ProductStep):
    """A small product."""

    __slots__ = ()

    def __init__(self, product: Product, values: dict[str, int], tasks: int, keep: Any) -> None:
        code = _code(product.dtype)
        code.have(_needed(code.machine, product, values, tasks))
        values = {**values, "table": code.table.address}
        operands = [int(values.get(word, 0)) for word in tiles.WORDS]
        super().__init__(product, code.module.address("tiles"), tasks, operands, (code, keep))


def _needed(
    machine: tiles.Machine, p: Product, values: Mapping[str, int], tasks: int
) -> Iterator[str]:
    """The tiles of a product that is cut so: of whole pieces, and of the last one."""
    axis = p.m if values["by_rows"] else p.n
    for piece in {min(values["piece"], axis), (axis - 1) % values["piece"] + 1}:
        m, n = (piece, p.n) if values["by_rows"] else (p.m, piece)
        yield from tiles.needed(machine, m, n, _way(p))


def _way(p: Product) -> str:
    if p.packed:
        return "packed"
    return "strips" if _by_strips(p) else "inner" if p.transpose_b else "outer"


def step(p: Product, keep: Any = None) -> TileStep:
    """A step that computes a product that `fits`; `keep` is held by it."""
    row, along = (1, p.lda) if p.transpose_a else (p.lda, 1)
    down, across = (1, p.ldb) if p.transpose_b else (p.ldb, 1)
    ldb, edge, way = p.ldb, _EDGE, _way(p)
    if way in ("packed", "strips"):
        ldb = edge = columns(p.dtype)
        across = p.k if p.packed else across
    pays = p.batch * p.work // (_GRAIN if p.m > 1 else _GRAIN_VECTOR)
    wanted = min(threads.num_threads(), max(1, pays))
    own = 1 if p.packed else p.batch  # products with a B of their own, which tasks do as a whole
    share, wanted = -(-own // wanted), 1 if own > 1 else wanted
    by_rows = p.m >= _EDGE * wanted and (p.n < p.m or not (p.transpose_b or p.packed))
    axis, edge = (p.m, _EDGE) if by_rows else (p.n, edge)
    piece = axis if wanted == 1 else -(-axis // (wanted * edge)) * edge
    values = {
        "m": p.m, "n": p.n, "k": p.k, "row": row, "along": along, "ldb": ldb, "across": across,
        "ldc": p.ldc, "alpha": bits(p.alpha, p.dtype), "beta": bits(p.beta, p.dtype),
        "way": tiles.WAYS.index(way), "by_rows": by_rows, "piece": piece,
        "batch": p.batch // own, "sa": p.sa, "sb": p.sb, "sc": p.sc, "down": down, "own": own,
        "share": share,
    }  # fmt: skip
    return TileStep(p, values, -(-own // share) * -(-axis // piece), keep)

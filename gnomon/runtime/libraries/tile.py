"""Matrix products by code of our own: see `code/tiles.py`, and `tile_code.py` for what comes when.

There is one code for all sizes, where a library makes its own for each. What is small is read as it
lies; of larger products B is packed, a panel at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from gnomon import dtype as dtypes
from gnomon.code import panels as packing
from gnomon.code import tiles
from gnomon.dtype import DType
from gnomon.expr.call import rnn
from gnomon.expr.node import Buffer
from gnomon.native.serve import raw_code
from gnomon.plan.statement import Store
from gnomon.runtime.compiler import jit, objects
from gnomon.runtime.compiler.host import baseline
from gnomon.runtime.execution import threads
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.libraries import tile_code
from gnomon.runtime.libraries.product import Product, ProductStep, bits
from gnomon.runtime.libraries.tile_code import GATHERS, INNER, OUTER, PANELS, TURNS, Blocks

_GRAIN = 400_000  # multiply-adds below which another thread does not pay
_GRAIN_VECTOR = 80_000  # the same where A is a row, and what takes time is reading B
_EDGE = 16  # rows or columns that a piece is a multiple of
_SMALL = 300_000  # multiply-adds up to which all products come here
_FEW = 64  # rows below which it does not pay to pack rows of B, nor to read many as they lie
_MIDDLE = 8_000_000  # multiply-adds up to which rows of B are read as they lie
_LARGE = 100_000_000  # multiply-adds from which a library may make code for each size
_LONG = 16  # times the rows or columns of C: an inner axis that registers go along
_WIDE = 64  # bytes of a register where there are `_MANY` of them
_MANY = 32
_TALL = 512  # rows of C that share a packed panel
_DEEP = 192  # elements of the inner axis that a panel has
_ELEMENTS = {dtypes.float32: "float", dtypes.float64: "double"}


def fits(p: Product) -> bool:
    """Whether a product is one that this does about as fast as a library, or faster.

    Measured by turns on one core and on two, float32, products of 0.03 to 67 million multiply-adds
    in all four forms: oneDNN takes 1.02 to 1.1 times as long in the mean, and 0.81 to 2 times. What
    is left to libraries: many numbers by vectors; few rows or columns of C where B's rows are
    dense; what takes so long that code made for its size does not count. With 16 registers, as AVX2
    has, oneDNN takes 0.7 to 0.9 of the time but for small products and long inner axes.
    """
    if p.packed:
        return True
    if p.dtype is not dtypes.float32 or min(p.m, p.n, p.k, p.batch) < 1 or not _has_fma():
        return False
    if p.work <= _SMALL:
        return True
    if p.is_vector:
        return p.transpose_b and p.m == 1 and p.k >= 512 and p.work <= 2 * _MIDDLE
    if _machine(p.dtype).registers < _MANY:
        return _way(p) == INNER and p.work <= 2 * _MIDDLE
    if p.m < _FEW and not p.transpose_b:
        return p.work <= _MIDDLE // 2
    return p.n > _EDGE and p.work <= _LARGE


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
    return tiles.WIDEST * _machine(dtype).lanes


@functools.cache
def _has_fma() -> bool:
    """Whether a product and a sum are one instruction here; else they would be a function."""
    here = baseline()
    return "fma" in here.features or not here.triple.startswith(("x86", "i686", "amd64"))


@functools.cache
def _machine(dtype: DType) -> tiles.Machine:
    wide = baseline().vector_bytes
    registers = _MANY if wide >= _WIDE else _MANY // 2
    return tiles.Machine(_ELEMENTS[dtype], dtype.size, wide // dtype.size, registers)


class Code:
    """The code of products of one dtype: what goes over them, and those tiles that some needed."""

    def __init__(self, machine: tiles.Machine) -> None:
        self.machine = machine
        self.numbers = {name: k for k, name in enumerate(tiles.names(machine))}
        self.table = Block([0] * len(self.numbers))
        self.tiles: dict[str, jit.Module] = {}
        self._parts = [objects.compiled(make(machine)) for make in (tiles.text, packing.text)]
        over, packs = self._parts
        symbols = {name: over.address(name) for name in ("outer", "inner")}
        symbols |= {name: packs.address(name) for name in ("gather", "turn")}
        self.address = raw_code(tile_code.blocks, symbols=symbols).address("blocks")

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


_UNBOUND = dict.fromkeys(("a", "b", "c"), 0)
_operands = itemgetter(*Blocks.fields, *tiles.WORDS)


class TileStep(ProductStep):
    """A product by tiles."""

    __slots__ = ()

    def __init__(self, product: Product, values: dict[str, int], tasks: int, keep: Any) -> None:
        code = _code(product.dtype)
        code.have(_needed(code.machine, product, values))
        values["table"] = code.table.address
        super().__init__(product, code.address, tasks, _operands(values), (code, keep))


def _needed(machine: tiles.Machine, p: Product, values: Mapping[str, int]) -> list[str]:
    """The tiles of a product that is cut so: of whole pieces and panels, and of the last ones."""
    way, by_rows = values["way"], values["by_rows"]
    pieces = _sizes(p.m if by_rows else p.n, values["piece"])
    rows, columns = (pieces, {p.n}) if by_rows else ({p.m}, pieces)
    if way in (GATHERS, TURNS):
        rows = {size for m in rows for size in _sizes(m, _TALL)}
    if way in (OUTER, GATHERS, TURNS):
        columns = {size for n in columns for size in _widths(n, values["wide"], values["two"])}
    return tiles.needed(machine, rows, columns, way == INNER)


def _sizes(extent: int, piece: int) -> set[int]:
    """The sizes of an axis' pieces: whole ones, and the last.

    >>> sorted(_sizes(20, 8)), sorted(_sizes(5, 8))
    ([4, 8], [5])
    """
    return {min(extent, piece), (extent - 1) % piece + 1}


def _widths(extent: int, wide: int, two: int) -> set[int]:
    """How many columns the panels have that `tile_code.strips` goes over.

    >>> sorted(_widths(160, 48, 32)), sorted(_widths(150, 48, 32)), sorted(_widths(20, 48, 32))
    ([32, 48], [22, 32, 48], [20])
    """
    whole = max(0, extent - 2 * two) // wide
    found, left = {wide} if whole else set(), extent - whole * wide
    while left > 0:
        found.add(two if wide < left <= 2 * two else min(left, wide))
        left -= two if wide < left <= 2 * two else wide
    return found


def step(p: Product, keep: Any = None) -> TileStep:
    """A step that computes a product that `fits`; `keep` is held by it."""
    way, size, wide = _way(p), p.dtype.size, columns(p.dtype)
    row, along = (1, p.lda) if p.transpose_a else (p.lda, 1)
    ldb, across = p.ldb, p.ldb if p.transpose_b else 1
    if p.packed:
        ldb, across = wide, p.k
    shares = p.sb == 0 and way in (PANELS, OUTER)
    values = {
        **_UNBOUND, "m": p.m, "n": p.n, "k": p.k, "row": row, "along": along, "ldb": ldb,
        "across": across,
        "ldc": p.ldc, "alpha": bits(p.alpha, p.dtype), "beta": bits(p.beta, p.dtype),
        "batch": p.batch if shares else 1, "sa": p.sa, "sb": p.sb, "sc": p.sc,
        "way": way, "tall": _TALL, "deep": _DEEP, "wide": wide,
        "two": wide // tiles.WIDEST * 2, "one": bits(1.0, p.dtype), "size": size,
        **_cut(p, way, 1 if shares else p.batch),
    }  # fmt: skip
    return TileStep(p, values, -(-values["units"] // values["each"]), keep)


def _way(p: Product) -> int:
    """How B is read, which depends on sizes alone: threads never change what comes out."""
    if p.packed:
        return PANELS
    least = min(p.m, p.n)
    if p.transpose_b and not p.transpose_a and least <= _FEW // 2 and p.k >= _LONG * least:
        return INNER
    if p.transpose_b:
        return TURNS
    return OUTER if p.work <= _MIDDLE else GATHERS


def _cut(p: Product, way: int, matrices: int) -> dict[str, int]:
    """Pieces of an axis of C for each matrix, and how many of all a task does."""
    pays = p.batch * p.work // (_GRAIN if p.m > 1 else _GRAIN_VECTOR)
    wanted = min(threads.num_threads(), max(1, pays))
    threads_each = -(-wanted // matrices)
    shares_a = way != OUTER  # each task packs the columns that it multiplies by
    by_rows = p.m >= _EDGE * threads_each and (p.n < p.m or not shares_a)
    axis, edge = (p.m, _EDGE) if by_rows else (p.n, columns(p.dtype) if p.packed else _EDGE)
    piece = axis if threads_each == 1 else -(-axis // (threads_each * edge)) * edge
    parts = -(-axis // piece)
    units = parts * matrices
    return {
        "by_rows": by_rows, "piece": piece, "parts": parts, "units": units,
        "each": -(-units // wanted) if parts == 1 else 1,
    }  # fmt: skip

"""Static figures of the GPU's kernels: what `ptxas -v` tells of each entry, without a GPU.

    python benchmarks/gpu/figures.py
    python benchmarks/gpu/figures.py --rows sgd gelu --archs sm_90

For each row of the expression benchmark, for rows summed as the gradient of a look-up sums them,
for long scans, for sorts and for max pooling, on each architecture: registers of a thread, bytes of
shared memory of a block, bytes of registers that are spilt, and how much of a processor's threads
the registers let run at once; and the bytes that a load and a store move at most. A table in
Markdown; spills beyond the bound end it with an error.
"""

from __future__ import annotations

import argparse
import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))

import expr_gnomon
import numpy as np
import work

from gnomon import shadow
from gnomon.expr.call import Order, max_pool
from gnomon.expr.call.pool import Winner, Won
from gnomon.expr.node import Expr
from gnomon.plan.gpu.grid import BLOCK
from gnomon.plan.gpu.sorting import in_order
from gnomon.plan.gpu.spread import spread
from gnomon.plan.pipeline import plan
from gnomon.plan.scatter import pieces
from gnomon.plan.statement import Store, Structure
from gnomon.plan.view import views
from gnomon.runtime.kernels.gpu_kernel import ptx
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.prepare import HOST

ARCHS = ("sm_80", "sm_90", "sm_100")
SIZE = 1_000_000
REGISTERS, THREADS = 65536, 2048  # of a processor of each of these
MOVE = re.compile(r"^\s*(?:@!?%p\d+ )?(ld|st)\.global(?:\.v(\d))?\.\w(\d+)", re.MULTILINE)
GRANULE = 8  # registers of a thread are given by so many
SUMMED = "rows summed"  # as the gradient of a look-up: of so many elements, in as many rows
SCANNED = {"cumsum of all": (SIZE,), "cumsum of columns": (SIZE // 4, 4)}
COUNT = 16_384
SOURCE = COUNT, 64
SORTED = {  # what is sorted, and how many of each row are wanted
    "sort of 1000": ((1000, 1000), 1000),
    "sort": ((1, SIZE), SIZE),
    "first 10": ((1, SIZE), 10),
}
POOLED = "max pooling"  # of windows of 3 by 3, two apart: it, its winners, and its gradient
SPILLS = 0  # bytes beyond which a kernel is not as it should be
ENTRY = re.compile(r"Compiling entry function '(\w+)' for .*?(?=Compiling entry|\Z)", re.DOTALL)


class Figures(NamedTuple):
    """What the assembler tells of an entry, and the most bytes that its PTX loads and stores."""

    registers: int
    shared: int
    spilt: int
    moved: tuple[int, int]

    @property
    def occupancy(self) -> float:
        """The part of a processor's threads that its registers let run at once."""
        each = -(-self.registers // GRANULE) * GRANULE * BLOCK
        return min(1.0, REGISTERS // each * BLOCK / THREADS)


def formula_of(row: str) -> Callable[..., Any]:
    """The expression of a row."""
    if row == "every other":  # of a view, wherever its memory is
        return lambda x: x[:, 0] * 2.0 + 1.0
    if row in expr_gnomon.CASTS:
        return functools.partial(expr_gnomon.CASTS[row], to="float32")
    return expr_gnomon.FORMULAS[row]


def stores(row: str) -> list[Store]:
    """The statement of a row."""
    if row in SCANNED:
        x, dest = (shadow.TensorContainer(SCANNED[row], pad=False) for _ in range(2))
        return [Store(dest, "saveto", shadow.cumsum(x, 0))]
    if row == SUMMED:
        index, source = shadow.Tensor(np.zeros(COUNT, np.int32)), shadow.TensorContainer(SOURCE)
        dest = shadow.TensorContainer((COUNT, *SOURCE[1:]))
        return [Store(dest, "saveto", shadow.take_grad(index, source, COUNT))]
    arrays = work.arrays(row, SIZE, "float32")
    tensors = {k: shadow.Tensor(v) for k, v in arrays.items()}
    operands = [tensors[k] for k in work.ROWS[row].operands]
    value = formula_of(row)(*operands)
    dest = tensors[work.ROWS[row].place or "out"]
    if dest.dtype is not value.dtype:
        dest = shadow.TensorContainer(dest.shape, value.dtype)
    return [Store(dest, "plusto" if row == "plus" else "saveto", value)]


def told(text: str, arch: str) -> dict[str, Figures]:
    """What `ptxas` tells of the entries of a module."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text)
        command = ["ptxas", "-v", f"-arch={arch}", source, "-o", Path(folder, "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {}
    for match in ENTRY.finditer(done.stderr + done.stdout):
        numbers = [
            re.search(pattern, match[0])
            for pattern in (
                r"Used (\d+) registers",
                r"(\d+) bytes smem",
                r"(\d+) bytes spill stores",
            )
        ]
        found[match[1]] = Figures(*(int(n[1]) if n else 0 for n in numbers), moved(text, match[1]))
    return found


def moved(text: str, entry: str) -> tuple[int, int]:
    """The most bytes that one load and one store of an entry move, in a module's PTX."""
    body = text.split(f".entry {entry}(", 1)[1].split(".entry ", 1)[0]
    most = {"ld": 0, "st": 0}
    for how, many, bits in MOVE.findall(body):
        most[how] = max(most[how], int(many or 1) * int(bits) // 8)
    return most["ld"], most["st"]


def groups(row: str) -> list[Any]:
    """The statements of a row as groups, each of which is a kernel."""
    if row == POOLED:
        return [views([Store(_held(e), "saveto", e)]) for e in pooled()]
    if row not in SORTED:
        return pieces(stores(row), HOST.libraries, temporary, False)
    shape, count = SORTED[row]
    order = Order(shadow.TensorContainer(shape, pad=False), True, count)
    dest = shadow.TensorContainer(order.shape, "int32", pad=False)
    return [views([store]) for store in in_order(order, dest, "saveto", 1.0, temporary)]


def pooled() -> list[Expr]:
    """What the kernels of a max pooling compute."""
    data = shadow.TensorContainer((16, 64, 31, 31), pad=False)
    made = max_pool(data, (3, 3), (2, 2), (0, 0))
    winner = Winner(data, made.window)
    gradient = Won(_held(made), _held(winner), made.window, data.shape[2:])
    return [made.fallback(), winner.fallback(), gradient]


def _held(e: Expr) -> shadow.TensorContainer:
    """Memory for an expression."""
    return shadow.TensorContainer(e.shape, e.dtype, pad=False)


def entries(row: str, archs: list[str]) -> Iterator[tuple[str, list[Figures]]]:
    """The entries of a row, what they are dealt to, and their figures for each architecture."""
    seen = set()
    for piece in groups(row):
        assert isinstance(piece, list), "a library's work"
        structure = Structure(piece)
        if structure.key in seen:
            continue
        seen.add(structure.key)
        program = spread(plan(piece, structure))
        each = [told(ptx(program, "kernel", arch), arch) for arch in archs]
        for number, entry in enumerate(program.entries):
            yield entry.kind, [found[f"kernel_{number}"] for found in each]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", nargs="*", default=[*work.ROWS, SUMMED, *SCANNED, *SORTED, POOLED]
    )
    parser.add_argument("--archs", nargs="*", default=list(ARCHS))
    options = parser.parse_args()
    print(f"| expression | work for | bytes | {' | '.join(options.archs)} |")
    print("|---|---|---|" + "---|" * len(options.archs))
    beyond = []
    for row in options.rows:
        for kind, figures in entries(row, options.archs):
            cells = [f"{f.registers}, {f.shared}, {f.spilt}; {f.occupancy:.0%}" for f in figures]
            most = "{}, {}".format(*figures[0].moved)
            print(f"| {row} | {kind} | {most} | {' | '.join(cells)} |", flush=True)
            beyond += [row for f in figures if f.spilt > SPILLS]
    if beyond:
        print(f"registers are spilt in: {', '.join(dict.fromkeys(beyond))}", file=sys.stderr)
    return len(beyond)


if __name__ == "__main__":
    sys.exit(main())

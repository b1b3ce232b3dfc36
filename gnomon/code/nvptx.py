"""Code for NVIDIA GPUs: a grid program as PTX entries, by LLVM's NVPTX back end.

An entry takes the kernel's arguments by value, as one array of 8-byte slots in the order of
`Kernel.args`; where those are more than an entry may have, their address in the GPU's memory.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.code.target import Target
from gnomon.code.thread_block import ThreadBlockWriter
from gnomon.code.values import Arguments
from gnomon.plan.gpu.grid import BLOCK, Entry, Grid
from gnomon.plan.show import size, slot

SLOTS = 4095  # that an entry may have by value: 32764 bytes


class Module(NamedTuple):
    """LLVM IR of the entries, their names in order; whether slots come by value."""

    text: str
    names: tuple[str, ...]
    by_value: bool


def names(grid: Grid, name: str) -> tuple[str, ...]:
    """The names of the entries of a grid program."""
    return tuple(f"{name}_{k}" for k in range(len(grid.entries)))


def write(grid: Grid, target: Target, name: str = "kernel") -> Module:
    """The entries `name`_0, `name`_1, ... of a grid program."""
    kernel = grid.kernel
    arguments = Arguments(kernel.arena, 0, kernel.args)
    by_value = len(kernel.args) <= SLOTS
    parameter = f"ptr byval([{len(kernel.args)} x i64]) align 8 %b" if by_value else "ptr %b"
    declared: set[str] = set()
    functions, notes, called = [], [], names(grid, name)
    for number, entry in enumerate(grid.entries):
        writer = ThreadBlockWriter(kernel.arena, arguments, target, entry, called[number], number)
        functions += [written(writer, entry, parameter), *writer.functions]
        declared |= writer.e.declared
        notes.append(f'!{number} = !{{ptr @{called[number]}, !"maxntidx", i32 {BLOCK}}}')
    listed = ", ".join(f"!{k}" for k in range(len(notes)))
    parts = [
        *sorted(declared),
        *functions,
        "attributes #0 = { nounwind }",
        f"!nvvm.annotations = !{{{listed}}}",
        *notes,
    ]
    return Module("\n".join(parts) + "\n", called, by_value)


def written(writer: ThreadBlockWriter, entry: Entry, parameter: str) -> str:
    """An entry as a function, and its shared memory."""
    writer.program(entry.body)
    e = writer.e
    head = f"define ptx_kernel void @{writer.name}({parameter}) {{"
    lines = [head, "entry:", *e.allocas, *e.lines, "  ret void", "}"]
    if entry.shared:
        memory = f"internal addrspace(3) global [{entry.shared} x i8] undef, align 8"
        lines.insert(0, f"@{writer.name}_shared = {memory}")
    return "\n".join(lines)


def notes(grid: Grid, module: Module) -> str:
    """What a caller must know of the entries, as comments: the slots, the work of each."""
    how = "by value" if module.by_value else "by address"
    lines = [f"// slots {how}: {' '.join(map(slot, grid.kernel.args))}"]
    for entry, name in zip(grid.entries, module.names, strict=True):
        items = size(grid.kernel, entry.items)
        alone = entry.kind == "threads"
        by = "a thread" if alone else "a group of threads"
        what = "row" if entry.kind == "rows" else "element"
        what = f"{entry.width} elements" if alone and entry.width > 1 else what
        lines.append(f"// {name}: {by} for each {what}, of which there are {items}")
    return "\n".join(lines) + "\n"

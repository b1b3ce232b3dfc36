"""Runs the code of GPU entries on the processor: a thread for each of theirs, that wait alike.

LLVM's intrinsics of GPUs are exchanged for functions of the state that each thread has: its place,
the words its warp exchanges, and the barriers of warp and block.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_int32, c_int64, c_void_p

from gnomon.code import nvptx
from gnomon.code.target import gpu
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import jit
from gnomon.runtime.devices import pool
from gnomon.runtime.kernels import kernel
from gnomon.runtime.statements.prepare import pieces

REGISTERS = ("tid.x", "tid.y", "ntid.x", "ntid.y", "ctaid.x", "nctaid.x")
SUPPORT = """
declare i32 @pthread_barrier_wait(ptr)
define internal i32 @register(ptr %gpu, i32 %k) {
  %place = getelementptr i32, ptr %gpu, i32 %k
  %value = load i32, ptr %place
  ret i32 %value
}
define internal void @barrier(ptr %gpu) {
  %place = getelementptr i8, ptr %gpu, i32 40
  %all = load ptr, ptr %place
  call i32 @pthread_barrier_wait(ptr %all)
  ret void
}
define internal i32 @exchange(ptr %gpu, i32 %word, i32 %from) {
  %slots_at = getelementptr i8, ptr %gpu, i32 24
  %slots = load ptr, ptr %slots_at
  %warp_at = getelementptr i8, ptr %gpu, i32 32
  %warp = load ptr, ptr %warp_at
  %x = load i32, ptr %gpu
  %lane = and i32 %x, 31
  %mine = getelementptr i32, ptr %slots, i32 %lane
  store i32 %word, ptr %mine
  call i32 @pthread_barrier_wait(ptr %warp)
  %theirs = getelementptr i32, ptr %slots, i32 %from
  %got = load i32, ptr %theirs
  call i32 @pthread_barrier_wait(ptr %warp)
  ret i32 %got
}
define internal i32 @exchange_down(ptr %gpu, i32 %word, i32 %distance) {
  %x = load i32, ptr %gpu
  %lane = and i32 %x, 31
  %far = add i32 %lane, %distance
  %inside = icmp ule i32 %far, 31
  %from = select i1 %inside, i32 %far, i32 %lane
  %got = call i32 @exchange(ptr %gpu, i32 %word, i32 %from)
  ret i32 %got
}
define internal i32 @exchange_idx(ptr %gpu, i32 %word, i32 %from) {
  %got = call i32 @exchange(ptr %gpu, i32 %word, i32 %from)
  ret i32 %got
}
"""
EXCHANGES = (
    (r"declare [^\n]*@llvm\.nvvm[^\n]*\n", ""),
    (r"define ptx_kernel (void @\w+\(ptr ).*%b\)", r"define \1%b, ptr %gpu)"),
    (r"call void @llvm\.nvvm\.barrier0\(\)", "call void @barrier(ptr %gpu)"),
    (
        r"@llvm\.nvvm\.shfl\.sync\.(\w+)\.i32\(i32 -1, ([^,]*), ([^,]*), i32 31\)",
        r"@exchange_\1(ptr %gpu, \2, \3)",
    ),
    (r"!nvvm\.annotations[^\n]*\n", ""),
    (r"![0-9]+ = [^\n]*\n", ""),
)

libc = ctypes.CDLL(None)


class State(ctypes.Structure):
    """What a thread of a GPU knows of itself, in the order that `SUPPORT` reads."""

    _fields_ = [
        *[(name.replace(".", "_"), c_int32) for name in REGISTERS],
        ("slots", c_void_p),
        ("warp", c_void_p),
        ("block", c_void_p),
    ]


class Barrier:
    """A barrier of the C library."""

    def __init__(self, count: int) -> None:
        self.memory = ctypes.create_string_buffer(64)
        libc.pthread_barrier_init(self.memory, None, count)
        self.address = ctypes.addressof(self.memory)


def portable(text: str) -> str:
    """The text of entries with functions in place of what only GPUs have."""
    for pattern, new in EXCHANGES:
        text = re.sub(pattern, new, text)

    def register(match: re.Match[str]) -> str:
        return f"@register(ptr %gpu, i32 {REGISTERS.index(match[1])})"

    return SUPPORT + re.sub(r"@llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+)\(\)", register, text)


def run(
    stores: Sequence[Store], block_shape: tuple[int, int] = (64, 1), blocks: int = 2
) -> list[str]:
    """Carry out statements as a GPU would, in blocks of this shape: the kinds of phases."""
    return [kind for group in groups(stores) for kind in run_group(group, block_shape, blocks)]


def groups(stores: Sequence[Store]) -> Iterator[list[Store]]:
    """The groups of statements that have a kernel each."""
    for piece in pieces(stores):
        assert isinstance(piece, list), "a call of a library"
        yield piece


def run_group(stores: Sequence[Store], block_shape: tuple[int, int], blocks: int) -> list[str]:
    """Carry out one group of statements."""
    structure = Structure(stores)
    nests = plan(stores, structure)
    module = nvptx.write(nests, gpu("sm_90"))
    code = jit.compile_ir(portable(module.text), opt=1)
    values = kernel.arguments(structure)
    signature = signature_of(nests)
    sizes = signature.sizes(values)
    scratch = [pool.allocate(max(1, sizes[s.elements]) * s.itemsize) for s in signature.scratch]
    values.update((s.slot, m.address) for s, m in zip(signature.scratch, scratch, strict=True))
    words = (c_int64 * max(1, len(nests.args)))(*[values.get(slot, 0) for slot in nests.args])
    for launch in module.launches:
        shape = launch.shape(values, 100)
        assert shape[0] >= 0 and shape[1] * shape[2] <= 256
        x, y = (3, 1) if launch.kind == "threads" else block_shape
        entry = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(code.address(launch.entry))
        for block in range(blocks):
            run_block(entry, words, (x, y, block, blocks), launch.kind != "threads")
    return [launch.kind for launch in module.launches]


def run_block(
    entry: Callable[[int, int], None],
    words: ctypes.Array[c_int64],
    place: tuple[int, int, int, int],
    together: bool,
) -> None:
    """The threads of one block: at once where they work together, else one after the other."""
    x, y, block, blocks = place
    everybody = Barrier(x * y)
    warps = {}
    threads = []
    for number in range(x * y):
        warp = warps.setdefault(number // 32, (Barrier(min(32, x * y)), (c_int32 * 32)()))
        state = State(
            number % x, number // x, x, y, block, blocks,
            ctypes.addressof(warp[1]), warp[0].address, everybody.address,
        )  # fmt: skip
        if not together:
            entry(ctypes.addressof(words), ctypes.addressof(state))
            continue
        args = (ctypes.addressof(words), ctypes.addressof(state))
        threads.append((threading.Thread(target=entry, args=args), state))
    for thread, _ in threads:
        thread.start()
    for thread, _ in threads:
        thread.join()


def launches(stores: Sequence[Store]) -> tuple[nvptx.Launch, ...]:
    """How the phases of a group of statements are launched."""
    return nvptx.write(plan(stores, Structure(stores)), gpu("sm_90")).launches

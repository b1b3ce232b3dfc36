"""Runs code of AArch64 in an emulator, linked as on such a machine, one instruction each.

The emulator is `unicorn`. It is no dependency: where it is not installed, `AVAILABLE` is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

from gnomon.code import cpu
from gnomon.code.target import TARGETS
from gnomon.plan.cut import reach
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import Signature, signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import cross, elf
from gnomon.runtime.devices import pool
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels import kernel
from gnomon.runtime.kernels.division import SHARE, divide
from tests.code.gpu import groups

AVAILABLE = find_spec("unicorn") is not None
if AVAILABLE:
    import unicorn
    from unicorn import arm64_const as registers

ARM = TARGETS["aarch64"]
CODE, STACK, DATA = 0x1000_0000, 0x2000_0000, 0x4000_0000
STACK_BYTES, PAGE = 1 << 20, 4096
# what `parallel` is there: every task, one after the other
IN_TURN = """
define void @in_turn(ptr %f, ptr %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  call void %f(ptr %b, i64 %i, i64 %n)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def nothing(name: str) -> int:
    """No code here calls what is not its own."""
    raise AssertionError(f"there is no {name!r}")


def run(stores: Sequence[Store], tasks: int = 1) -> None:
    """Carry out statements with AArch64's code, each phase cut into `tasks`."""
    for group in groups(stores):
        run_group(group, tasks)


def run_group(stores: Sequence[Store], tasks: int) -> None:
    """Carry out one group of statements."""
    structure = Structure(stores)
    nests = plan(stores, structure)
    text = cpu.write(nests, ARM) + IN_TURN
    code = cross.object_file(text, ARM, kernel.pipeline(nests))
    file = elf.Object(code, elf.AARCH64)
    signature = signature_of(nests)
    values = kernel.arguments(structure)
    sizes = signature.sizes(values)
    scratch = [pool.allocate(max(1, sizes[s.elements]) * s.itemsize) for s in signature.scratch]
    values.update((s.slot, m.address) for s, m in zip(signature.scratch, scratch, strict=True))
    block = Block(words_of(signature, sizes, tasks, CODE + file.exports["in_turn"]))
    used = [(m.address, m.address + m.nbytes) for m in scratch]
    used += [(block.address, block.address + 8 * len(block.words)), *map(reach, structure.buffers)]
    machine, there = started(bytes(file.linked(CODE, nothing)), used)
    first = cpu.first_argument(len(signature.phases))
    for k, slot in enumerate(signature.args):
        value = values.get(slot, 0)
        block.words[first + k] = there(value) if slot[0] in ("leaf", "scratch") else value
    machine.reg_write(registers.UC_ARM64_REG_X0, there(block.address))
    machine.emu_start(CODE + file.exports["kernel"], machine.reg_read(registers.UC_ARM64_REG_LR))


def words_of(signature: Signature, sizes: list[int], tasks: int, parallel: int) -> list[int]:
    """A block with how the work is cut; its arguments are 0."""
    shares = [0] * (SHARE * len(signature.phases))
    phases = [word for loops in signature.phases for word in loops.words()]
    divide(phases, len(signature.phases), sizes, 1, shares)
    shares[::SHARE] = [1 if loops.inner is None else tasks for loops in signature.phases]
    return [parallel, *shares] + [0] * len(signature.args)


def started(
    code: bytes, used: Sequence[tuple[int, int]]
) -> tuple[unicorn.Uc, Callable[[int], int]]:
    """A machine with code, a stack and the pages in use here; and where an address is there."""
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    size = -(-len(code) // PAGE) * PAGE + PAGE
    machine.mem_map(CODE, size)
    machine.mem_write(CODE, code)
    machine.mem_map(STACK, STACK_BYTES)
    machine.reg_write(registers.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # floats are allowed
    machine.reg_write(registers.UC_ARM64_REG_SP, STACK + STACK_BYTES - 64)
    machine.reg_write(registers.UC_ARM64_REG_LR, CODE + size - 16)  # where to stop
    moved: list[tuple[int, int, int]] = []
    free = DATA
    for low, high in runs(used):
        both = unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE
        machine.mem_map_ptr(free, high - low, both, low)
        moved.append((low, high, free))
        free += high - low + PAGE

    def there(address: int) -> int:
        return next((address - low + to for low, high, to in moved if low <= address < high), 0)

    return machine, there


def runs(used: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The pages that these bytes lie in, those next to each other together."""
    some = [(low, high - 1) for low, high in used if low < high]
    pages = sorted({page for a, b in some for page in range(a // PAGE, b // PAGE + 1)})
    start = 0
    for k, page in enumerate(pages):
        if k + 1 == len(pages) or pages[k + 1] != page + 1:
            yield pages[start] * PAGE, (page + 1) * PAGE
            start = k + 1

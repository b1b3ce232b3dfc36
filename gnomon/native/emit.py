"""LLVM's text of a native function: its blocks, with references taken and released.

What is released where the flow leaves a block stands in blocks of its own, on the edges. All ways
out release the variables that may be set there; an error's also gives the value that stands for
errors: null of objects, 2 of truths; -1 of numbers where an error is raised.
"""

from __future__ import annotations

from gnomon.native.builder import Builder
from gnomon.native.ir import FAIL, Assign, Block, Branch, Define, Op, Return, Take
from gnomon.native.ownership import Ownership, bits, dying, is_moved

FAILED = {"i64": "-1", "double": "-1.0", "i8": "2", "ptr": "null"}


class Emitter:
    """Writes the text of a function."""

    def __init__(self, built: Builder, found: Ownership) -> None:
        self.built = built
        self.found = found
        self.registers = {r.bit: r for r in built.registers}
        self.by_label = {block.label: block for block in built.blocks}
        self.lines: list[str] = []
        self.edges: list[str] = []  # blocks on edges
        self._labels: dict[tuple[int, str], str] = {}
        self._count = 0

    def text(self) -> str:
        """The text of the body."""
        for block in self.built.blocks:
            self._block(block)
        kind = self.built.returns.llvm
        start = ["entry:", f"  %result = alloca {kind}", *(f"  {x}" for x in self.built.allocas)]
        for register in self.built.registers:
            if register.memory:
                start.append(f"  {register.text} = alloca ptr")
            if register.is_variable and register.bit & self.found.owning:
                start.append(f"  store ptr null, ptr {register.text}")
        end = ["exit:", f"  %answer = load {kind}, ptr %result", f"  ret {kind} %answer"]
        return "\n".join([*start, "  br label %start", *self.lines, *self.edges, *end])

    def _block(self, block: Block) -> None:
        self.lines.append(f"{block.label}:")
        assigned = block.assigned
        for op in block.ops:
            ends = dying(op, self.found.temporaries) & self.found.owning
            if isinstance(op, Branch):
                self._branch(op, assigned)
            elif isinstance(op, Return):
                self._return(op, assigned, ends)
            elif isinstance(op, Assign):
                self._assign(op, bool(assigned & op.defines), ends)
                assigned |= op.defines
            elif isinstance(op, Take):
                self._release(ends & ~self._take(op))
            else:
                self._plain(op, ends)

    def _plain(self, op: Op, ends: int) -> None:
        if op.text:
            self.lines.append(f"  {op.text}")
        if isinstance(op, Define) and not op.owned and op.defines & self.found.owning:
            self._retain(op.register.text)
        self._release(ends)

    def _retain(self, text: str) -> None:
        self.lines.append(f"  call void @kit.take(ptr {text})")

    def _take(self, op: Take) -> int:
        """A reference more, or that of the register that is given, which is moved."""
        if not is_moved(op, self.found.owning):
            self._retain(op.text)
            return 0
        assert op.source is not None
        if op.source.is_variable:
            self.lines.append(f"  store ptr null, ptr {op.source.text}")
        return op.source.bit

    def _assign(self, op: Assign, again: bool, ends: int) -> None:
        place, owns = op.register.text, op.defines & self.found.owning
        moved = self._take(op) if owns else 0
        if not owns or not again or not op.register.is_variable:
            self.lines.append(f"  store ptr {op.text}, ptr {place}")
        else:
            old = self._name("%o")
            self.lines.append(f"  {old} = load ptr, ptr {place}")
            self.lines.append(f"  store ptr {op.text}, ptr {place}")
            self.lines.append(f"  call void @kit.drop(ptr {old})")
        self._release(ends & ~moved)

    def _release(self, registers: int) -> None:
        for bit in bits(registers):
            self.lines += self._released(bit)

    def _released(self, bit: int) -> list[str]:
        register = self.registers[bit]
        if not register.memory:
            return [f"  call void @kit.less(ptr {register.text})"]
        name, how = self._name("%o"), "drop" if register.is_variable else "less"
        load = f"  {name} = load ptr, ptr {register.text}"
        return [load, f"  call void @kit.{how}(ptr {name})"]

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # --- ends of blocks -------------------------------------------------------------------------

    def _branch(self, op: Branch, assigned: int) -> None:
        labels = [self._edge(op.live, assigned, label) for label in op.targets]
        hint = f", {op.hint}" * bool(op.hint)
        if len(labels) == 1:
            self.lines.append(f"  br label %{labels[0]}{hint}")
        else:
            self.lines.append(f"  br i1 {op.text}, label %{labels[0]}, label %{labels[1]}{hint}")

    def _return(self, op: Return, assigned: int, ends: int) -> None:
        moved = self._take(op) if self.built.returns.is_object and not self.found.lends else 0
        self.lines.append(f"  store {self.built.returns.llvm} {op.text}, ptr %result")
        self._release(ends & ~moved)
        self.lines.append(f"  br label %{self._behind(self._variables(assigned), 'exit')}")

    def _edge(self, live: int, assigned: int, label: str) -> str:
        """The label to go to for another, behind which what is not needed there is released."""
        needed = 0 if label == FAIL else self.by_label[label].live
        ends = live & ~needed & self.found.temporaries & self.found.owning
        return self._behind(ends, self._failed(assigned) if label == FAIL else label)

    def _variables(self, assigned: int) -> int:
        return assigned & self.found.owning & ~self.found.temporaries

    def _behind(self, registers: int, label: str) -> str:
        """The label of a block that releases registers and goes on."""
        if not registers:
            return label
        known = self._labels.get((registers, label))
        if known is None:
            last = 1 << registers.bit_length() - 1
            rest = self._behind(registers ^ last, label)
            known = self._labels[registers, label] = self._name("E")
            self.edges += [f"{known}:", *self._released(last), f"  br label %{rest}"]
        return known

    def _failed(self, assigned: int) -> str:
        """The label of a block that leaves with an error."""
        variables = self._variables(assigned)
        known = self._labels.get((variables, FAIL))
        if known is None:
            known = self._labels[variables, FAIL] = self._name("F")
            kind = self.built.returns.llvm
            fails = f"  store {kind} {FAILED[kind]}, ptr %result"
            self.edges += [f"{known}:", fails, f"  br label %{self._behind(variables, 'exit')}"]
        return known

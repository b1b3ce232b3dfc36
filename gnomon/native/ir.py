"""The intermediate form of one native function: blocks of operations on registers.

An operation is mostly an instruction of LLVM as text. Those that depend on who owns a reference are
classes of their own: they say what is to hold, `ownership.py` finds out what that takes, and
`emit.py` writes it. A *register* is what may own an object: a variable of the function, or a
temporary. Sets of registers are integers with one bit for each.
"""

from __future__ import annotations

from typing import NamedTuple

from gnomon.native.kinds import HARMLESS, OBJECT, Kind

FAIL = "fail"  # the label that leaves the function with the error that is raised
ANY, HARMLESS_END = "any", "harmless"  # what may run: any code, the end of a number or text


class Value(NamedTuple):
    """What an expression gives: its name in the text, and its kind."""

    text: str
    kind: Kind
    name: str | None = None  # the variable that it was read from
    trusted: bool = False  # it is what its kind says, as a tuple's elements are, without a look
    optional: bool = False  # it was read from a slot that may hold None
    fresh: bool = False  # a new object, whose slots hold nothing to let go of


NULL = Value("null", OBJECT)


class Register:
    """A variable, in memory until the function ends, or a temporary, until its last use.

    A temporary is a value of LLVM's or, where several ways set it, in memory as well.
    """

    __slots__ = ("bit", "is_variable", "kind", "memory", "text")

    def __init__(self, bit: int, text: str, kind: Kind, memory: bool, is_variable: bool) -> None:
        self.bit, self.text, self.kind = bit, text, kind
        self.memory, self.is_variable = memory, is_variable


def freeing(kind: Kind) -> str:
    """What may run where an object of a kind is released."""
    return HARMLESS_END if kind.cls in HARMLESS else ANY


class Op:
    """An instruction as text; `runs` is what may run in it, `uses` the registers that it reads.

    `live` are the registers that are read behind it; liveness sets it.
    """

    __slots__ = ("defines", "live", "runs", "text", "uses")

    def __init__(self, text: str, uses: int = 0, runs: str = "") -> None:
        self.text, self.uses, self.runs = text, uses, runs
        self.defines = self.live = 0


class Define(Op):
    """From here on a register has the object that its text names: a new reference, or none."""

    __slots__ = ("owned", "register")

    def __init__(self, register: Register, owned: bool, uses: int) -> None:
        super().__init__("", uses)
        self.register, self.owned = register, owned
        self.defines = register.bit


class Take(Op):
    """A reference of its own to `text`, for what consumes one: that of `source`, or one more.

    `source` is the register that has just this object, if one has.
    """

    __slots__ = ("source",)

    def __init__(self, text: str, source: Register | None, uses: int) -> None:
        super().__init__(text, uses)
        self.source = source


class Assign(Take):
    """Sets a register in memory."""

    __slots__ = ("register",)

    def __init__(self, register: Register, text: str, source: Register | None, uses: int) -> None:
        super().__init__(text, source, uses)
        self.register = register
        self.defines = register.bit


class Branch(Op):
    """The end of a block: goes on at one of `targets`, the first if `text`, an `i1`, is true."""

    __slots__ = ("hint", "targets")

    def __init__(self, targets: tuple[str, ...], text: str = "", hint: str = "") -> None:
        super().__init__(text)
        self.targets, self.hint = targets, hint


class Return(Take):
    """The end of a block: leaves with a result; what is an object is a reference of its own."""

    __slots__ = ()


class Block:
    """Operations that run one after the other; the last is a `Branch` or a `Return`."""

    __slots__ = ("assigned", "label", "live", "next", "ops")

    def __init__(self, label: str) -> None:
        self.label = label
        self.ops: list[Op] = []
        self.next: list[Block] = []  # where it goes on, unless with an error
        self.live = 0  # registers that are read from its beginning on
        self.assigned = 0  # variables that some way to it has set

    @property
    def targets(self) -> tuple[str, ...]:
        """Where it goes on."""
        end = self.ops[-1] if self.ops else None
        return end.targets if isinstance(end, Branch) else ()

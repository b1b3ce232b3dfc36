"""Steps out of oneDNN's primitives: phases of tasks, each task a list of operations in native code.

An operation gives a memory object its address (operand's address plus offset), or executes a
primitive. Operand 0 is the step's workspace: copies in other layouts, partial results, scratch; the
last one are copies of its weight, which lie behind these unless they are kept. The addresses stand
in one block of int64 words that all phases read, so that `DnnStep.bind` writes a few words and
touches nothing of oneDNN. A task stops at the first status that is not zero and leaves it in its
phase's block, `[status, tasks, table of tasks, operands, masked]`. Two threads must not run one
step at the same time: they would share its memory objects and its workspace.

What oneDNN calls `gemm` moves the stack pointer into its own buffers: a signal that came then would
write its frame over other memory. Phases with it are `masked`: no signal reaches their threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gnomon.base import ParamError, complaint
from gnomon.native.memory import CFunction, Struct, address_of, store
from gnomon.native.serve import raw_code
from gnomon.native.words import Ints, Words, native, scratch
from gnomon.runtime.compiler import jit
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Program, Status, Step, estimated
from gnomon.runtime.execution.thread_code import SIG_SETMASK, mask_signals, pthread_sigmask
from gnomon.runtime.execution.threads import gnomon_parallel
from gnomon.runtime.ffi import Block, symbol
from gnomon.runtime.kernels.workspace import Part, working_memory
from gnomon.runtime.libraries.dnn.library import (
    ARGUMENT,
    STATUS,
    Description,
    Owned,
    Primitive,
    library,
    memory,
    reorder,
)
from gnomon.runtime.once import once

WORKSPACE = 0
_UNBOUND = 100

_execute = CFunction("int dnnl_primitive_execute(void *, void *, int, void *)")
_set_place = CFunction("int dnnl_memory_set_data_handle(void *, void *)")
_get_threads = CFunction("int omp_get_max_threads()")
_set_threads = CFunction("void omp_set_num_threads(int)")


class Tasks(Struct):
    """A phase's block: `table` has the address of each task's list, `operands` where those are."""

    status: int
    count: int
    table: int
    operands: int
    masked: int


class Operation(Struct):
    """What a task does: give memory an operand's address, or, with a stream, execute a primitive.

    It stands in a task's list behind their number. `x` and `y` are the operand and an offset, or
    the number of arguments and where they are.
    """

    what: int
    x: int
    y: int
    stream: int


@native
def phase(tasks: Tasks) -> None:
    tasks.status = 0
    gnomon_parallel(address_of(do_task), tasks, tasks.count)


@native
def do_task(tasks: Tasks, task: int, count: int) -> None:
    if tasks.masked == 0:
        do_operations(tasks, task)
        return
    before = scratch(16)
    mask_signals(before)
    do_operations(tasks, task)
    pthread_sigmask(SIG_SETMASK, before, None)


@native
def do_operations(tasks: Tasks, task: int) -> None:
    found = Words(Words(tasks.table)[task])
    operation = Operation((found + 1).address)
    before = _get_threads()
    _set_threads(1)
    for _ in range(found[0]):
        status = done(operation, Words(tasks.operands))
        if status != 0:
            store(Ints(tasks.address), status, "monotonic")
            break
        operation = operation + 4
    _set_threads(before)


@native
def done(operation: Operation, operands: Words) -> int:
    """The status of an operation."""
    if operation.stream != 0:
        return _execute(operation.what, operation.stream, operation.x, operation.y)
    base = operands[operation.x]
    return _set_place(operation.what, base + operation.y) if base != 0 else _UNBOUND


@once
def _code() -> jit.Module:
    found = library()
    names = ("dnnl_primitive_execute", "dnnl_memory_set_data_handle")
    symbols = {name: symbol(found.dnnl, name) for name in names}
    names = ("omp_get_max_threads", "omp_set_num_threads")
    symbols |= {name: symbol(found.gomp, name) for name in names}
    symbols["gnomon_parallel"] = threads.parallel_address()
    return raw_code(phase, symbols=symbols)


def _meaning(status: int) -> str:
    if status == _UNBOUND:
        return "an operand has no address: bind it first"
    return f"oneDNN: {STATUS[status] if status < len(STATUS) else status}"


class _Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Arena:
    """Offsets in the workspace; what is never needed at the same time may share bytes."""

    def __init__(self) -> None:
        self.size = self.next = 0

    def reserve(self, nbytes: int) -> int:
        """The offset of `nbytes` bytes from `next` on, aligned to 64."""
        offset = self.next
        self.next += -(-nbytes // 64) * 64
        self.size = max(self.size, self.next)
        return offset


class Place:
    """An operand, or a part of it: its layout, and where its bytes are."""

    __slots__ = ("description", "offset", "operand")

    def __init__(self, description: Description, operand: int, offset: int) -> None:
        self.description = description
        self.operand = operand
        self.offset = offset

    def part(self, start: int, count: int) -> Place:
        """`count` of the outermost axis; the layout's descriptor holds where they start."""
        shape = (count, *self.description.shape[1:])
        at = (start, *[0] * (len(shape) - 1))
        return Place(self.description.part(shape, at), self.operand, self.offset)


class Put(NamedTuple):
    """The memory object of a place gets its address: so far behind that of the operand."""

    place: Place
    offset: int


class Run(NamedTuple):
    """A primitive is executed on the memory objects of places."""

    what: Primitive
    places: dict[str, Place]


class Task:
    """The operations that one thread does in order; each step has memory objects of its own."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.operations: list[Put | Run] = []
        self.masked = False

    def temporary(self, description: Description) -> Place:
        """A place in the workspace."""
        return Place(description, WORKSPACE, self.arena.reserve(description.nbytes))

    def run(self, what: Primitive, operands: Mapping[str, Place]) -> None:
        """Executes a primitive on these places, with scratch of the workspace if it wants any."""
        places = dict(operands)
        wanted = what.scratch
        if wanted is not None:
            places["scratchpad"] = self.temporary(wanted)
        self.operations += [Put(place, place.offset) for place in places.values()]
        self.operations.append(Run(what, places))
        self.masked |= "gemm" in what.name

    def copy(self, source: Place, dest: Place) -> None:
        """Copies from one layout to the other."""
        self.run(reorder(source.description, dest.description), {"src": source, "dst": dest})

    def fetched(self, place: Place, wanted: Description) -> Place:
        """`place` in the wanted layout: itself, or a copy in the workspace."""
        if place.description == wanted:
            return place
        copy = self.temporary(wanted)
        self.copy(place, copy)
        return copy

    def result(self, place: Place, given: Description) -> Place:
        """Where a primitive puts what goes to `place`: there, or first into the workspace."""
        return place if place.description == given else self.temporary(given)

    def store(self, result: Place, place: Place) -> None:
        """Brings what `result` stands for to its place, if it is not there."""
        if result is not place:
            self.copy(result, place)

    def repeat(self, begin: int, moved: Mapping[int, int]) -> None:
        """What was recorded from an operation on once more, some operands' parts moved by bytes."""
        for each in self.operations[begin:]:
            if isinstance(each, Put):
                each = Put(each.place, each.offset + moved.get(each.place.operand, 0))
            self.operations.append(each)

    def made(self) -> tuple[Block, list[Any]]:
        """The list as native code reads it, for one step; and what has to live as long."""
        held: dict[Place, Owned] = {}
        tables: dict[int, Any] = {}
        words, stream = [len(self.operations)], library().stream.value or 0
        for each in self.operations:
            if isinstance(each, Put):
                place = each.place
                if place not in held:
                    held[place] = memory(place.description)
                words += [held[place].address, place.operand, each.offset, 0]
                continue
            what, places = each
            if id(places) not in tables:  # else it is repeated
                tables[id(places)] = _table(places, held)
            words += [what.address, len(places), ctypes.addressof(tables[id(places)]), stream]
        ran = [each.what for each in self.operations if isinstance(each, Run)]
        return Block(words), [ran, *tables.values(), *held.values()]


def _table(places: Mapping[str, Place], held: Mapping[Place, Owned]) -> Any:
    """The arguments of an execution."""
    arguments = (_Argument * len(places))()
    for argument, (name, place) in zip(arguments, places.items(), strict=True):
        argument.number, argument.memory = _number(name), held[place].address
    return arguments


def _number(name: str) -> int:
    """An operand's number; `src3` is the fourth of several sources."""
    return ARGUMENT[name] if name in ARGUMENT else 1024 + int(name.removeprefix("src"))


class Addresses:
    """Where a step's operands are: the words that its phases read, and the memory they own.

    `kept` has the copies of the weight; None where they lie in the workspace, from `behind` on.
    """

    __slots__ = ("behind", "block", "kept", "last", "workspace")

    def __init__(self, operands: int, behind: int, copies: int) -> None:
        self.block, self.last = Block(2 + operands), 1 + operands
        self.behind = behind
        self.kept: pool.Storage | None = None
        self.workspace: pool.Storage | Part | None = None
        if behind + copies:
            self.give(working_memory(behind + copies))

    def give(self, workspace: pool.Storage | Part) -> None:
        """Sets the workspace."""
        self.workspace = workspace
        self.block.words[WORKSPACE] = workspace.address
        if self.kept is None:
            self.block.words[self.last] = workspace.address + self.behind

    def keep(self, copies: pool.Storage) -> None:
        """Sets where the copies of the weight are, outside of the workspace."""
        self.kept = copies
        self.block.words[self.last] = copies.address


class Phase:
    """Tasks that may run at the same time, after all of the phase before."""

    def __init__(self, name: str, tasks: Sequence[Task], bytes: int = 0, flops: int = 0) -> None:
        self.name, self.tasks, self.bytes, self.flops = name, tasks, bytes, flops

    def step(self, operands: Addresses) -> Step:
        """The phase as a step that reads its operands' addresses in `operands`."""
        made = [task.made() for task in self.tasks]
        lists = [one for one, _ in made]
        table = Block([one.address for one in lists])
        masked = any(task.masked for task in self.tasks)
        block = Block([0, len(lists), table.address, operands.block.address, int(masked)])
        keep = (_code(), operands, lists, table, block, [kept for _, kept in made])
        status = Status(block.address, _meaning)
        code, work = _code().address("phase"), estimated(self.bytes, self.flops)
        step = Step(code, block.address, keep, self.name, self.bytes, self.flops, status, work)
        every = (each for task in self.tasks for each in task.operations)
        step.held = sum(p.held for p in {each.what for each in every if isinstance(each, Run)})
        return step


class Copies(NamedTuple):
    """What brings a weight into oneDNN's layouts: phases, the bytes they fill, and `layouts`.

    `layouts` are that of the weight itself, and those of its copies in their order.
    """

    phases: Sequence[Phase] = ()
    nbytes: int = 0
    layouts: tuple[Description, ...] = ()


NOTHING_COPIED = Copies()
NO_LAYOUTS: Mapping[str, Any] = {}


class DnnStep(Program):
    """Work of oneDNN as a step: its operands are named, and their addresses can change.

    `operands` are the names that `bind` takes, `implementation` is what oneDNN calls its code,
    `layouts` gives for each operand that was left to choose the layout it has to have. `copies` of
    the operand `weight` are made at each run, unless `keep_copies` is called.
    """

    __slots__ = (
        "_addresses", "_given", "copies", "implementation", "layouts", "operands",
        "workspace_bytes",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        operands: Sequence[str],
        phases: Sequence[Phase],
        arena: Arena,
        implementation: str,
        copies: Copies = NOTHING_COPIED,
        layouts: Mapping[str, Any] = NO_LAYOUTS,
    ) -> None:
        self._given = name, operands, phases, arena, implementation, copies, layouts
        self.operands = tuple(operands)
        self.implementation = implementation
        self.copies = copies
        self.workspace_bytes = arena.size + copies.nbytes
        self.layouts = layouts
        self._addresses = Addresses(len(self.operands), arena.size, copies.nbytes)
        every = [*copies.phases, *phases]
        super().__init__([phase.step(self._addresses) for phase in every], name)

    def keep_copies(self, storage: pool.Storage) -> Program:
        """From now on the copies of the weight are in `storage`; gives the program that makes them.

        The step itself makes them no more: that program has to run when the weight has changed.
        """
        count, keep = len(self.copies.phases), self.keep
        making = Program(self.steps[:count], f"{self.name}: weight")
        self.workspace_bytes -= self.copies.nbytes
        self._addresses.keep(storage)
        self.copies = NOTHING_COPIED
        super().__init__(self.steps[count:], self.name)
        self.keep = making.keep = keep
        return making

    def address(self, operand: str) -> int:
        """Where an operand is."""
        found: int = self._addresses.block.words[1 + self.operands.index(operand)]
        return found

    def places(self) -> Sequence[int]:
        """Where the operands are, in their order."""
        return [self.address(name) for name in self.operands]

    def moved(self, addresses: Sequence[int], owners: object) -> DnnStep:
        """What was planned for this step, with memory objects and a workspace of its own."""
        made = DnnStep(*self._given)
        made.bind(*addresses)
        made.keep = (made.keep, owners)
        return made

    def bind(self, *addresses: int, **named: int) -> None:
        """From now on the operands, in the order of `operands` or by name, are at these addresses.

        Raises:
            ParamError: the step has no operand of that name, or not so many.
        """
        if len(addresses) > len(self.operands):
            expected = f"at most {len(self.operands)}"
            raise ParamError(complaint(self.name, "addresses", expected, len(addresses)))
        for name, address in [*zip(self.operands, addresses, strict=False), *named.items()]:
            if name not in self.operands:
                raise ParamError(complaint(self.name, name, f"one of {self.operands}", address))
            self._addresses.block.words[1 + self.operands.index(name)] = address

    def use_workspace(self, storage: pool.Storage) -> None:
        """From now on the step works in `storage`, which steps that run one by one may share.

        Raises:
            ParamError: it is smaller than `workspace_bytes`.
        """
        if storage.nbytes < self.workspace_bytes:
            expected = f"at least {self.workspace_bytes} bytes"
            raise ParamError(complaint(self.name, "storage", expected, storage.nbytes))
        self._addresses.give(storage)


def share_workspace(
    steps: Iterable[Step], storage: pool.Storage | None = None
) -> pool.Storage | None:
    """Gives all oneDNN steps among `steps`, which run one by one, one workspace.

    It is `storage` where that is large enough, else a new one; None where none is needed.
    """
    ours = [step for step in steps if isinstance(step, DnnStep)]
    nbytes = max((step.workspace_bytes for step in ours), default=0)
    if ours and (storage is None or storage.nbytes < nbytes):
        storage = pool.allocate(max(64, nbytes))
    for step in ours:
        assert storage is not None
        step.use_workspace(storage)
    return storage

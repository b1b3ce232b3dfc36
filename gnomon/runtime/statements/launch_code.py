"""Starts a step from Python objects: reads them, checks, places, runs; a native function.

`launch(recipe, *registers)` follows a *recipe*, an array of 64-bit words. What it is called with
are the first registers; then the recipe says, instruction by instruction, which attribute or
element of a register comes next: another object for a register, or a value: an address, a number.
Values are checked against what the code was made for and written into the argument blocks; then the
step runs. Natively all of that is one call from Python's side, so that a small statement costs what
its kernel does and 0.1 us; nothing of it can be interrupted half done.

The recipe, in words (see `launch.py`, which writes it):

    0  instructions, their address       each: source, type, offset, name, index, kind, base, delta
    2  pairs, their address              each: i, low, high, j, low, high
    4  places, their address             each: address of a word, value, offset
    6  address of an int32, its value    how many threads there are
    8  address of an int64, its value    how often tensors have changed their shapes
   10  function, block, status           of the step
   13  whether others may run meanwhile  (the GIL is let go)
   14  busy                              1 while it runs

An instruction takes an attribute of a register, and of that element `index` (none where it is
negative). The attribute is what lies `offset` bytes behind an object of that `type` (see
`fields.py`), or without a type what Python finds by its `name`; without both, the register itself.
Kinds: `OBJECT` for the next register; `ADDRESS`: not 0, and `delta` behind that of instruction
`base`, where `base` is not negative; numbers as float32, float64, int64; `SAME`, the very object at
`base`; `TWIN`, what is in register `base`, once more. A pair is two pieces of memory that must lie
apart. While others may run, the owners of the memory are held: they may resize a tensor.
"""

from __future__ import annotations

from typing import Any, cast

from gnomon.native.memory import swap
from gnomon.native.words import (
    Ints,
    Words,
    call,
    call_aside,
    double_bits,
    native,
    scratch,
    single_bits,
    there,
    wrapped,
)

OBJECT, ADDRESS, FLOAT, DOUBLE, INTEGER, SAME, TWIN = range(7)
WORDS = 15  # of a recipe
MOST = 512  # instructions
REFUSED, DONE, FAILED = range(3)
_UNFIT = object()  # an object that is not as the recipe has it
_OWNER = "owner"  # what a buffer calls the owner of its memory


@native
def _attribute(row: Words, owner: object) -> object:
    """What an instruction takes of the object in its register."""
    if row[1]:
        cls = cast(type, there(row[1]))
        if not isinstance(owner, cls):
            return _UNFIT
        held = Words(id(owner) + row[2])[0]
        return there(held) if held else _UNFIT
    return getattr(owner, cast(str, there(row[3]))) if row[3] else owner


@native
def number_word(kind: int, x: object) -> int:
    """A number as a kernel takes it."""
    if kind == DOUBLE:
        return double_bits(float(cast(Any, x)))
    if kind == FLOAT:
        return single_bits(float(cast(Any, x)))
    return wrapped(cast(int, x))


@native
def _is_read(
    recipe: Words, registers: Words, count: int, values: Words, owners: list[object] | None
) -> bool:
    """Whether all is as the instructions want it: registers and values are there then."""
    row = Words(recipe[1])
    for k in range(recipe[0]):
        owner = there(registers[row[0]])
        kind = row[5]
        x = _attribute(row, owner)
        if row[4] >= 0:
            x = cast("tuple[object, ...]", x)[row[4]]
        if x is _UNFIT:
            return False
        if kind == OBJECT:
            registers[count] = id(x)
            count += 1
        elif kind == ADDRESS:
            values[k] = cast(int, x)
            if values[k] <= 0 or (row[6] >= 0 and values[k] != values[row[6]] + row[7]):
                return False
            if owners is not None:
                owners.append(getattr(owner, _OWNER))
        elif kind == SAME:
            if id(x) != row[6]:
                return False
        elif kind == TWIN:
            if id(x) != registers[row[6]]:
                return False
        else:
            values[k] = number_word(kind, x)
        row = row + 8
    return True


@native
def _are_apart(recipe: Words, values: Words) -> bool:
    """Whether no pair of pieces of memory overlaps."""
    pair = Words(recipe[3])
    for _ in range(recipe[2]):
        a = values[pair[0]]
        b = values[pair[3]]
        if a + pair[2] > b + pair[4] and b + pair[5] > a + pair[1]:
            return False
        pair = pair + 6
    return True


@native
def _holds(recipe: Words) -> bool:
    """Whether there are as many threads, and as many changes of shapes."""
    return Ints(recipe[6])[0] == recipe[7] and Words(recipe[8])[0] == recipe[9]


@native
def start(recipe: Words, registers: Words, count: int) -> int:
    """Run the step for the objects whose addresses are the first registers.

    REFUSED, with nothing done, where the recipe does not hold: another thread runs it, or other
    objects came; FAILED where the step did.
    """
    values = scratch(recipe[0])
    owners: list[object] | None = [] if recipe[13] else None
    try:
        if not _is_read(recipe, registers, count, values, owners):
            return REFUSED
    except Exception:
        return REFUSED
    if (
        not _are_apart(recipe, values)
        or not _holds(recipe)
        or not swap(recipe + 14, 0, 1, "acquire")
    ):
        return REFUSED
    place = Words(recipe[5])
    for _ in range(recipe[4]):
        word = Words(place[0])
        word[0] = values[place[1]] + place[2]
        place = place + 3
    if owners is None:
        call(recipe[10], recipe[11])
    else:
        call_aside(recipe[10], recipe[11])
    failed = Ints(recipe[12])[0]
    recipe[14] = 0
    return FAILED if failed else DONE


@native
def launch(recipe: int, *given: object) -> bool | None:
    """True when all is done, None when the step failed, False where the recipe does not hold."""
    words = Words(recipe)
    registers = scratch(words[0] + len(given))
    for k in range(len(given)):
        registers[k] = id(given[k])
    done = start(words, registers, len(given))
    if done == FAILED:
        return None
    return done == DONE

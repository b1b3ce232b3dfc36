"""Functions without objects for `test_raw.py`: each takes a struct of words and a number."""

from __future__ import annotations

from gnomon.native.memory import (
    CFunction,
    Int32,
    Struct,
    add,
    address_of,
    divided,
    load,
    pause,
    shared,
    store,
    swap,
)
from gnomon.native.words import Ints, Reals, call, native, scratch

absolute = CFunction("int abs(int)")
long_absolute = CFunction("long labs(long)")
rounded = CFunction("long lround(double)")
rounded_single = CFunction("long lroundf(float)")
copy = CFunction("void * memcpy(void *, void *, long)")
printed = CFunction("int snprintf(void *, long, void *, ...)")
yielded = CFunction("int sched_yield()")
HELD = shared(Ints)
SIZE = 3


class Record(Struct):
    """Words of all kinds."""

    total: int
    other: int
    third: int
    narrow: Int32
    real: float
    rest: int


@native
def summed(r: Record, count: int) -> int:
    total = 0
    for k in range(count):
        total += (r + Record.rest)[k]
    r.total = total
    return total


@native
def words_of_all_kinds(r: Record, count: int) -> None:
    r.narrow = r.total + count
    r.other = r.narrow * 2
    r.real = 0.5
    r.real = r.real * 3 + 1.0
    Reals(r.address + 8 * Record.rest)[0] = r.real
    Ints((r + Record.third).address)[1] = count


@native
def divided_by(r: Record, count: int) -> int:
    big = max(r.total, 0)
    r.other = divided(big, count + 1)
    r.third = min(r.other, count) - SIZE
    return big - (count + 1) * r.other


@native
def atomics(r: Record, count: int) -> bool:
    narrow = Ints(r.address + 8 * Record.narrow)
    store(narrow, r.total, "release")
    before = add(r, count) + add(narrow, -1, "monotonic")
    r.third = add(r + Record.other, load(narrow, "acquire"), "acq_rel")
    done = swap(narrow, count, 9, "acq_rel")
    if swap(r, 7, before, "release") or not done:
        before = add(narrow, count, "acquire") + load(r)
    r.other = before
    return done


@native
def twice(r: Record, count: int) -> int:
    r.total = r.total + count
    return 2 * count


@native
def called_by_address(r: Record, count: int) -> int:
    found = 0
    while True:
        found += call(address_of(twice), r.address, count)
        if found >= count:
            break
    return found


@native
def functions_in_c(r: Record, count: int) -> int:
    memory = scratch(4)
    copy(memory, r + Record.rest, 32)
    r.total = absolute(-count) + long_absolute(memory[0])
    r.third = rounded(count * 0.75) + rounded_single(float(count))
    memory[2] = 0x00646C25  # %ld
    printed(memory, 16, memory + 2, count + 40)
    yielded()
    return memory[0] & 0xFFFF


@native
def globals_in_memory(r: Record, count: int) -> int:
    HELD[0] = 0
    for k in range(count):
        add(HELD, k)
        pause()
    return HELD[0]


@native
def counted(r: Record, count: int) -> None:
    lock = r + Record.rest
    for _ in range(count):
        add(r, 1, "monotonic")
        while not swap(lock, 0, 1, "acquire"):
            pause()
        r.other += 1
        r.third = r.other
        store(lock, 0, "release")


ALL = (
    summed, words_of_all_kinds, divided_by, atomics, called_by_address, functions_in_c,
    globals_in_memory,
)  # fmt: skip


@native
def makes_a_list(r: Record, count: int) -> None:
    """PyList_New: a raw function has no objects"""
    r.total = len([])


@native
def has_a_name(r: Record, count: int) -> bool:
    """'a': a raw function has no objects"""
    return load(r) == "a"


@native
def may_fail(r: Record, count: int) -> None:
    """a raw function raises no error"""
    r.total = scratch(count)[0]


@native
def no_such_word(r: Record, count: int) -> None:
    """Record has no word 'size'"""
    r.size = 1


@native
def no_such_order(r: Record, count: int) -> int:
    """an order is one of monotonic, acquire, release, acq_rel, seq_cst"""
    return load(r, "relaxed")


@native
def too_few(r: Record, count: int) -> int:
    """abs takes 1 arguments"""
    return absolute()


@native
def no_address(r: Record, count: int) -> int:
    """'len' is no native function"""
    return address_of(len)


@native
def no_word(r: Record, count: int) -> int:
    """a word is expected, not a plain int"""
    return load(count)


REFUSED = (
    makes_a_list, has_a_name, may_fail, no_such_word, no_such_order, too_few, no_address, no_word,
)  # fmt: skip

"""Object files: every kind of place in them is filled in, and damaged ones are refused."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Iterator

import pytest

from gnomon.base import GnomonError
from gnomon.code.target import TARGETS
from gnomon.runtime.compiler import cross, elf, jit

# functions and variables of its own and of others, constants, and a table of addresses
TEXT = """
@given_word = external global i64
@numbers = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@wide = private constant <4 x i64> <i64 1, i64 2, i64 3, i64 4>, align 32
@seen = constant i64 77
@table = private constant [2 x ptr] [ptr @own, ptr @labs]
declare i64 @labs(i64)
declare i64 @given(i64)
define i64 @own(i64 %a) noinline { %r = add i64 %a, 1
  ret i64 %r }
define i64 @calls(i64 %a) { %x = call i64 @labs(i64 %a)
  %y = call i64 @given(i64 %x)
  %z = call i64 @own(i64 %y)
  ret i64 %z }
define i64 @constants(i64 %a) { %p = getelementptr i64, ptr @numbers, i64 %a
  %x = load i64, ptr %p
  %w = load <4 x i64>, ptr @wide
  %q = extractelement <4 x i64> %w, i64 %a
  %r = add i64 %x, %q
  ret i64 %r }
define i64 @word(i64 %a) { %x = load i64, ptr @given_word
  %r = add i64 %x, %a
  ret i64 %r }
define i64 @through(i64 %a, i64 %k) { %p = getelementptr ptr, ptr @table, i64 %k
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %a)
  ret i64 %r }
"""
NAMES = {"own", "calls", "constants", "word", "through", "seen"}
SHORT = "define i64 @one() { ret i64 1 }"
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@FUNCTION
def given(a: int, _: int) -> int:
    return a * 3


WORD = ctypes.c_int64(1000)
SYMBOLS = {
    "given": ctypes.cast(given, ctypes.c_void_p).value or 0,
    "given_word": ctypes.addressof(WORD),
}


@pytest.mark.parametrize("opt", [-1, 0, 1, 2])
def test_every_kind_of_place(opt: int) -> None:
    module = jit.load_object(jit.object_code(TEXT, opt=opt), symbols=SYMBOLS)
    assert set(module.names) == NAMES

    def call(name: str, *arguments: int) -> int:
        return FUNCTION(module.address(name))(*arguments, *[0] * (2 - len(arguments)))

    assert call("own", 4) == 5
    assert call("calls", -5) == 16
    assert [call("constants", k) for k in range(4)] == [11, 22, 33, 44]
    assert call("word", 1) == 1001
    assert (call("through", -7, 0), call("through", -7, 1)) == (-6, 7)
    assert ctypes.c_int64.from_address(module.address("seen")).value == 77


def test_what_no_library_has_is_named() -> None:
    with pytest.raises(GnomonError, match="no library has 'given"):
        jit.load_object(jit.object_code(TEXT))


@pytest.mark.parametrize(
    "text",
    [
        "@x = global i64 3",
        "@x = global [9 x i64] zeroinitializer",
        "@x = thread_local constant i64 3",
        "@x = common global i64 0",
    ],
)
def test_data_that_can_be_written_is_refused(text: str) -> None:
    code = jit.object_code(f"{text}\ndefine ptr @f() {{ ret ptr @x }}")
    with pytest.raises(GnomonError):
        jit.load_object(code)


def test_files_of_other_machines_are_refused() -> None:
    other = "aarch64" if elf.MACHINES["x86_64"] is jit._machine() else "x86-64"
    with pytest.raises(GnomonError, match="another kind of file"):
        jit.load_object(cross.object_file(SHORT, TARGETS[other]))


# --- damage ---------------------------------------------------------------------------------------


def survives(code: bytes) -> bool:
    """Whether damaged code was loaded; nothing else than an error of ours may come of it."""
    try:
        jit.load_object(code, symbols=SYMBOLS).close()
    except GnomonError:
        return False
    return True


def test_files_that_end_too_early() -> None:
    code = jit.object_code(TEXT)
    assert survives(code)
    assert not any(survives(code[:size]) for size in range(len(code)))


def test_random_damage_ends_no_process() -> None:
    """Of flipped bits, bytes set to anything, and words set to what overflows."""
    draw, code = random.Random(5), jit.object_code(TEXT)
    words = [0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 63, (1 << 64) - 1]
    counts = [0, 0]
    for _ in range(4000):
        damaged = bytearray(code)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(code) - 8)
            if draw.random() < 0.5:
                damaged[at] = draw.randrange(256)
            else:
                struct.pack_into("<Q", damaged, at, draw.choice(words))
        counts[survives(bytes(damaged))] += 1
    assert min(counts) > 100, "some damage is seen, some is in the code itself"


def test_every_byte_of_the_tables() -> None:
    """All that is no machine code: headers, symbols, relocations, names of sections."""
    code = jit.object_code(TEXT)
    table, count = struct.unpack_from("<Q", code, 0x28)[0], struct.unpack_from("<H", code, 0x3C)[0]
    places = set(range(64)) | set(range(table, table + 64 * count))
    for k in range(count):
        _, kind, _, _, offset, size, *_ = struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * k)
        if kind != 1:
            places |= set(range(offset, offset + size))
    for at in places:
        for value in (0, 0xFF, code[at] ^ 1, code[at] ^ 0x80):
            survives(code[:at] + bytes([value]) + code[at + 1 :])


def test_addresses_that_are_too_far() -> None:
    file = elf.Object(jit.object_code(TEXT), jit._machine())
    kinds = {way for _, way, *_ in file._relocations}
    assert kinds == {elf.DIRECT, elf.BRANCH, elf.TABLE}
    file._relocations = [(r[0], r[1], r[2], r[3], 1 << 40) for r in file._relocations]
    with pytest.raises(GnomonError, match="cannot be written"):
        file.linked(1 << 40, lambda name: 1)


def test_what_a_branch_reaches_is_called_without_a_jump() -> None:
    code = cross.object_file(TEXT, TARGETS["x86-64"])
    file, base = elf.Object(code, elf.X86_64), 1 << 40
    for there, near in ((base - (1 << 30), True), (base + (1 << 33), False)):
        image = file.linked(base, lambda name, there=there: there)
        (offset,) = {at for at, way, _, k, _ in file._relocations
                     if way == elf.BRANCH and file._names.get(k) == "given"}  # fmt: skip
        target = base + offset + 4 + struct.unpack_from("<i", image, offset)[0]
        assert (target == there) == near
        assert near or image[target - base :][:8] == elf.X86_64.jump


# --- AArch64, whose instructions are taken apart here ---------------------------------------------


def instructions(image: bytes, start: int, count: int) -> Iterator[tuple[int, int]]:
    for at in range(start, start + 4 * count, 4):
        yield at, struct.unpack_from("<I", image, at)[0]


def reached(image: bytes, base: int, start: int, count: int) -> list[int]:
    """Addresses that a function forms by a page and an offset, or branches to."""
    found, pages = [], dict[int, int]()
    for at, word in instructions(image, start, count):
        first, last = word >> 5 & 31, word & 31
        if word & 0x9F00_0000 == 0x9000_0000:  # adrp
            pages[last] = pages_of(word, base + at)
        elif word & 0xFFC0_0000 == 0x9100_0000 and first in pages:  # add
            found.append(pages[first] + (word >> 10 & 0xFFF))
        elif word & 0xFFC0_0000 == 0xF940_0000 and first in pages:  # ldr of 64 bits
            found.append(pages.pop(first) + 8 * (word >> 10 & 0xFFF))
        elif word & 0x7C00_0000 == 0x1400_0000:  # b, bl
            distance = (word & 0x3FF_FFFF) - ((word & 0x200_0000) << 1)
            found.append(base + at + 4 * distance)
    return found


def pages_of(word: int, here: int) -> int:
    number = (word >> 5 & 0x7_FFFF) << 2 | word >> 29 & 3
    number -= (number & 0x10_0000) << 1
    return (here >> 12) + number << 12


ARM = """
@given_word = external global i64
@text = private constant [8 x i8] c"somewhat"
declare i64 @given(i64)
define i64 @calls(i64 %a) { %z = call i64 @given(i64 %a)
  %r = add i64 %z, 1
  ret i64 %r }
define i64 @own(i64 %a) { %z = call i64 @calls(i64 %a)
  %r = add i64 %z, 1
  ret i64 %r }
define i64 @word() { %x = load i64, ptr @given_word
  ret i64 %x }
define ptr @place() { ret ptr @text }
"""


@pytest.mark.parametrize("base", [0x4000_0000, 0x7FFF_1234_5000])
def test_aarch64(base: int) -> None:
    code = cross.object_file(ARM, TARGETS["aarch64"], 0)
    file, outside = elf.Object(code, elf.AARCH64), {"given": 1 << 46, "given_word": 3 << 45}
    image = bytes(file.linked(base, outside.__getitem__))
    start = file.exports

    def row_of(place: int) -> int:
        return int(struct.unpack_from("<Q", image, place - base)[0])

    (call,) = [x for x in reached(image, base, start["calls"], 5) if x != base + start["calls"]]
    assert image[call - base :][:8] == elf.AARCH64.jump
    assert row_of(call + 8) == outside["given"]
    assert base + start["calls"] in reached(image, base, start["own"], 5)
    assert [row_of(x) for x in reached(image, base, start["word"], 3)] == [outside["given_word"]]
    (text,) = reached(image, base, start["place"], 4)
    assert image[text - base :][:8] == b"somewhat"

"""ELF object files as LLVM writes them, made ready to run at an address.

`Object` reads one, `linked(base, outside)` gives the bytes to put at `base`. They are one run: the
sections that code reads, then a row of `ROW` bytes for each symbol that is reached through a table:
a jump to the address behind it, and that address. So functions may lie anywhere in memory; those
that a branch reaches are called without the jump.

Nothing is believed: every place of a damaged file is looked up in, or written to, Python's own
bytes, which know their ends. What this file does not know, such as data that can be written, is an
error as well. Tables for unwinding stay out: no frame of compiled code is unwound.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gnomon.base import GnomonError

ROW = 16
_PAGE = 4096
_IMAGE = 1 << 26  # bytes that none has
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_MAGIC = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
_RELOCATABLE = 1
_BITS, _SYMBOLS, _RELOCATIONS = 1, 2, 4  # kinds of sections
_WRITTEN, _TAKES_MEMORY = 1, 2  # flags of sections
_FRAMES, _SET_ONCE = ".eh_frame", ".data.rel.ro"
_WRONG = (struct.error, ValueError, IndexError, KeyError, OverflowError)

# writes into an image, at an offset, which will lie at an address, the value of a relocation
Write = Callable[[bytearray, int, int, int], None]
DIRECT, BRANCH, TABLE = range(3)  # what is written: a symbol, a way to it, or its row's address


# an offset in the image, what is to be written there and how, of which symbol, and what to add
Relocation = tuple[int, int, Write, int, int]


class Machine(NamedTuple):
    """A processor: ELF's number of it, how far a branch goes, and how places are written."""

    number: int
    reach: int  # bytes, less what an image takes
    jump: bytes  # to the address behind it
    kinds: Mapping[int, tuple[int, Write]]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Object:
    """An object file of a machine, laid out.

    Raises:
        GnomonError: it is none, or has what is not known here.
    """

    def __init__(self, code: bytes, machine: Machine) -> None:
        self._code, self._machine = code, machine
        self._image, self._starts = bytearray(), dict[int, int]()
        self._offsets: list[int | None] = []  # of the symbols; None for those of elsewhere
        self._names: dict[int, str] = {}  # of those of elsewhere
        self.exports: dict[str, int] = {}  # offsets of what others may call
        try:
            self._read()
        except _WRONG as error:
            raise GnomonError(
                f"load_object: argument 'code': expected an object file for this machine, got "
                f"{len(code)} bytes that are not recognized: {error}"
            ) from None

    @property
    def size(self) -> int:
        """How many bytes `linked` gives."""
        return len(self._image) + ROW * len(self._rows)

    def linked(self, base: int, outside: Callable[[str], int]) -> bytearray:
        """The bytes to put at `base`; `outside` gives addresses of what is not defined here.

        Raises:
            GnomonError: a place is too far from what it is to reach.
        """
        used = self._names.keys() & {symbol for _, _, _, symbol, _ in self._relocations}
        elsewhere = {k: outside(self._names[k]) for k in used}
        places = [None if o is None else base + o for o in self._offsets]
        image = self._image + self._table(places, elsewhere)
        try:
            for offset, way, write, symbol, addend in self._relocations:
                value = places[symbol]
                if way == TABLE:
                    value = base + self._rows[symbol] + 8
                elif value is None:
                    value = self._way_out(way, symbol, base, elsewhere[symbol])
                write(image, offset, base + offset, value + addend)
        except _WRONG as error:
            raise GnomonError(f"load_object: an address cannot be written: {error}") from None
        return image

    def _way_out(self, way: int, symbol: int, base: int, address: int) -> int:
        """What to write for an address of elsewhere: that, or its row if a branch is too short."""
        far = way == BRANCH and abs(address - base) > self._machine.reach
        return base + self._rows[symbol] if far else address

    def _table(self, places: list[int | None], elsewhere: Mapping[int, int]) -> bytes:
        rows = []
        for symbol in self._rows:
            place = places[symbol]
            address = elsewhere[symbol] if place is None else place
            rows.append(self._machine.jump + address.to_bytes(8, "little"))
        return b"".join(rows)

    def _read(self) -> None:
        sections = self._sections()
        names = self._content(sections[self._strings])
        for k, section in enumerate(sections):
            if section.flags & _TAKES_MEMORY:
                self._place(k, section, _string(names, section.name))
        (symbols,) = (s for s in sections if s.kind == _SYMBOLS)
        self._read_symbols(symbols, self._content(sections[symbols.link]))
        self._relocations = list[Relocation]()
        for section in sections:
            if section.kind == _RELOCATIONS and section.info in self._starts:
                self._relocations += self._relocations_of(section, sections[section.info].size)
        through = dict.fromkeys(s for _, way, _, s, _ in self._relocations if self._by_row(way, s))
        self._image += bytes(-len(self._image) % ROW)
        self._rows = {s: len(self._image) + ROW * k for k, s in enumerate(through)}

    def _by_row(self, way: int, symbol: int) -> bool:
        return way == TABLE or (way == BRANCH and self._offsets[symbol] is None)

    def _sections(self) -> list[_Section]:
        found = _HEADER.unpack_from(self._code)
        magic, kind, machine, table, size, count = (found[k] for k in (0, 1, 2, 6, 11, 12))
        self._strings = found[13]
        known = magic.startswith(_MAGIC) and kind == _RELOCATABLE and size == _SECTION.size
        if not known or machine != self._machine.number:
            raise ValueError("another kind of file")
        rows = self._bytes(table, size * count)
        return [_Section(*row) for row in _SECTION.iter_unpack(rows)]

    def _bytes(self, offset: int, size: int) -> bytes:
        part = self._code[offset : offset + size]
        if len(part) != size:
            raise ValueError("it ends too early")
        return part

    def _content(self, section: _Section) -> bytes:
        return self._bytes(section.offset, section.size)

    def _place(self, number: int, section: _Section, name: str) -> None:
        """Add a section to the image."""
        if name == _FRAMES:
            return
        if section.kind != _BITS or (section.flags & _WRITTEN and not name.startswith(_SET_ONCE)):
            raise ValueError(f"section {name!r} can be written, or is of an unknown kind")
        if not 0 <= section.align <= _PAGE:
            raise ValueError(f"section {name!r} is to lie at {section.align}")
        self._image += bytes(-len(self._image) % max(1, section.align))
        self._starts[number] = len(self._image)
        self._image += self._content(section)

    def _read_symbols(self, section: _Section, names: bytes) -> None:
        rows = self._content(section)
        for k, (name, info, _, place, value, _) in enumerate(_SYMBOL.iter_unpack(rows)):
            start = self._starts.get(place)
            if start is None:
                self._offsets.append(None)
                self._names[k] = _string(names, name)
                continue
            if start + value > len(self._image):
                raise ValueError("a symbol lies outside")
            self._offsets.append(start + value)
            if info >> 4:  # not local
                self.exports[_string(names, name)] = start + value

    def _relocations_of(self, section: _Section, room: int) -> list[Relocation]:
        start, kinds = self._starts[section.info], self._machine.kinds
        rows = list(_RELOCATION.iter_unpack(self._content(section)))
        if any(at >= room or symbol >= len(self._offsets) for at, _, symbol, _ in rows):
            raise ValueError("a relocation lies outside")
        return [(start + at, *kinds[kind], symbol, add) for at, kind, symbol, add in rows]


def _string(strings: bytes, start: int) -> str:
    return strings[start : strings.index(0, start)].decode()


# --- x86-64 -------------------------------------------------------------------------------------


_WORD, _HALF = struct.Struct("<Q"), struct.Struct("<i")


def _whole(image: bytearray, offset: int, here: int, value: int) -> None:
    """An address."""
    _WORD.pack_into(image, offset, value & 0xFFFF_FFFF_FFFF_FFFF)


def _distance(image: bytearray, offset: int, here: int, value: int) -> None:
    """How far it is."""
    _HALF.pack_into(image, offset, value - here)


X86_64 = Machine(
    62,
    (1 << 31) - _IMAGE,
    bytes.fromhex("ff25020000009090"),  # jmp *2(%rip)
    {
        1: (DIRECT, _whole),  # 64
        2: (DIRECT, _distance),  # PC32
        4: (BRANCH, _distance),  # PLT32
        9: (TABLE, _distance),  # GOTPCREL
        41: (TABLE, _distance),  # GOTPCRELX
        42: (TABLE, _distance),  # REX_GOTPCRELX
    },
)


# --- AArch64 ------------------------------------------------------------------------------------


_INSTRUCTION = struct.Struct("<I")


def _insert(image: bytearray, offset: int, bits: int) -> None:
    """Set bits of an instruction, which are 0 in the file."""
    _INSTRUCTION.pack_into(image, offset, _INSTRUCTION.unpack_from(image, offset)[0] | bits)


def _branch(image: bytearray, offset: int, here: int, value: int) -> None:
    """Where to go on: the distance in instructions."""
    distance = value - here >> 2
    if not -(1 << 25) <= distance < 1 << 25:
        raise ValueError("a branch goes too far")
    _insert(image, offset, distance & 0x3FF_FFFF)


def _page(image: bytearray, offset: int, here: int, value: int) -> None:
    """How many pages it is away."""
    pages = (value >> 12) - (here >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise ValueError("a page is too far")
    _insert(image, offset, (pages & 3) << 29 | (pages >> 2 & 0x7_FFFF) << 5)


def _in_page(shift: int) -> tuple[int, Write]:
    """Where it is in its page, counted in elements of 2^`shift` bytes."""

    def write(image: bytearray, offset: int, here: int, value: int) -> None:
        _insert(image, offset, (value & 0xFFF) >> shift << 10)

    return DIRECT, write


AARCH64 = Machine(
    183,
    (1 << 27) - _IMAGE,
    bytes.fromhex("5000005800021fd6"),  # ldr x16, .+8; br x16
    {
        257: (DIRECT, _whole),  # ABS64
        261: (DIRECT, _distance),  # PREL32
        275: (DIRECT, _page),  # ADR_PREL_PG_HI21
        277: _in_page(0),  # ADD_ABS_LO12_NC
        278: _in_page(0),  # LDST8_ABS_LO12_NC
        282: (BRANCH, _branch),  # JUMP26
        283: (BRANCH, _branch),  # CALL26
        284: _in_page(1),  # LDST16_ABS_LO12_NC
        285: _in_page(2),
        286: _in_page(3),
        299: _in_page(4),
        311: (TABLE, _page),  # ADR_GOT_PAGE
        312: (TABLE, _in_page(3)[1]),  # LD64_GOT_LO12_NC
    },
)
MACHINES = {"x86_64": X86_64, "AMD64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

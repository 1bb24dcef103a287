"""How machines refer to addresses: the relocations of x86-64 and AArch64 ELF objects, as tables.

Level: `binary`. `linker` asks the table of this process's machine what a relocation refers to, what that is relative to
and where the result goes; and for the code of a stub, which jumps to an address that lies in memory.
Guarantees: a value that does not fit where it goes is an `OverflowError`, never cut off.
Source: System V ABI, AMD64 supplement, section 4.4; ELF for the Arm 64-bit Architecture (AAELF64), section 5.7.
"""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Callable, Mapping
from mmap import mmap

PAGE = 1 << 12  # Bytes of what AArch64 calls a page, whatever the system's are.
_U32 = struct.Struct("<I")


class Word:
    """A field that holds the whole value."""

    __slots__ = ("_layout",)

    def __init__(self, layout: str) -> None:
        self._layout = struct.Struct(layout)

    def write(self, memory: mmap, at: int, value: int) -> None:
        """Write `value` at offset `at`. Raises `OverflowError`."""
        try:
            self._layout.pack_into(memory, at, value)
        except struct.error:
            raise OverflowError(value) from None


class Immediate:
    """Bits of an instruction of 32 bits that hold a value.

    `parts` are (width, position) of its bits, the lowest first; `scale` bits lie below them, which are zero.
    A signed value must fit; of others (the low bits of an address) the bits of `mask` are taken.
    """

    __slots__ = ("_fields", "_mask", "_parts", "_scale")

    def __init__(self, scale: int, *parts: tuple[int, int], mask: int = 0) -> None:
        self._scale, self._parts, self._mask = scale, parts, mask
        values = 1 << sum(width for width, _ in parts)
        self._fields = range(values) if mask else range(-values // 2, values // 2)

    def write(self, memory: mmap, at: int, value: int) -> None:
        """Put `value` into the instruction at offset `at`. Raises `OverflowError`."""
        value = value & self._mask if self._mask else value
        field = value >> self._scale
        if field << self._scale != value or field not in self._fields:
            raise OverflowError(value)
        [code] = _U32.unpack_from(memory, at)
        for width, position in self._parts:
            mask = (1 << width) - 1
            code = code & ~(mask << position) | (field & mask) << position
            field >>= width
        _U32.pack_into(memory, at, code)


class Kind:
    """How a relocation is computed and written: what it refers to, minus what it is relative to."""

    __slots__ = ("field", "refers_to", "relative_to")

    def __init__(self, field: Word | Immediate, refers_to: str, relative_to: str) -> None:
        self.field = field
        self.refers_to = refers_to  # symbol; stub: that jumps to it where it is far away; entry: of its address; table
        self.relative_to = relative_to  # nothing; place: the field itself; page: of both; table: of addresses


class Machine:
    """What the linker knows of a kind of processor: its number in ELF, its relocations, its stubs."""

    __slots__ = ("kinds", "number", "stub", "stub_bytes")

    def __init__(self, number: int, kinds: Mapping[int, Kind], stub_bytes: int, stub: Callable[[int], bytes]) -> None:
        self.number, self.kinds = number, kinds
        self.stub_bytes = stub_bytes
        self.stub = stub  # The code that jumps to the address which lies so many bytes from its start.


_I32, _I64, _U64 = Word("<i"), Word("<q"), Word("<Q")

X86_64 = Machine(
    number=62,
    kinds={
        1: Kind(_U64, "symbol", "nothing"),  # R_X86_64_64
        2: Kind(_I32, "symbol", "place"),  # R_X86_64_PC32
        4: Kind(_I32, "stub", "place"),  # R_X86_64_PLT32
        9: Kind(_I32, "entry", "place"),  # R_X86_64_GOTPCREL
        24: Kind(_I64, "symbol", "place"),  # R_X86_64_PC64
        25: Kind(_I64, "symbol", "table"),  # R_X86_64_GOTOFF64
        27: Kind(_I64, "entry", "table"),  # R_X86_64_GOT64
        29: Kind(_I64, "table", "place"),  # R_X86_64_GOTPC64
        31: Kind(_I64, "stub", "table"),  # R_X86_64_PLTOFF64
        41: Kind(_I32, "entry", "place"),  # R_X86_64_GOTPCRELX
        42: Kind(_I32, "entry", "place"),  # R_X86_64_REX_GOTPCRELX
    },
    stub_bytes=8,
    stub=lambda distance: struct.pack("<2si2x", b"\xff\x25", distance - 6),  # jmp *displacement(%rip)
)


def _low_bits(scale: int) -> Immediate:
    """The low 12 bits of an address as an offset in units of 2**scale bytes."""
    return Immediate(scale, (12 - scale, 10), mask=PAGE - 1)


_BRANCH = Immediate(2, (26, 0))
_PAGES, _BYTES = Immediate(12, (2, 29), (19, 5)), Immediate(0, (2, 29), (19, 5))


def _aarch64_stub(distance: int) -> bytes:
    # adr x16, .+distance; ldr x16, [x16]; br x16
    return struct.pack("<4I", 0x10000010 | (distance & 3) << 29 | (distance >> 2) << 5, 0xF9400210, 0xD61F0200, 0)


AARCH64 = Machine(
    number=183,
    kinds={
        257: Kind(_U64, "symbol", "nothing"),  # R_AARCH64_ABS64
        260: Kind(_I64, "symbol", "place"),  # R_AARCH64_PREL64
        261: Kind(_I32, "symbol", "place"),  # R_AARCH64_PREL32
        274: Kind(_BYTES, "symbol", "place"),  # R_AARCH64_ADR_PREL_LO21
        275: Kind(_PAGES, "symbol", "page"),  # R_AARCH64_ADR_PREL_PG_HI21
        277: Kind(_low_bits(0), "symbol", "nothing"),  # R_AARCH64_ADD_ABS_LO12_NC
        278: Kind(_low_bits(0), "symbol", "nothing"),  # R_AARCH64_LDST8_ABS_LO12_NC
        282: Kind(_BRANCH, "stub", "place"),  # R_AARCH64_JUMP26
        283: Kind(_BRANCH, "stub", "place"),  # R_AARCH64_CALL26
        284: Kind(_low_bits(1), "symbol", "nothing"),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: Kind(_low_bits(2), "symbol", "nothing"),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: Kind(_low_bits(3), "symbol", "nothing"),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: Kind(_low_bits(4), "symbol", "nothing"),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: Kind(_PAGES, "entry", "page"),  # R_AARCH64_ADR_GOT_PAGE
        312: Kind(_low_bits(3), "entry", "nothing"),  # R_AARCH64_LD64_GOT_LO12_NC
    },
    stub_bytes=16,
    stub=_aarch64_stub,
)

_MACHINES = {("linux", "x86_64"): X86_64, ("linux", "aarch64"): AARCH64}


def this_machine() -> Machine | None:
    """The machine of this process; None where no table describes it."""
    return _MACHINES.get((sys.platform, platform.machine()))

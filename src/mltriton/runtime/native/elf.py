"""Reading ELF object files: sections, symbols and relocations.

Level: `binary`. Takes a relocatable object (bytes); gives an `ElfObject`. Guarantees: every offset that is used lies in
the file, so a damaged object is an `ElfError` and not a crash later.
Source: System V ABI, generic part, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")

_IDENT = b"\x7fELF\x02\x01\x01"  # 64-bit, little-endian, version 1
_RELOCATABLE = 1
_SYMBOL_TABLE, _RELOCATIONS, _NO_BITS = 2, 4, 8
_WRITE, _ALLOCATE, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_ABSOLUTE, _FIRST_RESERVED = 0xFFF1, 0xFF00
_WEAK = 2


class ElfError(Exception):
    """The object file is damaged, of another machine, or has something that is not supported; the text says what."""


# The classes of this module and of `linker` are plain: making a dataclass or a named tuple takes longer than linking.


class Section:
    """One section; `data` is empty for one that only takes space (`size` bytes of zeros)."""

    __slots__ = ("alignment", "applies_to", "data", "flags", "kind", "linked", "name", "size")

    def __init__(self, image: memoryview, texts: memoryview, header: tuple[int, ...]) -> None:
        name, self.kind, self.flags, _, position, self.size, self.linked, self.applies_to, alignment, _ = header
        self.name = _text(texts, name)
        self.alignment = max(alignment, 1)
        self.data = memoryview(b"") if self.kind == _NO_BITS else _slice(image, position, self.size)

    @property
    def is_loaded(self) -> bool:
        """Whether the section is part of the program in memory."""
        return bool(self.flags & _ALLOCATE)

    @property
    def is_code(self) -> bool:
        """Whether the section holds instructions."""
        return bool(self.flags & _EXECUTE)

    @property
    def is_writable(self) -> bool:
        """Whether the program writes to the section."""
        return bool(self.flags & _WRITE)


class Symbol:
    """A symbol: `offset` bytes into section number `section`, which is None if it is defined elsewhere."""

    __slots__ = ("is_weak", "name", "offset", "section")

    def __init__(self, name: str, section: int | None, offset: int, is_weak: bool) -> None:
        self.name, self.section, self.offset, self.is_weak = name, section, offset, is_weak


class Relocation:
    """The bytes at `offset` of section number `section` depend on the address of symbol number `symbol`."""

    __slots__ = ("addend", "kind", "offset", "section", "symbol")

    def __init__(self, section: int, offset: int, kind: int, symbol: int, addend: int) -> None:
        self.section, self.offset, self.kind, self.symbol, self.addend = section, offset, kind, symbol, addend


class ElfObject:
    """Sections, symbols and the relocations of what is loaded, of a relocatable object for this machine (its number in
    ELF). Raises `ElfError`.
    """

    def __init__(self, image: bytes, machine: int) -> None:
        self._image = memoryview(image)
        try:
            self.sections = self._read_sections(machine)
            self.symbols = self._read_symbols()
            self.relocations = list(self._read_relocations())
        except (struct.error, IndexError, OverflowError, ValueError) as error:
            raise ElfError(f"the object file is damaged ({error})") from None

    def _read_sections(self, machine: int) -> list[Section]:
        sections = read_sections(self._image, _RELOCATABLE, machine)
        if sections is None:
            raise ElfError("this is not a relocatable object file of this machine")
        for section in sections:
            _check(section)
        return sections

    def _read_symbols(self) -> list[Symbol]:
        [table] = [section for section in self.sections if section.kind == _SYMBOL_TABLE]
        texts = self.sections[table.linked].data
        return [self._symbol(_text(texts, fields[0]), fields) for fields in _SYMBOL.iter_unpack(table.data)]

    def _symbol(self, name: str, fields: tuple[int, ...]) -> Symbol:
        _, info, _, section, offset, _ = fields
        if section >= _FIRST_RESERVED and section != _ABSOLUTE:
            raise ElfError(f"symbol {name} is of a kind that is not supported (section {section:#x})")
        defined = section if 0 < section < len(self.sections) else None
        return Symbol(name, defined, offset, info >> 4 == _WEAK)

    def _read_relocations(self) -> Iterator[Relocation]:
        for section in self.sections:
            if section.kind == _RELOCATIONS and self.sections[section.applies_to].is_loaded:
                for offset, kind, symbol, addend in _RELOCATION.iter_unpack(section.data):
                    if symbol >= len(self.symbols) or offset + 4 > self.sections[section.applies_to].size:
                        raise ValueError("a relocation points outside")
                    yield Relocation(section.applies_to, offset, kind, symbol, addend)


def read_sections(image: memoryview, kind: int, machine: int) -> list[Section] | None:
    """The sections of a file of this kind for this machine; None for another one."""
    ident, its_kind, its_machine, _, _, _, position, _, _, _, _, _, count, names = _HEADER.unpack_from(image)
    if not ident.startswith(_IDENT) or (its_kind, its_machine) != (kind, machine):
        return None
    starts = range(position, position + count * _SECTION.size, _SECTION.size)
    headers: list[tuple[int, ...]] = [_SECTION.unpack_from(image, start) for start in starts]
    _, _, _, _, start, size, *_ = headers[int(names)]
    texts = _slice(image, start, size)
    return [Section(image, texts, header) for header in headers]


def _check(section: Section) -> None:
    name = section.name
    if section.flags & _THREAD_LOCAL:
        raise ElfError(f"section {name} is thread-local, which is not supported")
    if name.startswith((".init_array", ".ctors", ".fini_array")) and section.size:
        raise ElfError(f"section {name} wants functions called when the object is loaded, which is not supported")


def _slice(image: memoryview, position: int, size: int) -> memoryview:
    if position + size > len(image):
        raise ValueError("a section ends behind the end of the file")
    return image[position : position + size]


def _text(texts: memoryview, start: int) -> str:
    """Return the zero-terminated text at `start` of a table of texts."""
    rest = bytes(texts[start:])
    return rest[: rest.index(0)].decode()

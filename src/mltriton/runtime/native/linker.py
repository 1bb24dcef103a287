"""Linking ELF object files of this machine without LLVM.

Level: `binary`. Importing llvmlite costs some 75 ms, more than all else a cached launch does. Takes code that does not
depend on its position, as LLVM and GCC write it; gives an image (`images.py`), in which undefined symbols are left to
the process that loads it. Guarantees: a relocation of an unknown kind is an error, never skipped.
Source: System V ABI, generic part, chapter 4; `relocations` for each machine.
"""

from __future__ import annotations

import mmap
import struct

from .elf import ElfError, ElfObject, Relocation, Section, Symbol
from .frames import are_sound
from .images import WORD, ImageFacts, Import, image_of, private_memory, put_word
from .relocations import PAGE, Kind, Word, this_machine

_CODE, _CONSTANTS, _VARIABLES = 0, 1, 2
_FRAMES = ".eh_frame"
_REACH = 1 << 31  # Bytes a 32-bit displacement spans.


def linked(image: bytes) -> bytes:
    """The image that an object makes. Raises `ElfError` for what cannot be linked, `ImageError` without memory."""
    return _Linking(image).result()


class _Linking:
    """An object in memory as a process has it whose memory begins at 0, and what depends on where it really begins.

    Memory is laid out as code and stubs, then constants and the address table, then variables, each from a new page.
    """

    def __init__(self, image: bytes) -> None:
        machine = this_machine()
        if machine is None:
            raise ElfError("there is no linker for this machine")
        self._machine = machine
        self._object = ElfObject(image, machine.number)
        self._based: list[int] = []
        self._imports: list[Import] = []
        try:
            self._entries = self._number_entries()
            self._map()
            self._fill_table()
            for relocation in self._object.relocations:
                self._relocate(relocation)
        except (struct.error, LookupError, OverflowError) as error:
            raise ElfError(f"the object file is damaged ({error})") from None

    def result(self) -> bytes:
        """The image."""
        named = [symbol for symbol in self._object.symbols if symbol.name and symbol.section]
        symbols = {symbol.name: self._defined(symbol) for symbol in named}
        facts = ImageFacts(self._groups, symbols, self._based, self._imports, self._frames())
        return image_of(facts, self._memory[: self._end])

    def _number_entries(self) -> dict[int, int]:
        """Give each symbol that is imported, or referred to through the table, its entry there."""
        wanted: dict[int, int] = {}
        for relocation in self._object.relocations:
            refers_to = self._kind(relocation).refers_to
            is_import = self._object.symbols[relocation.symbol].section is None
            if refers_to == "entry" or (is_import and refers_to == "stub"):
                wanted.setdefault(relocation.symbol, len(wanted))
        return wanted

    def _map(self) -> None:
        """Give each loaded section its place and copy it there."""
        extra = {_CODE: self._machine.stub_bytes, _CONSTANTS: WORD.size, _VARIABLES: 0}
        ends: list[int] = []
        self._places: dict[int, int] = {}
        self._groups: list[tuple[int, int]] = []
        position = 0
        for group in (_CODE, _CONSTANTS, _VARIABLES):
            start = position
            for number, section in enumerate(self._object.sections):
                if section.is_loaded and _group(section) == group:
                    position = self._places[number] = _round_up(position, section.alignment)
                    position += section.size + (WORD.size if section.name == _FRAMES else 0)  # Zeros end the frames.
            position = _round_up(position, WORD.size)
            ends.append(position)
            position = _round_up(position + extra[group] * len(self._entries), mmap.PAGESIZE)
            self._groups.append((start, position - start))
        if position >= _REACH:
            raise ElfError(f"{position} bytes are too many: code must reach its constants and variables")
        self._memory = private_memory(position)
        self._stubs, self._table = ends[_CODE], ends[_CONSTANTS]
        self._end = self._table + WORD.size * len(self._entries)
        for number, place in self._places.items():
            data = self._object.sections[number].data
            self._memory[place : place + len(data)] = data
            self._end = max(self._end, place + len(data))

    def _fill_table(self) -> None:
        """Write each entry's address and the stub that jumps there."""
        for number in self._entries:
            slot, stub = self._entry(number), self._stub(number)
            self._write_address(slot, self._object.symbols[number], 0)
            self._memory[stub : stub + self._machine.stub_bytes] = self._machine.stub(slot - stub)

    def _write_address(self, at: int, symbol: Symbol, addend: int) -> None:
        """Let the word at an offset be a symbol's address."""
        if symbol.section is None:
            self._imports.append((at, symbol.name, symbol.is_weak or not symbol.name, addend))
        else:
            put_word(self._memory, at, self._defined(symbol) + addend)
            self._based.append(at)

    def _entry(self, number: int) -> int:
        return self._table + WORD.size * self._entries[number]

    def _stub(self, number: int) -> int:
        return self._stubs + self._machine.stub_bytes * self._entries[number]

    def _kind(self, relocation: Relocation) -> Kind:
        kind = self._machine.kinds.get(relocation.kind)
        if kind is None:
            raise ElfError(f"relocation type {relocation.kind} is not supported")
        return kind

    def _relocate(self, relocation: Relocation) -> None:
        kind = self._kind(relocation)
        symbol = self._object.symbols[relocation.symbol]
        place = self._places[relocation.section] + relocation.offset
        if kind.relative_to == "nothing" and isinstance(kind.field, Word):
            self._write_address(place, symbol, relocation.addend)
            return
        try:
            value = self._referred(kind.refers_to, relocation.symbol) + relocation.addend
            if kind.relative_to == "page":
                value = value // PAGE * PAGE
            value -= {"nothing": 0, "place": place, "page": place // PAGE * PAGE, "table": self._table}[
                kind.relative_to
            ]
            kind.field.write(self._memory, place, value)
        except OverflowError:
            raise ElfError(f"{symbol.name} is out of reach: the object is not position-independent code") from None

    def _referred(self, refers_to: str, number: int) -> int:
        """Return the offset a relocation refers to. Raises `OverflowError` for one outside the image."""
        symbol = self._object.symbols[number]
        if refers_to == "table":
            return self._table
        if refers_to == "entry":
            return self._entry(number)
        if symbol.section is not None:
            return self._defined(symbol)
        if refers_to == "stub":
            return self._stub(number)
        raise OverflowError(symbol.name)

    def _defined(self, symbol: Symbol) -> int:
        if symbol.section not in self._places:
            raise ElfError(f"{symbol.name} lies in a section that is not loaded")
        return self._places[symbol.section] + symbol.offset

    def _frames(self) -> list[int]:
        """Where records of call frames begin."""
        first, size = self._groups[_CODE]
        found = {place: self._object.sections[number] for number, place in self._places.items()}
        frames = {place: section.size for place, section in found.items() if section.name == _FRAMES}
        for place, length in frames.items():
            if not are_sound(self._memory[place : place + length], place, range(first, first + size)):
                raise ElfError("the object file is damaged (call frames of no code)")
        return list(frames)


def _group(section: Section) -> int:
    return _CODE if section.is_code else _VARIABLES if section.is_writable else _CONSTANTS


def _round_up(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment

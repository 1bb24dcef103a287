"""Linking ELF object files of this machine into this process without LLVM.

Level: `binary`. Importing llvmlite costs some 75 ms, more than all else a cached launch does, so what comes out of the
cache is linked here. Takes position-independent code as LLVM and GCC write it; undefined symbols are looked up in the
process. Guarantees: a relocation of an unknown kind is an error, never skipped; memory is writable or executable
but not both, private to this process, and given back when the `LinkedImage` goes.
Source: System V ABI, generic part, chapter 4; `relocations` for each machine.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import weakref
from functools import cache
from typing import Any

from .elf import ElfError, ElfObject, Relocation, Section, Symbol
from .frames import are_sound
from .relocations import PAGE, Kind, this_machine

_PROTECTIONS = (mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)
_CODE, _CONSTANTS, _VARIABLES = 0, 1, 2
_ENTRY = struct.Struct("<Q")  # An address in the table.
_FRAMES = ".eh_frame"
_REACH = 1 << 31  # Bytes a 32-bit displacement spans.


class LinkedImage:
    """An object in this process's memory. Raises `ElfError` for what cannot be linked.

    Memory is laid out as code and stubs, then constants and the address table, then variables, each from a new page.
    """

    def __init__(self, image: bytes) -> None:
        machine = this_machine()
        if machine is None:
            raise ElfError("there is no linker for this machine")
        self._machine = machine
        self._object = ElfObject(image, machine.number)
        try:
            self._entries = self._number_entries()
            self._map()
            self._fill_table()
            for relocation in self._object.relocations:
                self._relocate(relocation)
        except (struct.error, LookupError, OverflowError) as error:
            raise ElfError(f"the object file is damaged ({error})") from None
        self._protect()
        self._register_frames()

    def addresses(self) -> dict[str, int]:
        """Return the addresses of the symbols the object defines."""
        return {symbol.name: self._defined(symbol) for symbol in self._object.symbols if symbol.name and symbol.section}

    def _number_entries(self) -> dict[int, int]:
        """Give each symbol that is imported, or referred to through the table, its entry there."""
        wanted: dict[int, int] = {}
        for relocation in self._object.relocations:
            refers_to = self._kind(relocation).refers_to
            is_import = self._object.symbols[relocation.symbol].section is None
            if refers_to == "entry" or (is_import and refers_to != "table"):
                wanted.setdefault(relocation.symbol, len(wanted))
        return wanted

    def _map(self) -> None:
        """Give each loaded section its place and copy it there."""
        extra = {_CODE: self._machine.stub_bytes, _CONSTANTS: _ENTRY.size, _VARIABLES: 0}
        places: dict[int, int] = {}
        ends: list[int] = []
        self._groups: list[tuple[int, int]] = []
        position = 0
        for group in (_CODE, _CONSTANTS, _VARIABLES):
            start = position
            for number, section in enumerate(self._object.sections):
                if section.is_loaded and _group(section) == group:
                    position = places[number] = _round_up(position, section.alignment)
                    position += section.size + (_ENTRY.size if section.name == _FRAMES else 0)  # Zeros end the frames.
            position = _round_up(position, _ENTRY.size)
            ends.append(position)
            position = _round_up(position + extra[group] * len(self._entries), mmap.PAGESIZE)
            self._groups.append((start, position - start))
        if position >= _REACH:
            raise ElfError(f"{position} bytes are too many: code must reach its constants and variables")
        self._memory = _private_memory(max(position, mmap.PAGESIZE))
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._places = {number: self._base + place for number, place in places.items()}
        self._stubs, self._table = self._base + ends[_CODE], self._base + ends[_CONSTANTS]
        for number, place in places.items():
            data = self._object.sections[number].data
            self._memory[place : place + len(data)] = data

    def _fill_table(self) -> None:
        """Write each entry's address and the stub that jumps there."""
        for number in self._entries:
            symbol = self._object.symbols[number]
            address = _address_in_process(symbol) if symbol.section is None else self._defined(symbol)
            slot, stub = self._entry(number), self._stub(number)
            _ENTRY.pack_into(self._memory, slot - self._base, address)
            at = stub - self._base
            self._memory[at : at + self._machine.stub_bytes] = self._machine.stub(slot - stub)

    def _entry(self, number: int) -> int:
        return self._table + _ENTRY.size * self._entries[number]

    def _stub(self, number: int) -> int:
        return self._stubs + self._machine.stub_bytes * self._entries[number]

    def _kind(self, relocation: Relocation) -> Kind:
        kind = self._machine.kinds.get(relocation.kind)
        if kind is None:
            raise ElfError(f"relocation type {relocation.kind} is not supported")
        return kind

    def _relocate(self, relocation: Relocation) -> None:
        kind = self._kind(relocation)
        place = self._places[relocation.section] + relocation.offset
        value = self._referred(kind.refers_to, relocation.symbol) + relocation.addend
        if kind.relative_to == "page":
            value = value // PAGE * PAGE
        value -= {"nothing": 0, "place": place, "page": place // PAGE * PAGE, "table": self._table}[kind.relative_to]
        try:
            kind.field.write(self._memory, place - self._base, value)
        except OverflowError:
            name = self._object.symbols[relocation.symbol].name
            raise ElfError(f"{name} is out of reach: the object is not position-independent code") from None

    def _referred(self, refers_to: str, number: int) -> int:
        """Return the address a relocation refers to."""
        symbol = self._object.symbols[number]
        if refers_to == "table":
            return self._table
        if refers_to == "entry":
            return self._entry(number)
        if symbol.section is not None:
            return self._defined(symbol)
        if refers_to == "stub":
            return self._stub(number)
        return _address_in_process(symbol)

    def _defined(self, symbol: Symbol) -> int:
        if symbol.section not in self._places:
            raise ElfError(f"{symbol.name} lies in a section that is not loaded")
        return self._places[symbol.section] + symbol.offset

    def _protect(self) -> None:
        start, size = self._groups[_CODE]
        _forget_cached_code(self._base + start, size)
        for (start, size), protection in zip(self._groups, _PROTECTIONS, strict=True):
            if size and _libc().mprotect(ctypes.c_void_p(self._base + start), ctypes.c_size_t(size), protection):
                raise ElfError(f"memory cannot be made executable ({os.strerror(ctypes.get_errno())})")

    def _register_frames(self) -> None:
        """Tell the unwinder of the frames: a thread that ends inside a launch unwinds its stack through them."""
        first, size = self._groups[_CODE]
        code = range(self._base + first, self._base + first + size)
        for number, place in self._places.items():
            section = self._object.sections[number]
            if section.name != _FRAMES:
                continue
            at = place - self._base
            if not are_sound(self._memory[at : at + section.size], place, code):
                raise ElfError("the object file is damaged (call frames of no code)")
            if _tell_unwinder("__register_frame", place):
                # The memory must outlive the registration, so the finalizer holds it.
                weakref.finalize(self, _forget_frames, place, self._memory).atexit = False


def _forget_frames(place: int, memory: mmap.mmap) -> None:
    _tell_unwinder("__deregister_frame", place)
    del memory


def _tell_unwinder(what: str, place: int) -> bool:
    """Call a function of the library that unwinds stacks with the address of frames; False if there is no library."""
    unwinder = _unwinder()
    if unwinder is not None:
        unwinder[what](ctypes.c_void_p(place))
    return unwinder is not None


def _private_memory(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise ElfError(f"there is no memory for {size} bytes ({error})") from None


def _group(section: Section) -> int:
    return _CODE if section.is_code else _VARIABLES if section.is_writable else _CONSTANTS


def _round_up(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


def _address_in_process(symbol: Symbol) -> int:
    """Return the address of a symbol of the libraries that are loaded globally; 0 for a weak one that is nowhere."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(_libc(), symbol.name))
    except ValueError:
        if symbol.is_weak or not symbol.name:
            return 0
        raise ElfError(f"symbol {symbol.name} is not defined in this process") from None


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _forget_cached_code(start: int, size: int) -> None:
    """Let the processor read code anew: AArch64's caches of instructions do not follow what is written."""
    compiler_support: Any = _unwinder()
    if hasattr(compiler_support, "__clear_cache"):
        compiler_support["__clear_cache"](ctypes.c_void_p(start), ctypes.c_void_p(start + size))


@cache
def _unwinder() -> Any:
    """Return the library that unwinds stacks, or None if there is none."""
    try:
        return ctypes.CDLL("libgcc_s.so.1")
    except OSError:
        return None

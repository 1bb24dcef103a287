"""SPIR-V modules as words: reading instructions, capabilities and names, and writing them back.

Level: binary. Takes the bytes of a module in this machine's byte order. Guarantees: `read(image).image == image`;
anything that is not SPIR-V raises `BackendError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from mltriton.errors import BackendError
from mltriton.records import NamedTuple

MAGIC = 0x07230203
HEADER = 5  # words: magic, version, generator, bound of ids, 0


class Op(IntEnum):
    """The instructions that are looked at here; all others are passed on."""

    NAME = 5
    EXTENSION = 10
    EXT_INST_IMPORT = 11
    ENTRY_POINT = 15
    CAPABILITY = 17
    TYPE_VOID = 19
    FUNCTION = 54
    FUNCTION_END = 56
    FUNCTION_CALL = 57
    DECORATE = 71
    ASM_TARGET = 5609
    ASM = 5610
    ASM_CALL = 5611


IMPORT = 1  # linkage type of what another module defines
LINKAGE_ATTRIBUTES = 41  # the decoration that holds a name and a linkage type


class Instruction(NamedTuple):
    """An opcode and the words after the first."""

    opcode: int
    operands: tuple[int, ...]

    @property
    def words(self) -> tuple[int, ...]:
        """As in the module."""
        return (len(self.operands) + 1) << 16 | self.opcode, *self.operands


class SpirvModule(NamedTuple):
    """A module: its header and its instructions in order."""

    header: tuple[int, ...]
    instructions: tuple[Instruction, ...]

    @property
    def image(self) -> bytes:
        """The bytes."""
        words = [*self.header, *(word for instruction in self.instructions for word in instruction.words)]
        return struct.pack(f"={len(words)}I", *words)

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version."""
        return self.header[1] >> 16 & 0xFF, self.header[1] >> 8 & 0xFF

    def of(self, opcode: int) -> Iterator[tuple[int, ...]]:
        """The operands of each instruction with this opcode."""
        return (instruction.operands for instruction in self.instructions if instruction.opcode == opcode)

    @property
    def capabilities(self) -> set[int]:
        """Numbers of the capabilities that the module asks for."""
        return {operands[0] for operands in self.of(Op.CAPABILITY)}

    @property
    def extensions(self) -> list[str]:
        """Names of the extensions that it uses."""
        return [text_of(operands) for operands in self.of(Op.EXTENSION)]

    @property
    def kernels(self) -> list[str]:
        """Names of its entry points."""
        return [text_of(operands[2:]) for operands in self.of(Op.ENTRY_POINT)]

    @property
    def imports(self) -> list[str]:
        """Names of the functions that it calls and does not define."""
        functions = {operands[1] for operands in self.of(Op.FUNCTION)}
        return [
            text_of(operands[2:])
            for operands in self.of(Op.DECORATE)
            if operands[1] == LINKAGE_ATTRIBUTES and operands[-1] == IMPORT and operands[0] in functions
        ]

    def with_instructions(self, instructions: Iterable[Instruction]) -> SpirvModule:
        """The same header with other instructions."""
        return SpirvModule(self.header, tuple(instructions))


def read(image: bytes) -> SpirvModule:
    """Take a module apart."""
    if len(image) < 4 * HEADER or len(image) % 4 or struct.unpack_from("=I", image)[0] != MAGIC:
        raise BackendError("this is no SPIR-V module", found=f"{len(image)} bytes that start with {image[:4].hex()}")
    words = struct.unpack(f"={len(image) // 4}I", image)
    instructions: list[Instruction] = []
    place = HEADER
    while place < len(words):
        length = words[place] >> 16
        if length == 0 or place + length > len(words):
            raise BackendError("the SPIR-V module is cut off", found=f"an instruction of {length} words at {place}")
        instructions.append(Instruction(words[place] & 0xFFFF, words[place + 1 : place + length]))
        place += length
    return SpirvModule(words[:HEADER], tuple(instructions))


def text_of(words: Sequence[int]) -> str:
    """The text at the start of `words`: bytes up to the first zero."""
    return struct.pack(f"<{len(words)}I", *words).split(b"\0", 1)[0].decode()


def words_of(text: str) -> tuple[int, ...]:
    """A text as words, with the zeros that end it."""
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 4)
    return struct.unpack(f"<{len(data) // 4}I", data)

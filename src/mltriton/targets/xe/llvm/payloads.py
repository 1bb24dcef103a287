"""2D block accesses whose address stays in a register through a loop: address payloads of Intel's compiler.

Level: `llvm`. A payload holds the surface, the block and its coordinates. It is made once; an iteration writes the
coordinates that have moved, no other part. The intrinsics are internal to Intel's compiler, which does not promise
them: an option asks for them, and SPIR-V's validator knows neither them nor the vectors that they give.
"""

from __future__ import annotations

from enum import IntEnum

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I1, I32, I64, PTR, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.block_limits import SUB_GROUP, Access, Block

PREFIX = "llvm.genx.GenISA.LSC2DBlock"
CREATE = f"{PREFIX}CreateAddrPayload.p0i32"
SET = f"{PREFIX}SetAddrPayloadField.p0i32.i32"
READ = f"{PREFIX}ReadAddrPayload"  # and the type of what it gives
PREFETCH = f"{PREFIX}PrefetchAddrPayload.p0i32"
PREFETCHED = 4  # where to: both caches
WORDS = frozenset({(1, 1), (1, 2), (2, 2), (4, 4)})  # bytes of an element, and of what a lane holds of a row


class Field(IntEnum):
    """The parts of a payload that change."""

    X = 5
    Y = 6


class Surface(NamedTuple):
    """A matrix in memory: its first byte, bytes of a row, rows, and bytes from row to row (i32)."""

    base: Value
    width: Value
    height: Value
    pitch: Value


def word_of(block: Block) -> Type | None:
    """What a register of a lane holds of a block; None where payloads do not know such blocks."""
    if block.access is Access.STORE:
        return None
    if block.access in (Access.LOAD_VNNI, Access.LOAD_TRANSPOSE):
        return I32
    size = block.element_bytes * max(1, block.width // SUB_GROUP)
    return vector(f"i{8 * size}", 1) if (block.element_bytes, size) in WORDS else None


def create(f: Function, surface: Surface, block: Block, x: Value, y: Value) -> Value:
    """A payload for accesses of that block, at first at column x and row y."""
    base = f.cast("ptrtoint", surface.base, I64)
    sizes = [f.sub(size, 1) for size in (surface.width, surface.height, surface.pitch)]
    shape = [constant(I32, size) for size in (block.width, block.height, block.blocks)]
    return f.declared_call(CREATE, PTR, base, *sizes, x, y, *shape)


def move(f: Function, payload: Value, field: Field, value: Value) -> None:
    """Say where the block is now."""
    f.declared_call(SET, VOID, payload, constant(I32, field), value, constant(I1, 0))


def load(f: Function, payload: Value, block: Block, memory: Value, cached: int) -> None:
    """Bring the block into the private memory of the lanes; `cached` is what happens in the caches, 0 the usual."""
    word = word_of(block)
    assert word is not None
    count = block.bytes * block.blocks // (SUB_GROUP * word.bytes)
    type_ = word.with_lanes(count)
    loaded = f.declared_call(f"{READ}.{type_.suffix}.p0i32", type_, payload, *_access(block, cached))
    f.store(loaded, memory)


def prefetch(f: Function, payload: Value, block: Block) -> None:
    """Bring the block into the caches."""
    f.declared_call(PREFETCH, VOID, payload, *_access(block, PREFETCHED))


def _access(block: Block, cached: int) -> list[Value]:
    numbers = (0, 0, 8 * block.element_bytes, block.width, block.height, block.blocks)
    flags = (block.access is Access.LOAD_TRANSPOSE, block.access is Access.LOAD_VNNI)
    return [*(constant(I32, n) for n in numbers), *(constant(I1, flag) for flag in flags), constant(I32, cached)]

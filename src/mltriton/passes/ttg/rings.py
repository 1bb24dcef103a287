"""Rings: slots of shared memory that a producer fills and consumers give back, with a barrier for each direction.

Level: ttg. A ring has slots for the blocks of a group of loads. `full` says that a slot's blocks have come, `empty`
that all warps are done with them: a barrier each for every slot, whose phases both sides count by a slot's number and a
parity that turns when the numbers begin anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from mltriton.dialects import arith, gpu, ttg, ttng
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, I64, MemDescType
from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.shared import furthest
from mltriton.passes.ttg.copy_blocks import window_at


class State(NamedTuple):
    """The slot at hand and the parity of its phase."""

    slot: Value
    parity: Value


class Part(NamedTuple):
    """A block of each slot: where the slots are, and where in one it begins."""

    memory: Value
    block: MemDescType
    start: Sequence[int]

    def at(self, builder: Builder, slot: Value) -> Value:
        """The block of a slot."""
        offsets = [slot, *(arith.integer(builder, number) for number in self.start)]
        return builder.emit(ttg.MemDescSubview, self.memory, offsets, result_types=[self.block])


@dataclass(frozen=True, eq=False)
class Ring:
    """Slots for so many blocks each; `empty` is None where every slot is filled but once."""

    slots: int
    buffers: list[Part]
    full: Value
    empty: Value | None
    warps: int

    def start(self, builder: Builder, parity: int) -> State:
        """The first slot."""
        return State(arith.integer(builder, 0), arith.integer(builder, parity))

    def next(self, builder: Builder, state: State) -> State:
        """The slot after this one."""
        if self.slots == 1:
            return State(state.slot, builder.emit(arith.XOrI, state.parity, arith.integer(builder, 1)))
        zero = arith.integer(builder, 0)
        following = builder.emit(arith.AddI, state.slot, arith.integer(builder, 1))
        over = builder.emit(arith.CmpI, following, arith.integer(builder, self.slots), predicate="eq")
        turned = builder.emit(arith.XOrI, state.parity, builder.emit(arith.ExtUI, over, result_types=[I32]))
        return State(builder.emit(arith.Select, over, zero, following), turned)

    def wait(self, builder: Builder, state: State) -> list[Value]:
        """Until the slot's blocks have come; where they are."""
        builder.create(ttng.WaitBarrier, window_at(builder, self.full, state.slot), state.parity)
        return [part.at(builder, state.slot) for part in self.buffers]

    def release(self, builder: Builder, slot: Value) -> None:
        """All warps are done with a slot, each by itself."""
        if self.empty is not None:
            builder.create(ttng.ArriveBarrier, window_at(builder, self.empty, slot), None, count=self.warps)

    def fill(self, builder: Builder, state: State, size: int) -> tuple[Value, list[Value]]:
        """Until the slot is free, which it is at first for a parity of 1; its barrier, and where blocks go."""
        if self.empty is not None:
            builder.create(ttng.WaitBarrier, window_at(builder, self.empty, state.slot), state.parity)
        barrier = window_at(builder, self.full, state.slot)
        builder.create(ttng.BarrierExpect, barrier, None, size=size)
        return barrier, [part.at(builder, state.slot) for part in self.buffers]


def goes_on(before: MemDescType, block: MemDescType, dim: int) -> bool:
    """Whether two blocks are one along a dimension, the elements of one in front of those of the other. Rows of several
    pieces (K of 128 in f16) are not: the second pieces of all rows lie behind the first ones.
    """
    encoding, rank = before.encoding, len(before.shape)
    if not isinstance(encoding, SharedEncoding) or encoding != block.encoding:
        return False
    alike = all(a == b for number, (a, b) in enumerate(zip(before.shape, block.shape, strict=True)) if number != dim)
    return alike and furthest(encoding, before.shape) % rank == dim


def make_ring(
    builder: Builder, blocks: Sequence[MemDescType], along: Sequence[int | None], slots: int, warps: int, *, once: bool
) -> Ring:
    """Shared memory of a ring, its barriers without their first phase. `along`: the dimension in which a block follows
    the one before it, if it is to.
    """
    buffers = _parts(builder, blocks, along, slots)
    barriers = [
        builder.emit(ttg.LocalAlloc, None, result_types=[MemDescType((slots, 1), I64)]) for _ in range(1 if once else 2)
    ]
    return Ring(slots, buffers, barriers[0], None if once else barriers[1], warps)


def _parts(builder: Builder, blocks: Sequence[MemDescType], along: Sequence[int | None], slots: int) -> list[Part]:
    wholes, starts = list[MemDescType](), list[tuple[int, list[int]]]()
    for block, dim in zip(blocks, along, strict=True):
        shape, start = list(block.shape), [0] * len(block.shape)
        if dim is not None:
            shape = list(wholes.pop().shape[1:])
            start[dim] = shape[dim]
            shape[dim] += block.shape[dim]
        starts.append((len(wholes), start))
        wholes.append(MemDescType((slots, *shape), block.element, block.encoding))
    memories = [cast(Value, builder.emit(ttg.LocalAlloc, None, result_types=[whole])) for whole in wholes]
    return [Part(memories[number], block, start) for block, (number, start) in zip(blocks, starts, strict=True)]


def begin_rings(builder: Builder, rings: Sequence[Ring]) -> None:
    """The first phase of all barriers: one arrives at `full`, every warp of the program at `empty`."""
    for ring in rings:
        for barriers, count in ((ring.full, 1), (ring.empty, ring.warps)):
            for slot in range(ring.slots if barriers is not None else 0):
                assert barriers is not None
                window = window_at(builder, barriers, arith.integer(builder, slot))
                builder.create(ttng.InitBarrier, window, count=count)
    builder.create(ttng.FenceAsyncShared)  # What was in the memory before may have been written by lanes.
    builder.create(gpu.Barrier)

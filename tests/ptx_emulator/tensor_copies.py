"""Copies of blocks by an engine of the GPU's, and the barriers in shared memory that count what has come.

A copy reads its source when it starts, and comes at once where lanes may wait for it: it is written when the phase of
its barrier ends. A copy to global memory is written as late as it may be: when its thread waits for that, else at the
end of the program, the last one first. Tensor maps are what the launch evaluated, found by the addresses of the
parameters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.targets.nvidia.tensor_maps import Evaluated, data_type

from .memory import Array, EmulationError
from .text import Instruction

if TYPE_CHECKING:
    from .threads import Threads

WARP = 32
WRITTEN = 16  # bytes
Copies = list[Callable[[], None]]
Writing = Callable[[], None]


@dataclass
class Barrier:
    """What the phase of a barrier still needs, and how many there were before it."""

    count: int
    arrivals: int
    bytes: int = 0
    phase: int = 0
    coming: Copies = field(default_factory=list[Callable[[], None]])

    def arrive(self, number: int) -> None:
        """So many more have come."""
        if number > self.arrivals:
            raise EmulationError(f"{number} arrive at a barrier that waits for {self.arrivals}")
        self.arrivals -= number
        self.settle()

    def settle(self) -> None:
        """End the phase where nothing is missing."""
        if self.arrivals == 0 and self.bytes == 0:
            for complete in self.coming:
                complete()
            self.coming, self.arrivals, self.phase = [], self.count, self.phase + 1


@dataclass
class Group:
    """Copies to global memory that a thread has committed: each reads shared memory, which gives what writes it."""

    reading: list[Callable[[], Writing]]
    writing: list[Writing] = field(default_factory=list[Writing])

    def read(self) -> None:
        """Read shared memory now, where that has not been done."""
        self.writing += [read() for read in self.reading]
        self.reading = []

    def write(self) -> None:
        """Write what was read."""
        self.read()
        for write in self.writing:
            write()


@dataclass
class Engine:
    """Of one program. Copies from shared memory are of the thread that starts them: those of no group, and groups."""

    maps: dict[int, Evaluated]
    barriers: dict[int, Barrier] = field(default_factory=dict[int, Barrier])
    leaving: defaultdict[int, list[Callable[[], Writing]]] = field(default_factory=lambda: defaultdict(list))
    committed: defaultdict[int, list[Group]] = field(default_factory=lambda: defaultdict(list))

    def barrier(self, address: int) -> Barrier:
        """The one there."""
        if address % 8 or address not in self.barriers:
            raise EmulationError(f"there is no barrier at {address:#x}")
        return self.barriers[address]

    def wait(self, thread: int, most_left: int, *, written: bool) -> None:
        """All groups of a thread but so many of the latest have read shared memory, or have `written`."""
        groups = self.committed[thread]
        for group in groups[: max(0, len(groups) - most_left)]:
            group.read()
            if written:
                group.write()
                groups.remove(group)

    def end(self) -> None:
        """What must be true when the program ends; what is left to write is written, in the other order."""
        if any(barrier.coming for barrier in self.barriers.values()):
            raise EmulationError("the program ends before its tensor copies have come")
        groups = [group for thread in self.committed.values() for group in thread]
        if any(self.leaving.values()) or any(group.reading for group in groups):
            raise EmulationError("the program ends before its tensor copies have read shared memory")
        for group in reversed(groups):
            group.write()


def elect(t: Threads, i: Instruction) -> None:
    """One lane of each warp."""
    numbers = np.flatnonzero(t.active)
    if len(numbers) % WARP:
        raise EmulationError("lanes of a warp are missing")
    made = np.zeros(t.count, bool)
    made[numbers[::WARP]] = True
    t.write(i.operands[1], made, "pred")


def _threads(t: Threads, most: int = 0) -> list[int]:
    """The numbers of the threads at hand; of several only where so many may be."""
    found = [int(number) for number in np.flatnonzero(t.active)]
    if most and len(found) > most:
        raise EmulationError(f"{len(found)} threads do what one does")
    return found


def _one(t: Threads, addresses: Array) -> int:
    """An address that only one thread has."""
    found = addresses[t.active]
    if len(found) != 1:
        raise EmulationError(f"{len(found)} threads do what one does")
    return int(found[0])


def barrier(t: Threads, i: Instruction) -> None:
    """`mbarrier`: initialise, arrive, expect bytes, wait."""
    what = i.opcode[1]
    if what == "try_wait":
        _wait(t, i)
        return
    memory = next(operand for operand in i.operands if operand.kind == "address")
    t.asleep[:] = False
    if what == "arrive" and "expect_tx" not in i.opcode:
        for address in t.address(memory)[t.active]:  # by a lane of each warp
            t.engine.barrier(int(address)).arrive(i.operands[-1].number)
        return
    at = _one(t, t.address(memory))
    if what == "init":
        t.races.off = True
        t.memory.read(np.array([at], np.uint64), 8)
        count = i.operands[1].number
        t.engine.barriers[at] = Barrier(count, count)
    elif what == "inval":
        if t.engine.barrier(at).coming:
            raise EmulationError("a barrier ends before its copies have come")
        del t.engine.barriers[at]
    elif what == "arrive":
        found = t.engine.barrier(at)
        found.bytes += i.operands[-1].number
        found.arrive(1)
    else:
        raise EmulationError("an operation of barriers of another kind")


def _wait(t: Threads, i: Instruction) -> None:
    """Threads whose phase has not ended come here again when something has happened to a barrier."""
    addresses, parity = t.address(i.operands[1]), t.read(i.operands[2], "u32")
    done = np.ones(t.count, bool)
    for thread in np.flatnonzero(t.active):
        done[thread] = (t.engine.barrier(int(addresses[thread])).phase & 1) != parity[thread] & 1
    t.write(i.operands[0], done, "pred")
    t.asleep |= t.active & ~done
    t.pc[t.active & ~done] -= 1


def copy(t: Threads, i: Instruction) -> None:
    """`cp.async.bulk`: a box of a tensor to or from shared memory, groups of those from it."""
    if "commit_group" in i.opcode:
        for thread in _threads(t):
            t.engine.committed[thread].append(Group(t.engine.leaving.pop(thread, [])))
    elif "wait_group" in i.opcode:
        for thread in _threads(t):
            t.engine.wait(thread, i.operands[0].number, written="read" not in i.opcode)
    elif "bulk_group" in i.opcode:
        for thread in _threads(t):
            _out(t, i, thread)
    else:
        (thread,) = _threads(t, 1)
        _in(t, i, thread)


def _box(t: Threads, operand: Any, thread: int, *, written: bool = False) -> tuple[Evaluated, Array, Array]:
    """A map, and for each element of a thread's box the address and whether it is inside. `written`: the engine writes
    16 bytes of a row where any of them are inside.
    """
    start, *rest = operand.parts
    found = t.engine.maps.get(int(t.read(start, "u64")[thread]))
    if found is None:
        raise EmulationError("a tensor copy without a tensor map")
    first = [int(t.read(part, "s32")[thread]) for part in rest]
    if len(first) != len(found.sizes):
        raise EmulationError(f"{len(first)} coordinates in {len(found.sizes)} dimensions")
    if first[0] * found.element_bytes % 16:
        raise EmulationError(f"a tensor copy begins at column {first[0]}, no multiple of 16 bytes")
    steps = (found.element_bytes, *found.strides)
    at = _places(tuple(found.box)) + np.array(first)
    sizes = np.array(found.sizes)
    if written:
        whole = WRITTEN // found.element_bytes
        sizes[0] += -sizes[0] % whole
    inside = ((at >= 0) & (at < sizes)).all(1)
    return found, at @ np.array(steps, np.int64) + found.base, inside


@cache
def _places(box: tuple[int, ...]) -> Array:
    """The coordinates of a box's elements, the first dimension's the fastest."""
    return np.indices(box[::-1]).reshape(len(box), -1)[::-1].T.astype(np.int64)


def _shared(found: Evaluated, start: int) -> Array:
    """The address of each element of a box in shared memory."""
    if start % max(128, 8 * found.swizzle):
        raise EmulationError("a box in shared memory is misaligned")
    count = int(np.prod(found.box))
    offsets = np.arange(count, dtype=np.int64) * found.element_bytes + start
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[found.swizzle]
    return (offsets ^ (((offsets >> 7) & bits) << 4)).astype(np.uint64)


def _in(t: Threads, i: Instruction, thread: int) -> None:
    from . import warp_groups  # It imports what imports this.

    target, source, arrives = i.operands
    found, addresses, inside = _box(t, source, thread)
    data = np.zeros((len(addresses), found.element_bytes), np.uint8)
    data[inside] = t.memory.read(addresses[inside].astype(np.uint64), found.element_bytes)
    there = _shared(found, _one(t, t.address(target)))
    at = t.engine.barrier(_one(t, t.address(arrives)))
    warp_groups.check_write(t, there)
    t.memory.read(there, found.element_bytes)
    at.coming.append(lambda: t.memory.write(there, data))
    at.bytes -= data.size
    t.asleep[:] = False
    at.settle()


def _out(t: Threads, i: Instruction, thread: int) -> None:
    target, source = i.operands
    found, addresses, inside = _box(t, target, thread, written=True)
    update = _update_of(i, found) if "reduce" in i.opcode else None
    here = _shared(found, int(t.address(source)[thread]))

    there = addresses[inside].astype(np.uint64)

    def read() -> Writing:
        data = t.memory.read(here[inside], found.element_bytes).copy()
        return lambda: write(data)

    def write(data: Array) -> None:
        if update is not None:
            data = update(t.memory.read(there, found.element_bytes), data)
        t.memory.write(there, data)

    t.engine.leaving[thread].append(read)


# Elements by CUtensorMapDataType.
_ELEMENTS = {
    0: "u1", 1: "u2", 2: "u4", 3: "i4", 4: "u8", 5: "i8", 6: "f2", 7: "f4", 9: "bf16",
}  # fmt: skip
_UPDATES: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _update_of(i: Instruction, found: Evaluated) -> Callable[[Array, Array], Array]:
    """What `cp.reduce` does with the bytes of elements that are there and those of others."""
    kind = _ELEMENTS[data_type(found.element_bytes, found.combined)]
    name = next(part for part in i.opcode if part in _UPDATES)
    if name != "add" and kind[0] in "fb":
        raise EmulationError(f"{name} of {kind}")

    def update(old: Array, new: Array) -> Array:
        if kind == "bf16":
            wide = [np.ascontiguousarray(x).view("u2").astype("u4") << 16 for x in (old, new)]
            total = (wide[0].view("f4") + wide[1].view("f4")).view("u4")
            rounded = (total + 0x7FFF + ((total >> 16) & 1)) >> 16
            return rounded.astype("u2").view(np.uint8).reshape(new.shape)
        a, b = (np.ascontiguousarray(x).view(kind) for x in (old, new))
        return _UPDATES[name](a, b).view(np.uint8).reshape(new.shape)

    return update

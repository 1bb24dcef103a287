"""Shared memory of one program instance, and the asynchronous copies of a warp into it.

Level: ttg to intrinsic; of a warp-level kernel from tt on. Every access goes through `SharedView`, which knows the
warp and the operation: with `races=True` two accesses to one element by different warps with no barrier between, at
least one of them a write, raise `DataRace` naming both source lines (`races.py`). Where the compiler distributes a
block, each of the warps that hold the same part stores it; in a warp-level kernel (`strict`) storing what is there
already is a race, too. Memory that nothing has written holds poison (NaN, -1) and raises `Uninitialised` with
`track=True`. An asynchronous copy reads its source when it starts and writes its destination when it is waited for; in
between an access to the destination raises `Unfinished`: a missing wait shows. So does a write to what a product reads
that goes on by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mltriton.executor.engine import Engine, Traffic, Transfer
from mltriton.executor.faults import OutOfBounds, Unfinished, Uninitialised
from mltriton.executor.races import Access, History
from mltriton.executor.segments import POISON
from mltriton.executor.values import Array, decode, encode, memory_dtype
from mltriton.ir.operation import Operation
from mltriton.ir.types import MemDescType, Type


@dataclass(frozen=True, eq=False)
class SharedView:
    """A block in shared memory, or a window of one.

    Bit patterns of `element` in `bits`, which shares memory with the whole.
    """

    bits: Array
    element: Type
    history: History
    races: bool
    track: bool
    strict: bool
    unwritten: list[tuple[Uninitialised, Access]]
    arriving: Array  # where an asynchronous copy will write
    held: Array  # how many products under way read an element
    engine: Engine
    traffic: Traffic

    def load(self, access: Access) -> Array:
        """All elements as values. Raises `Unfinished` where a copy to them is under way."""
        self._require_arrived("a read")
        if self.engine.transfers:
            self.traffic.read(self.engine, access.warp, access.epoch)
        if self.track and not self.history.is_written.all():
            index = tuple(int(i) for i in np.argwhere(~self.history.is_written)[0])
            fault = Uninitialised(f"a read of shared memory: nothing has written element {index} of the block")
            self.unwritten.append((fault, access))
        self.history.record("read", access, races=self.races)
        return decode(self.bits.copy(), self.element)

    def store(self, values: Array, access: Access) -> None:
        """Write all elements."""
        self._require_arrived("a write")
        self.traffic.written(access.warp)
        self._write(encode(values, self.element), access)

    def arrive(self, values: Array, access: Access) -> None:
        """Write all elements, of which an asynchronous copy has come to its end."""
        self.arriving[...] = False
        self._write(encode(values, self.element), access)

    def receive(self, values: Array, access: Access) -> Transfer:
        """Let the engine write all elements, which the end of a barrier's phase completes."""
        self.traffic.overwritten(self.engine, access.warp)
        brought = (self.traffic.transfer != -1).all()  # Who read that was just asked for.
        self.traffic.written(access.warp)
        self.begin(access, races=self.races and not brought)
        self.history.forget_writers()
        self.traffic.unfenced[...] = -1
        self.traffic.transfer[...] = len(self.engine.transfers)

        def complete() -> None:
            self.arriving[...] = False
            self.bits[...] = encode(values, self.element)

        transfer = Transfer(complete)
        self.engine.transfers.append(transfer)
        return transfer

    def send(self, access: Access) -> Array:
        """What the engine reads: all elements, until it is waited for."""
        values = self.load(access)
        self.traffic.sent(access.warp)
        return values

    def _require_arrived(self, what: str) -> None:
        if self.arriving.any():
            index = tuple(int(i) for i in np.argwhere(self.arriving)[0])
            raise Unfinished(f"{what} of shared memory: nobody has waited for the copy to element {index} of the block")

    def begin(self, access: Access, *, races: bool | None = None) -> None:
        """Make the contents undefined, as a write does, until a copy arrives."""
        self._require_arrived("a copy")
        races = self.races if races is None else races
        self.history.record("write", access, races=races)
        self.arriving[...] = True
        poison = np.full(self.bits.itemsize, POISON, np.uint8).view(self.bits.dtype)[0]
        self._write(np.broadcast_to(poison, self.bits.shape), access, races=races)

    def kept(self, warp: int) -> None:
        """A product of a warp has read all elements until now."""
        self.traffic.kept(self.engine, warp)

    def hold(self, by: int) -> None:
        """More (or fewer) products read the elements until they are done."""
        self.held[...] += by

    def _write(self, bits: Array, access: Access, *, races: bool | None = None) -> None:
        if self.held.any():
            raise Unfinished("a write to shared memory that a product reads for which nobody has waited")
        races = self.races if races is None else races
        self.history.record("write", access, only=self.strict or self._changed(bits), races=races)
        self.bits[...] = bits

    def _changed(self, bits: Array) -> Array:
        """Where other bits than these are."""
        unsigned = f"u{self.bits.dtype.itemsize}"
        return np.ascontiguousarray(bits).view(unsigned) != np.ascontiguousarray(self.bits).view(unsigned)

    def window(self, offsets: Sequence[int], shape: tuple[int, ...]) -> SharedView:
        """The elements from `offsets` on; leading dimensions that `shape` has not are taken at their offset.

        OutOfBounds where it does not fit.
        """
        dropped = self.bits.ndim - len(shape)
        extents = (*(1,) * dropped, *shape)
        fits = [
            at >= 0 and at + extent <= size for at, extent, size in zip(offsets, extents, self.bits.shape, strict=True)
        ]
        if not all(fits):
            raise OutOfBounds(f"a window of {shape} at {tuple(offsets)} in shared memory of {self.bits.shape}")
        where = (*offsets[:dropped], *(slice(at, at + n) for at, n in zip(offsets[dropped:], shape, strict=True)))
        return self._part(lambda array: array[where])

    def transposed(self) -> SharedView:
        """The same memory with its two dimensions exchanged."""
        return self._part(lambda array: array.T)

    def _part(self, transform: Callable[[Array], Array]) -> SharedView:
        parts = {name: transform(getattr(self, name)) for name in ("bits", "arriving", "held")}
        return replace(self, **parts, history=self.history.view(transform), traffic=self.traffic.part(transform))


@dataclass
class SharedMemory:
    """The buffers of one program instance: one for each allocating operation."""

    races: bool
    track: bool
    engine: Engine
    strict: bool = False
    buffers: dict[Operation, SharedView] = field(default_factory=dict[Operation, SharedView])
    unwritten: list[tuple[Uninitialised, Access]] = field(default_factory=list[tuple[Uninitialised, Access]])

    def fence(self, warp: int) -> None:
        """The engine sees what a warp has written."""
        for view in self.buffers.values():
            view.traffic.unfenced[view.traffic.unfenced == warp] = -1

    def sent(self, warp: int) -> None:
        """The engine has read all that a warp lets it copy to global memory."""
        for view in self.buffers.values():
            view.traffic.leaving[view.traffic.leaving == warp] = -1

    def allocate(self, op: Operation, type: MemDescType) -> SharedView:
        """The buffer of an allocation; the warps of a program get the same one, and so does a loop that comes back."""
        if op not in self.buffers:
            dtype = memory_dtype(type.element)
            size = int(np.prod(type.shape)) * dtype.itemsize
            bits = np.full(size, POISON, np.uint8).view(dtype).reshape(type.shape)
            history = History(type.shape, "shared memory")
            self.buffers[op] = SharedView(
                bits,
                type.element,
                history,
                self.races,
                self.track,
                self.strict,
                self.unwritten,
                np.zeros(type.shape, bool),
                np.zeros(type.shape, np.int16),
                self.engine,
                Traffic.none(type.shape),
            )
        return self.buffers[op]

    def settle(self, program: tuple[int, int, int]) -> None:
        """Raise what was found since the last barrier: another warp that writes what was read is a race, which says
        more, and was raised at once.
        """
        for fault, access in self.unwritten:
            raise fault.within(access.op.name, program, access.warp, access.op.loc)


Copy = Callable[[], None]  # what completes an asynchronous copy


@dataclass
class AsyncCopies:
    """A warp's copies, or products, under way: those not yet in a group, and the groups in the order in which they were
    closed.
    """

    started: list[Copy] = field(default_factory=list[Copy])
    groups: deque[list[Copy]] = field(default_factory=deque[list[Copy]])

    def start(self, complete: Copy) -> None:
        """Begin a copy that `complete` will finish."""
        self.started.append(complete)

    def commit(self) -> None:
        """Close the group of the copies started so far (it may be empty)."""
        self.groups.append(self.started)
        self.started = []

    def wait(self, most_left: int) -> None:
        """Finish the oldest groups until at most `most_left` are under way."""
        while len(self.groups) > most_left:
            for complete in self.groups.popleft():
                complete()

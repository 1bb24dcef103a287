"""Shared memory of one program instance, and the asynchronous copies of a warp into it.

Level: ttg to intrinsic. Every access goes through `SharedView`, which knows the warp and the operation: with
`races=True` two accesses to one element by different warps with no barrier between, at least one of them a write that
changes it, raise `DataRace` naming both source lines. Memory that nothing has written holds poison (NaN, -1) and
raises `Uninitialised` with `track=True`. An asynchronous copy reads its source when it starts and writes its
destination when it is waited for; in between the destination is poison, so that a missing wait shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mltriton.executor.faults import DataRace, OutOfBounds, Uninitialised, place_of
from mltriton.executor.memory import POISON
from mltriton.executor.values import Array, decode, encode, memory_dtype
from mltriton.ir.operation import Operation
from mltriton.ir.types import MemDescType, Type

NOBODY, SEVERAL = -1, -2  # in place of a warp's id


@dataclass(frozen=True)
class Access:
    """Who touches shared memory: `epoch` counts the barriers that all warps have passed."""

    warp: int
    epoch: int
    op: Operation


class History:
    """For each element of a buffer.

    The last write and the reads since the last barrier, as (warp, epoch, number of the access's operation).
    """

    FIELDS = ("writer", "written_in", "written_by", "reader", "read_in", "read_by")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.marks: dict[str, Array] = {name: np.full(shape, NOBODY, np.int32) for name in self.FIELDS}
        self.operations: list[Operation] = []

    def view(self, transform: Callable[[Array], Array]) -> History:
        """The history of a part of the buffer; writing to it writes to the whole."""
        part = History(())
        part.marks = {name: transform(mark) for name, mark in self.marks.items()}
        part.operations = self.operations
        return part

    @property
    def is_written(self) -> Array:
        """Which elements something has written."""
        return self.marks["writer"] != NOBODY

    def read(self, access: Access, *, races: bool) -> None:
        """Record a read of every element."""
        marks = self.marks
        if races:
            self._refuse(
                "read", access, (marks["written_in"] == access.epoch) & (marks["writer"] != access.warp), "written"
            )
        again = (marks["read_in"] == access.epoch) & (marks["reader"] != access.warp)
        marks["reader"][...] = np.where(again, SEVERAL, access.warp)
        self._stamp("read", access)

    def write(self, access: Access, changed: Array, *, races: bool) -> None:
        """Record a write of every element.

        `changed` says where the contents change (the same value twice is no race).
        """
        marks = self.marks
        if races:
            now = changed & (marks["written_in"] == access.epoch) & (marks["writer"] != access.warp)
            self._refuse("write", access, now, "written")
            now = changed & (marks["read_in"] == access.epoch) & (marks["reader"] != access.warp)
            self._refuse("write", access, now, "read")
        marks["writer"][...] = access.warp
        self._stamp("written", access)

    def _stamp(self, kind: str, access: Access) -> None:
        if access.op not in self.operations:
            self.operations.append(access.op)
        self.marks[f"{kind}_in"][...] = access.epoch
        self.marks[f"{kind}_by"][...] = self.operations.index(access.op)

    def _refuse(self, verb: str, access: Access, conflict: Array, earlier: str) -> None:
        if not conflict.any():
            return
        index = tuple(int(i) for i in np.argwhere(conflict)[0])
        other = self.operations[int(self.marks[f"{earlier}_by"][index])]
        warp = int(self.marks["writer" if earlier == "written" else "reader"][index])
        by = "several warps" if warp == SEVERAL else f"warp {warp}"
        raise DataRace(
            f"a {verb} of shared memory by warp {access.warp} races with {by}",
            found=f"element {index} was {earlier} with no barrier between",
            hint=f"the other access is {other.name} at {place_of(other.loc) or 'an unknown line'}",
        )


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

    def load(self, access: Access) -> Array:
        """All elements as values."""
        if self.track and not self.history.is_written.all():
            index = tuple(int(i) for i in np.argwhere(~self.history.is_written)[0])
            raise Uninitialised(f"a read of shared memory: nothing has written element {index} of the block")
        self.history.read(access, races=self.races)
        return decode(self.bits.copy(), self.element)

    def store(self, values: Array, access: Access) -> None:
        """Write all elements."""
        self._write(encode(values, self.element), access)

    def poison(self, access: Access) -> None:
        """Make the contents undefined, as a write does."""
        poison = np.full(self.bits.itemsize, POISON, np.uint8).view(self.bits.dtype)[0]
        self._write(np.broadcast_to(poison, self.bits.shape), access)

    def _write(self, bits: Array, access: Access) -> None:
        unsigned = f"u{self.bits.dtype.itemsize}"
        changed = np.ascontiguousarray(bits).view(unsigned) != np.ascontiguousarray(self.bits).view(unsigned)
        self.history.write(access, changed, races=self.races)
        self.bits[...] = bits

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
        return SharedView(transform(self.bits), self.element, self.history.view(transform), self.races, self.track)


@dataclass
class SharedMemory:
    """The buffers of one program instance: one for each allocating operation."""

    races: bool
    track: bool
    buffers: dict[Operation, SharedView] = field(default_factory=dict[Operation, SharedView])

    def allocate(self, op: Operation, type: MemDescType) -> SharedView:
        """The buffer of an allocation; the warps of a program get the same one, and so does a loop that comes back."""
        if op not in self.buffers:
            dtype = memory_dtype(type.element)
            size = int(np.prod(type.shape)) * dtype.itemsize
            bits = np.full(size, POISON, np.uint8).view(dtype).reshape(type.shape)
            self.buffers[op] = SharedView(bits, type.element, History(type.shape), self.races, self.track)
        return self.buffers[op]


Copy = Callable[[], None]  # what completes an asynchronous copy


@dataclass
class AsyncCopies:
    """A warp's copies under way: those not yet in a group, and the groups in the order in which they were closed."""

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

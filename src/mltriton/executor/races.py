"""Races between the warps of a program: who touched which element since the last barrier.

Level: all. Two accesses race if they touch the same element, come from different warps with no barrier between, and at
least one of them writes; a write of the value that is there already is a write. Of each kind of access a `History`
keeps the latest one and the latest one by another warp, so that no conflict is missed, whatever order the warps run
in. `Watch` looks at global memory in the same way, at every level at which a program runs as several warps: atomic
operations do not race with each other. At the end it says which lanes of a warp access an element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import excerpt
from mltriton.executor.faults import DataRace, location_of
from mltriton.executor.values import Array, choose
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType, block_of
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout

if TYPE_CHECKING:
    from mltriton.executor.machine import Warp
    from mltriton.executor.segments import Segment

NOBODY = -1  # in place of a warp's id, or of the number of barriers passed

# What each kind of access must not meet.
CONFLICTS = {"read": ("write", "atomic"), "write": ("write", "read", "atomic"), "atomic": ("write", "read")}
VERBS = {"read": "read", "write": "written", "atomic": "changed by an atomic operation"}


@dataclass(frozen=True)
class Access:
    """Who touches memory: `epoch` counts the barriers that all warps have passed."""

    warp: int
    epoch: int
    op: Operation


class Marks:
    """Of one kind of access, for each element: the latest (`warp`, `epoch`, number of the operation `op`), and with
    `other_` the latest by another warp than that.
    """

    FIELDS = ("warp", "epoch", "op", "other_warp", "other_epoch", "other_op")

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    @staticmethod
    def fresh(shape: tuple[int, ...]) -> Marks:
        """Marks of memory that nobody has touched."""
        return Marks({name: np.full(shape, NOBODY, np.int32) for name in Marks.FIELDS})

    def map(self, transform: Callable[[Array], Array]) -> Marks:
        """The marks with each array transformed."""
        return Marks({name: transform(array) for name, array in self.arrays.items()})

    def stamp(self, access: Access, number: int, at: Array) -> None:
        """Record an access to the elements `at` (an index of the arrays)."""
        arrays = self.arrays
        moved = arrays["warp"][at] != access.warp
        for name in ("warp", "epoch", "op"):
            arrays[f"other_{name}"][at] = choose(moved, arrays[name][at], arrays[f"other_{name}"][at])
        arrays["warp"][at], arrays["epoch"][at], arrays["op"][at] = access.warp, access.epoch, number

    def foreign(self, access: Access, at: Array) -> tuple[Array, Array, Array]:
        """Which of the elements `at` another warp has touched in this epoch; by which warp and operation."""
        arrays = self.arrays
        latest = (arrays["epoch"][at] == access.epoch) & (arrays["warp"][at] != access.warp)
        before = (arrays["other_epoch"][at] == access.epoch) & (arrays["other_warp"][at] != access.warp)
        warp = choose(latest, arrays["warp"][at], arrays["other_warp"][at])
        return latest | before, warp, choose(latest, arrays["op"][at], arrays["other_op"][at])


class History:
    """The accesses to the elements of a buffer. `memory` names it in messages."""

    def __init__(self, shape: tuple[int, ...], memory: str, kinds: tuple[str, ...] = ("read", "write")) -> None:
        self.memory = memory
        self.marks = {kind: Marks.fresh(shape) for kind in kinds}
        self.lanes: dict[str, Array] | None = None  # of the latest write: its warp, epoch, operation and lanes
        self.numbers: dict[Operation, int] = {}

    def view(self, transform: Callable[[Array], Array]) -> History:
        """The history of a part of the buffer; recording there records in the whole."""
        part = History((), self.memory, ())
        part.marks = {kind: marks.map(transform) for kind, marks in self.marks.items()}
        part.lanes = self.lanes and {name: transform(array) for name, array in self.lanes.items()}
        part.numbers = self.numbers
        return part

    def forget_writers(self) -> None:
        """What was written is no warp's any more: it races with nobody."""
        for name in ("epoch", "other_epoch"):
            self.marks["write"].arrays[name][...] = NOBODY

    @property
    def is_written(self) -> Array:
        """Which elements something has written."""
        return self.marks["write"].arrays["warp"] != NOBODY

    def record(self, kind: str, access: Access, at: Array = ..., *, only: Array = True, races: bool = True) -> None:
        """Record an access to the elements `at`; with `races` raise `DataRace` where one of `only` meets another's."""
        if races:
            for earlier in CONFLICTS[kind]:
                if earlier in self.marks:
                    self._refuse(kind, access, earlier, at, only)
        number = self.numbers.setdefault(access.op, len(self.numbers))
        self.marks[kind].stamp(access, number, at)

    def record_lanes(self, kind: str, access: Access, at: Array, lanes: Array) -> None:
        """Record by which lanes of a warp the elements `at` are accessed; raise `DataRace` where other lanes of it have
        written one of them.
        """
        if self.lanes is None:
            shape = self.marks["write"].arrays["warp"].shape
            self.lanes = {name: np.full(shape, NOBODY, np.int64) for name in ("warp", "epoch", "op", "lanes", "atomic")}
        marks = {name: array[at] for name, array in self.lanes.items()}
        others = (marks["epoch"] == access.epoch) & (marks["warp"] == access.warp) & (lanes & ~marks["lanes"] != 0)
        if kind == "atomic":
            others &= marks["atomic"] == 0
        if others.any():
            index = tuple(int(i) for i in np.argwhere(others)[0])
            mine, theirs = first_lane(int((lanes & ~marks["lanes"])[index])), first_lane(int(marks["lanes"][index]))
            where = f"lane {mine} of warp {access.warp}"
            earlier = "atomic" if marks["atomic"][index] else "write"
            raise self._race(
                kind, where, f"lane {theirs}", int(np.asarray(at)[index]), earlier, int(marks["op"][index])
            )
        if kind != "read":
            number = self.numbers.setdefault(access.op, len(self.numbers))
            stamp = {
                "warp": access.warp,
                "epoch": access.epoch,
                "op": number,
                "lanes": lanes,
                "atomic": kind == "atomic",
            }
            for name, value in stamp.items():
                self.lanes[name][at] = value

    def _refuse(self, kind: str, access: Access, earlier: str, at: Array, only: Array) -> None:
        foreign, warps, numbers = self.marks[earlier].foreign(access, at)
        conflict = foreign & only
        if not conflict.any():
            return
        index = tuple(int(i) for i in np.argwhere(conflict)[0])
        element = index if at is ... else int(np.asarray(at)[index])
        who, others = f"warp {access.warp}", f"warp {int(warps[index])}"
        raise self._race(kind, who, others, element, earlier, int(numbers[index]))

    def _race(self, kind: str, who: str, others: str, element: object, earlier: str, number: int) -> DataRace:
        other = list(self.numbers)[number]
        place = location_of(other.loc)
        error = DataRace(
            f"a {kind} of {self.memory} by {who} races with {others}",
            found=f"element {element} was {VERBS[earlier]} with no barrier between",
            hint="\n".join([f"the other access is {other.name} at {place or 'an unknown line'}", *excerpt(place)]),
        )
        error.other = place
        return error


@dataclass
class Watch:
    """Sees the accesses to the segments of global memory that the kernel may write. `warp` is the one that runs;
    `atomic` is set during atomic operations; `lanes` says whether lanes matter, which are looked at, too.
    """

    segments: frozenset[Segment]
    lanes: bool = False
    warp: Warp | None = None
    atomic: bool = False

    def __post_init__(self) -> None:
        self._histories: dict[Segment, tuple[int, History]] = {}

    def see(self, segment: Segment, offsets: Array, size: int, active: Array | None = None, *, write: bool) -> None:
        """Elements of `size` bytes at `offsets` of a segment are read or written; `active` is the mask of a block that
        has chosen them.
        """
        warp = self.warp
        if warp is None or warp.op is None or segment not in self.segments:
            return
        unit, history = self._history(segment, size)
        starts = np.asarray(offsets) // unit
        at = starts if size == unit else starts[..., None] + np.arange(size // unit)
        kind = "atomic" if self.atomic else "write" if write else "read"
        access = Access(warp.id, warp.instance.epoch, warp.op)
        history.record(kind, access, at)
        holders = lanes_of(warp.op, self.atomic) if self.lanes else None
        lanes = None if holders is None else fitting(holders, np.asarray(offsets), active)
        if lanes is not None:
            lanes = lanes.reshape(*lanes.shape, *(1,) * (at.ndim - lanes.ndim))
            history.record_lanes(kind, access, at, np.broadcast_to(lanes, at.shape))

    def _history(self, segment: Segment, size: int) -> tuple[int, History]:
        """The segment's history, and how many bytes one of its elements stands for: at most `size`."""
        if segment not in self._histories:
            count = -(-segment.size // size)
            self._histories[segment] = size, History((count,), segment.name, ("read", "write", "atomic"))
        unit, history = self._histories[segment]
        if size < unit:
            times = unit // size
            unit, history = size, history.view(lambda array: np.repeat(array, times))
            self._histories[segment] = unit, history
        return unit, history


def lanes_of(op: Operation, atomic: bool) -> Array | None:
    """For each element of the block that an operation accesses a set of lanes, as bits; None where that is no block.

    Of the lanes that hold an element one does an atomic operation.
    """
    block = _accessed(op)
    if block is None or not isinstance(block.encoding, Encoding):
        return None
    try:
        holders = _holders(block.encoding, block.shape)
    except ValueError:  # Between passes there are blocks whose lanes are not stated yet.
        return None
    return holders & -holders if atomic else holders


def _accessed(op: Operation) -> TensorType | None:
    if isinstance(op, tt.DescriptorLoad):
        return block_of(op.result.type)
    if isinstance(op, tt.DescriptorStore):
        return block_of(op.value.type)
    is_access = isinstance(op, tt.Load | tt.Store | tt.AtomicRMW | tt.AtomicCAS)
    return block_of(op.ptr.type) if is_access else None


@cache
def _holders(encoding: Encoding, shape: tuple[int, ...]) -> Array:
    elements = warp_layout(encoding, shape).table()
    bits: Array = np.array([1 << lane for lane in range(elements.shape[1])], np.int64)
    lanes: Array = np.broadcast_to(bits, elements.shape[:2])
    holders: Array = np.zeros(shape, np.int64)
    np.bitwise_or.at(holders, tuple(np.moveaxis(elements, -1, 0)), lanes)
    return holders


def fitting(lanes: Array, offsets: Array, active: Array | None) -> Array | None:
    """The lanes of the elements at `offsets`, which `active` has chosen; None where that cannot be said."""
    if lanes.size == (offsets.size if active is None else active.size):
        return lanes.reshape(offsets.shape) if active is None else lanes.reshape(active.shape)[active]
    return None


def first_lane(lanes: int) -> int:
    """The lowest lane of a set."""
    return (lanes & -lanes).bit_length() - 1

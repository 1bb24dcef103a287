"""Races between the warps of a program: who touched which element since the last barrier.

Level: all. Two accesses race if they touch the same element, come from different warps with no barrier between, and at
least one of them writes; a write of the value that is there already is a write. Of each kind of access a `History`
keeps the latest one and the latest one by another warp, so that no conflict is missed, whatever order the warps run
in. `Watch` looks at global memory in the same way, at every level at which a program runs as several warps: atomic
operations do not race with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mltriton.errors import excerpt
from mltriton.executor.faults import DataRace, place_of
from mltriton.executor.values import Array, choose
from mltriton.ir.operation import Operation

if TYPE_CHECKING:
    from mltriton.executor.machine import Warp
    from mltriton.executor.memory import Segment

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
        self.numbers: dict[Operation, int] = {}

    def view(self, transform: Callable[[Array], Array]) -> History:
        """The history of a part of the buffer; recording there records in the whole."""
        part = History((), self.memory, ())
        part.marks = {kind: marks.map(transform) for kind, marks in self.marks.items()}
        part.numbers = self.numbers
        return part

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

    def _refuse(self, kind: str, access: Access, earlier: str, at: Array, only: Array) -> None:
        foreign, warps, numbers = self.marks[earlier].foreign(access, at)
        conflict = foreign & only
        if not conflict.any():
            return
        index = tuple(int(i) for i in np.argwhere(conflict)[0])
        element = index if at is ... else int(np.asarray(at)[index])
        other = list(self.numbers)[int(numbers[index])]
        place = place_of(other.loc)
        error = DataRace(
            f"a {kind} of {self.memory} by warp {access.warp} races with warp {int(warps[index])}",
            found=f"element {element} was {VERBS[earlier]} with no barrier between",
            hint="\n".join([f"the other access is {other.name} at {place or 'an unknown line'}", *excerpt(place)]),
        )
        error.other = place
        raise error


@dataclass
class Watch:
    """Sees the accesses to the segments of global memory that the kernel may write. `warp` is the one that runs;
    `atomic` is set during atomic operations.
    """

    segments: frozenset[Segment]
    warp: Warp | None = None
    atomic: bool = False

    def __post_init__(self) -> None:
        self._histories: dict[Segment, tuple[int, History]] = {}

    def see(self, segment: Segment, offsets: Array, size: int, *, write: bool) -> None:
        """Elements of `size` bytes at `offsets` of a segment are read or written."""
        warp = self.warp
        if warp is None or warp.op is None or segment not in self.segments:
            return
        unit, history = self._history(segment, size)
        starts = np.asarray(offsets) // unit
        at = starts if size == unit else starts[..., None] + np.arange(size // unit)
        kind = "atomic" if self.atomic else "write" if write else "read"
        history.record(kind, Access(warp.id, warp.instance.epoch, warp.op), at)

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

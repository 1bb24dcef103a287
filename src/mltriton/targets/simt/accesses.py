"""Accesses of a lane to global memory, register by register or several at a time.

Level: intrinsic -> llvm. Takes the address, the mask and the value of each register of a block; registers whose
addresses are seen to follow each other (`affine`) are accessed as one vector of up to 16 bytes. Guarantees: a
masked-off element is never touched: an instruction under a condition accesses what has one mask, on a device that has
such instructions, without a branch. Where masks differ within a vector, the warp asks once whether all masks hold and
accesses vectors, or else one register after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from mltriton.layouts.lanes import LANE_BYTES
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I1, Type, Value, constant
from mltriton.targets.simt.context import Emitter

Masks = Sequence[Value] | None


class Run(NamedTuple):
    """`width` registers from number `start` on that lie next to each other; their address has this alignment."""

    start: int
    width: int
    align: int


def in_memory_order(e: Emitter, pointers: Sequence[Value]) -> list[int]:
    """The numbers of a block's registers in the order of their addresses, as far as these are seen to be related."""
    terms = [e.affine.term(pointer) for pointer in pointers]
    first = {root: number for number, (root, _) in reversed(list(enumerate(terms)))}
    return sorted(range(len(terms)), key=lambda number: (first[terms[number].root], terms[number].constant))


def runs(e: Emitter, pointers: Sequence[Value], element: Type) -> list[Run]:
    """The registers of a block, in the order of memory, as vectors."""
    found: list[Run] = []
    size, start = element.bytes, 0
    most = 1 if element.element.startswith("ptr") else max(1, LANE_BYTES // size)
    while start < len(pointers):
        count = 1
        while 2 * count <= most and _follow(e, pointers[start : start + 2 * count], size, 2 * count):
            count *= 2
        align = min(LANE_BYTES, e.affine.divisor(pointers[start]))
        found.append(Run(start, count, max(size, align)))
        start += count
    return found


def _follow(e: Emitter, pointers: Sequence[Value], size: int, count: int) -> bool:
    if len(pointers) < count:
        return False
    first, *others = (e.affine.term(pointer) for pointer in pointers)
    return all(o.root == first.root and o.constant == first.constant + size * i for i, o in enumerate(others, 1))


def load(e: Emitter, element: Type, pointers: Sequence[Value], masks: Masks, others: Sequence[Value]) -> list[Value]:
    """Load each register; where its mask does not hold it is that of `others`."""
    order = in_memory_order(e, pointers)
    pointers, masks, others = reordered(order, pointers, masks, others)
    return as_before(order, _load(e, element, pointers, masks, others))


def reordered(
    order: Sequence[int], pointers: Sequence[Value], masks: Masks, values: Sequence[Value]
) -> tuple[list[Value], Masks, list[Value]]:
    """Addresses, masks and values (none: none) with the numbers of `order`."""
    return (
        [pointers[number] for number in order],
        None if masks is None else [masks[number] for number in order],
        [values[number] for number in order] if values else [],
    )


def as_before(order: Sequence[int], values: Sequence[Value]) -> list[Value]:
    """Values that stand in that order by their numbers."""
    return [values[index] for index in sorted(range(len(order)), key=order.__getitem__)]


def _load(e: Emitter, element: Type, pointers: Sequence[Value], masks: Masks, others: Sequence[Value]) -> list[Value]:
    f, vectors = e.function, runs(e, pointers, element)

    def whole() -> list[Value]:
        return [register for run in vectors for register in _load_run(e, element, pointers, run)]

    def part(run: Run) -> list[Value]:
        assert masks is not None
        kept = [others[run.start + i] for i in range(run.width)]
        mask, pointer = masks[run.start], pointers[run.start]
        loaded = None
        if not e.volatile:
            loaded = e.machine.load_where(f, mask, element, pointer, kept, run.align, e.caching)
        if loaded is None:
            return f.choose(mask, lambda: _load_run(e, element, pointers, run), lambda: kept, "load")
        return list(loaded)

    if masks is None or all(mask.literal for mask in masks):
        return whole()
    if _agree(masks, vectors):
        return [register for run in vectors for register in part(run)]
    single = [Run(number, 1, element.bytes) for number in range(len(pointers))]
    return f.choose(_all(e, masks), whole, lambda: [register for run in single for register in part(run)], "whole")


def store(e: Emitter, pointers: Sequence[Value], masks: Masks, values: Sequence[Value]) -> None:
    """Store each register whose mask holds."""
    pointers, masks, values = reordered(in_memory_order(e, pointers), pointers, masks, values)
    f, vectors = e.function, runs(e, pointers, values[0].type)

    def part(run: Run) -> None:
        assert masks is not None
        stored, mask = values[run.start : run.start + run.width], masks[run.start]
        if not e.machine.store_where(f, mask, stored, pointers[run.start], run.align, e.caching):
            with f.when(mask, "store"):
                _store_run(e, pointers, values, run)

    def each(found: Sequence[Run], do: Callable[[Run], None]) -> Callable[[], list[Value]]:
        def build() -> list[Value]:
            for run in found:
                do(run)
            return []

        return build

    whole = each(vectors, lambda run: _store_run(e, pointers, values, run))
    if masks is None or all(mask.literal for mask in masks):
        whole()
    elif _agree(masks, vectors):
        each(vectors, part)()
    else:
        single = [Run(number, 1, values[0].type.bytes) for number in range(len(pointers))]
        f.choose(_all(e, masks), whole, each(single, part), "whole")


def _agree(masks: Sequence[Value], vectors: Sequence[Run]) -> bool:
    """Whether the registers of each vector have one mask."""
    return all(len(set(masks[run.start : run.start + run.width])) == 1 for run in vectors)


def _all(e: Emitter, masks: Sequence[Value]) -> Value:
    return e.calls.everywhere(e.function, reduce(e.function.and_, dict.fromkeys(masks), constant(I1, 1)))


def _load_run(e: Emitter, element: Type, pointers: Sequence[Value], run: Run) -> list[Value]:
    f, type_, pointer = e.function, element.with_lanes(run.width), pointers[run.start]
    if e.volatile:
        loaded = f.load(type_, pointer, run.align, volatile=True)
    else:
        loaded = e.machine.load(f, type_, pointer, run.align, e.caching)
    return [f.extract(loaded, number) for number in range(run.width)]


def _store_run(e: Emitter, pointers: Sequence[Value], values: Sequence[Value], run: Run) -> None:
    f, stored = e.function, e.function.joined(values[run.start : run.start + run.width])
    e.machine.store(f, stored, pointers[run.start], run.align, e.caching)

"""Reductions and scans of a chunk with the combination the user wrote.

Level: intrinsic -> llvm. The combination's region is emitted on vectors: halves of the chunk are combined until one
lane is left; halves that are less than the smallest register stand in one, several times over. A scan combines each
lane with the one 1, 2, 4, ... before it. A region with control flow runs lane after lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.ir.operation import Region
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.types import I32, I64, Value, constant, integers

_REGISTER_BITS = 128  # of the smallest vector register


def _combine(e: Emitter, region: Region, accumulated: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """The combination of two sets of values, all lanes at once."""
    with e.lanewise(new[0].type.lanes):
        return e.block(region.block, [*accumulated, *new])


def _halves(region: Region, lanes: int) -> bool:
    """Whether halves of the chunk can be combined: an even split at each step, and no control flow in the region."""
    return lanes.bit_count() == 1 and not any(op.regions for op in region.block.ops)


def _reduce(e: Emitter, op: tt.Reduce) -> Sequence[Value]:
    sources = [e.get(source) for source in op.sources]
    lanes = sources[0].type.lanes
    if not _halves(op.combine, lanes):
        return _reduce_in_order(e, op, sources)
    least = min(lanes, _least_lanes(sources))
    while lanes > 1:
        lanes //= 2
        width = max(lanes, least)
        low, high = ([_part(e, source, first, lanes, width) for source in sources] for first in (0, lanes))
        sources = _combine(e, op.combine, low, high)
    return [e.function.extract(source, 0) for source in sources]


def _least_lanes(sources: Sequence[Value]) -> int:
    """How many lanes the smallest register has; 1 where vectors of the elements are narrowed or widened anyway."""
    bits = [source.type.bits for source in sources]
    return _REGISTER_BITS // max(bits) if min(bits) >= 32 else 1


def _part(e: Emitter, vector: Value, first: int, lanes: int, width: int) -> Value:
    """So many lanes from the first on, again and again up to a width."""
    if width == 1:
        return e.function.extract(vector, first)
    if (first, width) == (0, vector.type.lanes):
        return vector
    return e.function.shuffle(vector, vector, [first + lane % lanes for lane in range(width)])


def _reduce_in_order(e: Emitter, op: tt.Reduce, sources: Sequence[Value]) -> Sequence[Value]:
    f = e.function
    first = [f.extract(source, 0) for source in sources]
    with f.loop(1, sources[0].type.lanes, carried=first, name="lane") as loop:
        new = [f.extract(source, loop.index) for source in sources]
        loop.yield_(*_combine(e, op.combine, loop.carried, new))
    return loop.results


def _scan(e: Emitter, op: tt.Scan) -> Sequence[Value]:
    sources = [e.get(source) for source in op.sources]
    lanes, distance = sources[0].type.lanes, 1
    if not _halves(op.combine, lanes):
        return _scan_in_order(e, op, sources)
    numbers, none = integers("i32", range(lanes)), _zero(e)
    while distance < lanes:
        if op.reverse:
            order = [min(lane + distance, lanes - 1) for lane in range(lanes)]
            first_without = e.function.sub(constant(I32, lanes - distance), none)
            has_partner = e.function.icmp("slt", numbers, e.function.splat(first_without, lanes))
        else:
            order = [max(lane - distance, 0) for lane in range(lanes)]
            first_with = e.function.add(constant(I32, distance), none)
            has_partner = e.function.icmp("sge", numbers, e.function.splat(first_with, lanes))
        before = [e.function.shuffle(source, source, order) for source in sources]
        combined = _combine(e, op.combine, before, sources)
        sources = [e.function.select(has_partner, new, old) for new, old in zip(combined, sources, strict=True)]
        distance *= 2
    return sources


def _zero(e: Emitter) -> Value:
    """A number that LLVM does not know to be 0: the sign of the first program's number.

    Where LLVM knows which lanes are not taken it computes them of whatever a register holds, of denormal floats, too,
    each of which takes a product some 150 cycles.
    """
    f = e.function
    begin = next(parameter for parameter in f.parameters if parameter.type == I64)
    return f.cast("trunc", f.lshr(begin, 63), I32)


def _scan_in_order(e: Emitter, op: tt.Scan, sources: Sequence[Value]) -> Sequence[Value]:
    f, lanes = e.function, sources[0].type.lanes
    last = lanes - 1

    first = [f.extract(source, last if op.reverse else 0) for source in sources]
    with f.loop(1, lanes, carried=[*first, *sources], name="lane") as loop:
        at = f.sub(constant(I64, last), loop.index) if op.reverse else loop.index
        new = [f.extract(source, at) for source in sources]
        running = _combine(e, op.combine, loop.carried[: len(sources)], new)
        written = [f.insert(old, value, at) for old, value in zip(loop.carried[len(sources) :], running, strict=True)]
        loop.yield_(*running, *written)
    return loop.results[len(sources) :]


RULES: Rules = {
    tt.Reduce: _reduce,
    tt.Scan: _scan,
}

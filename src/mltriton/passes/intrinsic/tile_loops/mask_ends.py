"""Where the masks of a row end: the part of a loop over chunks that lies inside all of them.

Level: warp to intrinsic. Most masks of a row are `column < n`: they hold up to a column that is known before the loop.
The loop is split there (`loop_nests.py`), and only its rest takes masks. A masked access costs more than its
instruction even where the target has one: hardware prefetchers do not follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from mltriton.dialects import arith, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, I64, PointerType, TensorType
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates, Footprint
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index, is_uniform
from mltriton.records import NamedTuple, record

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.members import Member

# a < b as (predicate, operands swapped, 1 where equality is enough); unsigned ones hold for a >= 0 only.
_ORDERS: dict[str, tuple[bool, int, bool]] = {
    "slt": (False, 0, False),
    "sle": (False, 1, False),
    "sgt": (True, 0, False),
    "sge": (True, 1, False),
    "ult": (False, 0, True),
    "ule": (False, 1, True),
    "ugt": (True, 0, True),
    "uge": (True, 1, True),
}


class Inside(NamedTuple):
    """Operations whose masks hold at the coordinates of a row below `end` (an i32 from 0 to the row's length)."""

    operations: frozenset[Operation]
    end: Value


class _NoEnd(Exception):  # noqa: N818 - no error: a question that has no answer
    """A mask that does not hold from the start of a row up to one coordinate."""


def inside_masks(
    e: Evaluator, members: Iterable[tuple[Member, Footprint]], produced: Collection[Value], index: Index, length: int
) -> Inside | None:
    """The masked accesses and selections of a row's members that need no mask up to some coordinate."""
    row = _Row(e, produced, (*index, Affine(I32, None, 0, 1)), length)
    ends: list[Value] = []
    operations: set[Operation] = set()
    for op, coordinates in _masked(members, lane=len(index)).items():
        if op not in e.unmasked:
            try:
                ends += [end for where in coordinates for end in row.ends(op, where)]
            except _NoEnd:
                continue
            operations.add(op)
    if not operations:
        return None
    end = e.emitter.integer(length, I64)
    for other in dict.fromkeys(ends):
        end = e.emitter.pure(arith.MinSI, (end, other), I64)
    end = e.emitter.pure(arith.MaxSI, (end, e.emitter.integer(0, I64)), I64)
    return Inside(frozenset(operations), e.emitter.pure(arith.TruncI, (end,), I32))


def _masked(members: Iterable[tuple[Member, Footprint]], lane: int) -> dict[Operation, list[Coordinates]]:
    """What has a mask, and all coordinates at which the members evaluate it, if they follow the lanes."""
    found: dict[Operation, list[Coordinates]] = {}
    for member, footprint in members:
        seen = [*footprint.loads]
        if member.store is not None:
            seen.append((member.store, member.coordinates))
        seen += [(op, at) for value, at in footprint.visited if isinstance(op := value.defining_op, arith.Select)]
        for op, coordinates in seen:
            if _mask_of(op) is not None:
                found.setdefault(op, []).append(coordinates)
    return {op: all_ for op, all_ in found.items() if all(lane in at and min(at) >= -1 for at in all_)}


def _mask_of(op: Operation) -> Value | tuple[int, ...] | None:
    """The mask as a block, or the dimensions that are checked; None if nothing is."""
    if isinstance(op, arith.Select):
        return op.condition if isinstance(op.condition.type, TensorType) else None
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        return tuple(range(len(op.indices)))
    if isinstance(op, tt.Load | tt.Store):
        return op.boundary_check or None if isinstance(op.ptr.type, PointerType) else op.mask
    return None


@record(eq=False)
class _Row:
    """A row: `index` are the coordinates of its outer dimensions and the lanes, which start at 0 and are `length`."""

    e: Evaluator
    produced: Collection[Value]
    index: Index
    length: int

    def ends(self, op: Operation, coordinates: Coordinates) -> Iterator[Value]:
        """i64 scalars: up to the smallest of them the mask of `op` holds. Raises `_NoEnd`."""
        index = tuple(self.index[coordinate] if coordinate >= 0 else constant_index(0) for coordinate in coordinates)
        mask = _mask_of(op)
        if isinstance(mask, Value):
            footprint = Footprint(aliases=self.e.aliases)
            footprint.follow(mask, coordinates, self.produced)
            if footprint.loads or any(v in self.produced or v in self.e.tiles for v, _ in footprint.visited):
                raise _NoEnd
            yield from self._of_mask(mask, index)
        elif mask is not None:
            yield from self._of_block(op, mask, index)

    def _of_mask(self, mask: Value, index: Index) -> Iterator[Value]:
        op = mask.defining_op
        if isinstance(op, arith.AndI):
            yield from self._of_mask(op.lhs, index)
            yield from self._of_mask(op.rhs, index)
        elif isinstance(op, tt.ExpandDims | tt.Broadcast | tt.Trans | ttg.ConvertLayout):
            ((source, coordinates),) = op.source_elements(index, constant_index(0), None)
            yield from self._of_mask(source, coordinates)
        elif isinstance(op, tt.Splat):
            yield self._if(self.e.scalar(op.source))
        elif isinstance(op, arith.CmpI):
            forms = [self.e.at(operand, index, self.length) for operand in op.operands]
            yield self._of_comparison(op.predicate, *forms)
        elif not (isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr) and all(op.value.values)):
            raise _NoEnd

    def _of_block(self, op: Operation, checked: tuple[int, ...], index: Index) -> Iterator[Value]:
        """`accesses.block_access` says what is checked."""
        e = self.e
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
            pointer = accesses.block_pointer(e, op.desc)._replace(offsets=tuple(e.scalar(v) for v in op.indices))
        else:
            assert isinstance(op, tt.Load | tt.Store)
            pointer = accesses.block_pointer(e, op.ptr)
        index = (constant_index(0),) * (len(pointer.offsets) - len(index)) + index
        for dim in checked:
            coordinate = combine(
                e, arith.AddI, [e.arithmetic.wrap(pointer.offsets[dim]), index[dim]], I32, self.length, {}
            )
            extent = e.arithmetic.wrap(accesses.extent_of(e, pointer.shape[dim]))
            yield self._of_comparison("ult", coordinate, extent)

    def _of_comparison(self, predicate: str, a: Form, b: Form) -> Value:
        e = self.e
        if is_uniform(a) and is_uniform(b):
            return self._if(e.arithmetic.scalar(accesses.compare(e, predicate, a, b, 1)))
        if predicate not in _ORDERS:
            raise _NoEnd
        swapped, or_equal, unsigned = _ORDERS[predicate]
        low, high = (b, a) if swapped else (a, b)
        if not (isinstance(low, Affine) and isinstance(high, Affine) and low.stride == 1 and high.stride == 0):
            raise _NoEnd
        end = e.emitter.pure(arith.SubI, (self._wide(high), self._wide(low)), I64)
        if or_equal:
            end = e.emitter.pure(arith.AddI, (end, e.emitter.integer(1, I64)), I64)
        if unsigned and not (low.base is None and low.const >= 0):
            start = Affine(low.type, low.base, low.const, 0)
            is_positive = accesses.compare(e, "sge", start, Affine(low.type, None, 0, 0), 1)
            end = self._if(e.arithmetic.scalar(is_positive), end)
        return end

    def _wide(self, form: Affine) -> Value:
        """The number of lane 0 as an i64."""
        number = self.e.arithmetic.scalar(form)
        if number.type is I64:
            return number
        known = self.e.emitter.integers.get(number)
        return self.e.emitter.pure(arith.ExtSI, (number,), I64) if known is None else self.e.emitter.integer(known, I64)

    def _if(self, condition: Value, end: Value | None = None) -> Value:
        """`end` (the whole row) where the condition holds, else 0."""
        emitter = self.e.emitter
        operands = (condition, end or emitter.integer(self.length, I64), emitter.integer(0, I64))
        known = emitter.integers.get(condition)
        if known is not None:
            return operands[1] if known else operands[2]
        return emitter.pure(arith.Select, operands, I64)

"""Along which dimension of a block memory runs, as far as addresses say it.

Level: warp. A store whose memory runs along another dimension than its last one, and whose lanes can follow it, has
loops in an order of its own (`transposing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING

from mltriton.analysis.block_pointer_roots import origins
from mltriton.dialects import tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.footprints import Footprint
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.analysis.axis_info import AxisInfoAnalysis

SMALLEST = 4  # squares of fewer lanes are not worth a transpose


class Direction(NamedTuple):
    """The dimension that lanes go along, and the size of the squares that are transposed."""

    along: int
    squares: int


class Directions:
    """What addresses say of a function's blocks; `reads` says what a value is computed from, `lanes` are those of the
    target's chunks.
    """

    def __init__(self, function: tt.Func, lanes: int, reads: Callable[[Value], Footprint]) -> None:
        self._function = function
        self.lanes = lanes
        self.reads = reads

    @cached_property
    def _axis_info(self) -> AxisInfoAnalysis:
        from mltriton.analysis.axis_info import AxisInfoAnalysis  # Many programs have no blocks of pointers.

        return AxisInfoAnalysis(self._function)

    def of_store(self, store: tt.Store | tt.DescriptorStore) -> Direction | None:
        """Where lanes of a store go along another dimension than the last: which, and the size of the squares in which
        the block is transposed in registers on its way, 0 where it runs along that dimension, too.
        """
        shape = shape_of(store.value.type)
        last = len(shape) - 1
        unit = self.is_unit(store.value, store)
        along = next((dim for dim in reversed(range(last + 1)) if shape[dim] > 1 and unit[dim]), last)
        if along == last:
            return None
        dim, size = self.contiguous_dim(store.value, stored=False), gcd(shape[along], shape[last], self.lanes)
        if dim == along:
            return Direction(along, 0)
        return Direction(along, size) if dim == last and size >= SMALLEST else None

    def contiguous_dim(self, value: Value, *, stored: bool = True) -> int:
        """The dimension along which the memory runs from which a value is computed, what is `stored` there in scratch
        memory included: the last where it is not known.
        """
        last, found = len(shape_of(value.type)) - 1, self.reads(value)
        loads = [(load.results[0], load, coordinates) for load, coordinates in found.loads]
        leaves = [(leaf, None, coordinates) for leaf, coordinates in found.leaves] if stored else []
        for block, load, coordinates in [*loads, *leaves]:
            if min(coordinates, default=0) < -1 or len(set(coordinates) - {-1}) < 2:
                continue
            unit = self.is_unit(block, load)
            parts = zip(coordinates, unit, shape_of(block.type), strict=True)
            runs = {dim for dim, is_unit, extent in parts if is_unit and (extent > 1 or dim == last)}
            if last not in coordinates or last in runs:
                return last
            if runs:
                return min(runs)
        return last

    def is_unit(self, block: Value, op: Operation | None) -> Sequence[bool]:
        """For each dimension of a block whether neighbours along it are neighbours in memory: where `op` accesses it,
        in scratch memory without.
        """
        shape = shape_of(block.type)
        if op is None or isinstance(op, ttg.LocalLoad):
            return [dim == len(shape) - 1 for dim in range(len(shape))]
        pointer = op.operands[0]
        if isinstance(pointer.type, TensorType):
            found = self._axis_info.of(pointer).contiguity
            return [run == extent for run, extent in zip(found, shape, strict=True)]
        makers = [*origins(pointer, tt.MakeTensorPtr), *origins(pointer, tt.MakeTensorDesc)]
        strides = [maker.strides[-len(shape) :] for maker in makers]
        return [bool(strides) and all(splat_of(each[dim]) == 1 for each in strides) for dim in range(len(shape))]

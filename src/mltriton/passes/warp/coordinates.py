"""Where a warp stands in its program: its part of each block, as scalars computed from the warp id.

Level: warp. `WarpCoordinates` emits the arithmetic once, at the function's entry, and hands out the values. Offsets
are i32, in elements.
"""

from __future__ import annotations

from mltriton.dialects import arith, gpu
from mltriton.ir.builder import Builder
from mltriton.ir.location import Location
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import I1, I32, I64
from mltriton.layouts.encodings import Cut, Encoding, Shape


class WarpCoordinates:
    """The warp id and what follows from it, in `entry`: a block whose operations the pass puts at the start of the
    function.
    """

    def __init__(self, num_warps: int, loc: Location) -> None:
        self.num_warps = num_warps
        self.entry = Block()
        self._builder = Builder(self.entry, loc)
        self._parts: dict[tuple[int, int], Value] = {}
        self._offsets: dict[tuple[int, int, int], Value] = {}
        self._owners: dict[int, Value] = {}
        self._id: Value | None = None

    def warp_id(self) -> Value:
        """The warp's id as i32."""
        if self._id is None:
            index = self._builder.emit(gpu.SubgroupId)
            index.hint = "warp_id"
            self._id = self._builder.emit(arith.IndexCast, index, result_types=[I32])
        return self._id

    def part(self, cut: Cut, extent: int) -> Value | None:
        """The number of this warp's part along a dimension of `extent` elements; None where there is only one part."""
        parts = cut.parts(extent)
        if parts == 1:
            return None
        key = (cut.stride, parts)
        if key not in self._parts:
            part = self.warp_id()
            if cut.stride > 1:
                part = self._builder.emit(arith.DivUI, part, self._constant(cut.stride))
            if cut.stride * parts < self.num_warps:
                part = self._builder.emit(arith.RemUI, part, self._constant(parts))
            self._parts[key] = part
        return self._parts[key]

    def offset(self, cut: Cut, extent: int) -> Value | None:
        """The first element of this warp's part; None where it is 0 for every warp."""
        part = self.part(cut, extent)
        if part is None or cut.size == 1:
            return part
        key = (cut.stride, cut.parts(extent), cut.size)
        if key not in self._offsets:
            self._offsets[key] = self._builder.emit(arith.MulI, part, self._constant(cut.size))
        return self._offsets[key]

    def offsets(self, encoding: Encoding, shape: Shape) -> list[Value | None]:
        """The first element of this warp's part, dimension by dimension."""
        return [self.offset(cut, extent) for cut, extent in zip(encoding.cut(shape), shape, strict=True)]

    def owner(self, encoding: Encoding | None, shape: Shape) -> Value | None:
        """Whether this warp is the first that holds its part (i1); None where no two warps hold the same part."""
        mask = self._owner_mask(encoding, shape)
        if mask == (1 << self.num_warps) - 1:
            return None
        if mask not in self._owners:
            shift = self._builder.emit(arith.ExtUI, self.warp_id(), result_types=[I64])
            signed = mask - (1 << 64) if mask >= 1 << 63 else mask
            bits = arith.integer(self._builder, signed, I64)
            bit = self._builder.emit(arith.ShRUI, bits, shift)
            self._owners[mask] = self._builder.emit(arith.TruncI, bit, result_types=[I1])
        return self._owners[mask]

    def _owner_mask(self, encoding: Encoding | None, shape: Shape) -> int:
        cuts = encoding.cut(shape) if encoding is not None else ()
        seen: set[tuple[int, ...]] = set()
        mask = 0
        for warp in range(self.num_warps):
            parts = tuple((warp // cut.stride) % cut.parts(extent) for cut, extent in zip(cuts, shape, strict=True))
            mask |= (parts not in seen) << warp
            seen.add(parts)
        return mask

    def _constant(self, value: int) -> Value:
        return arith.integer(self._builder, value)

    def prepend_to(self, block: Block) -> None:
        """Put what was emitted in front of the operations of `block`."""
        moved: list[Operation] = list(self.entry.ops)
        for op in moved:
            op.block = block
        block.ops[:0] = moved

"""Where the elements of a block in memory are, for the registers of a warp.

Level: intrinsic -> llvm. Element i of a block with offset o and stride s along a dimension is at (o + i) s. What all
lanes share is added up as scalars; what differs from lane to lane is one vector for the whole block.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.types import TensorType, bit_width
from mltriton.targets.llvm.types import I1, I64, Type, Value, constant, vector
from mltriton.targets.simt.blocks import extent
from mltriton.targets.simt.context import coordinates
from mltriton.targets.simt.lanes import BlockPointer, layout_of
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import LANES


def addresses(e: WarpEmitter, block: TensorType, pointer: BlockPointer) -> list[Value]:
    """The address of each register's elements."""
    element = vector(f"i{bit_width(block.element)}", 1)
    base = pointer.base
    for offset, stride in zip(pointer.offsets, pointer.strides, strict=True):
        base = e.affine.address(base, e.affine.mul(e.affine.widen(offset, I64), stride), element)
    return element_addresses(e, block, base, pointer.strides, element)


def element_addresses(
    e: WarpEmitter, block: TensorType, base: Value, strides: Sequence[Value], element: Type
) -> list[Value]:
    """The addresses of the elements of a block that starts at `base`; `strides` have the type of addresses."""
    layout, made = layout_of(block), [base] * layout_of(block).count("register")
    for dim, stride in enumerate(strides):
        along = [e.affine.widen(index, base.type.scalar) for index in coordinates(e, layout, dim)]
        made = [
            e.affine.address(a, e.affine.mul(coordinate, stride), element)
            for a, coordinate in zip(made, along, strict=True)
        ]
    return made


def inside(e: WarpEmitter, block: TensorType, pointer: BlockPointer, checked: Sequence[int]) -> list[Value] | None:
    """Whether each register's elements are inside the tensor along the dimensions `checked`; None without any."""
    if not checked:
        return None
    f, layout = e.function, layout_of(block)
    masks = [constant(I1.with_lanes(LANES), 1)] * layout.count("register")
    for dim in checked:
        size = e.affine.spread(extent(e, pointer.shape[dim]), LANES)
        for number, coordinate in enumerate(coordinates(e, layout, dim)):
            first = e.affine.floor(e.affine.add(pointer.offsets[dim], coordinate), e.affine.divisor(pointer.shape[dim]))
            index = e.affine.widen(first, I64)
            masks[number] = f.and_(f.icmp("ult", index, size), masks[number])
    return masks

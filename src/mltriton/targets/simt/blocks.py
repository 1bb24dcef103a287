"""Where the elements of a block in global memory are, for each register of a lane.

Level: intrinsic -> llvm. Element i of a block with offset o and stride s along a dimension is at (o + i) s; what
differs from register to register is added last, so that registers which are neighbours in memory are seen to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.types import TensorType, bit_width
from mltriton.targets.llvm.types import I64, Type, Value, constant, vector
from mltriton.targets.simt.context import Emitter, coordinates
from mltriton.targets.simt.lanes import BlockPointer, layout_of


def offsets_of(e: Emitter, block: TensorType, pointer: BlockPointer) -> list[list[Value]]:
    """For each dimension the index in the tensor of each register's element, i32."""
    layout = layout_of(block)
    return [
        [e.affine.add(offset, at) for at in coordinates(e, layout, dim)] for dim, offset in enumerate(pointer.offsets)
    ]


def addresses(e: Emitter, block: TensorType, pointer: BlockPointer) -> list[Value]:
    """The address of each register's element."""
    element = vector(f"i{bit_width(block.element)}", 1)
    along = offsets_of(e, block, pointer)
    return [_address(e, pointer, element, at) for at in zip(*along, strict=True)]


def _address(e: Emitter, pointer: BlockPointer, element: Type, at: Sequence[Value]) -> Value:
    """The variable parts of all dimensions first, then what is the same in all lanes."""
    address = pointer.base
    terms = [e.affine.term(index) for index in at]
    for term, stride in zip(terms, pointer.strides, strict=True):
        if term.root is not None:
            address = e.affine.address(address, e.affine.mul(e.affine.widen(term.root, I64), stride), element)
    for term, stride in sorted(zip(terms, pointer.strides, strict=True), key=lambda pair: pair[1].literal is not None):
        address = e.affine.address(address, e.affine.mul(stride, constant(I64, term.constant)), element)
    return address


def extent(e: Emitter, size: Value) -> Value:
    """A size as i64 that indices are compared with as numbers without a sign: in a negative one is no element."""
    f, wide = e.function, e.function.cast("sext", size, I64)
    return f.select(f.icmp("slt", wide, 0), constant(I64, 0), wide)


def inside(e: Emitter, block: TensorType, pointer: BlockPointer, checked: Sequence[int]) -> list[Value] | None:
    """Whether each register's element is inside the tensor along the dimensions `checked`; None without any."""
    if not checked:
        return None
    f, ends = e.function, [e.affine.divisor(size) for size in pointer.shape]
    along = [
        [e.affine.floor(at, end) for at in found]
        for found, end in zip(offsets_of(e, block, pointer), ends, strict=True)
    ]
    masks: list[Value] = []
    for at in zip(*along, strict=True):
        mask = f.true()
        for dim in checked:
            index, size = f.cast("sext", at[dim], I64), extent(e, pointer.shape[dim])
            mask = f.and_(f.icmp("ult", index, size), mask)
        masks.append(mask)
    return masks

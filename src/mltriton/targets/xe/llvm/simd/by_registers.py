"""2D blocks of matrices that the hardware does not take: moved register by register, in a loop.

Level: intrinsic -> llvm. Takes and gives the vector that the block access of a warp would (`block_io`). Guarantees:
elements outside the matrix load as 0 and are not stored.
"""

from __future__ import annotations

from mltriton.ir.types import TensorType, byte_width
from mltriton.targets.llvm.types import I16, I32, I64, Type, Value, constant, poison, vector
from mltriton.targets.simt.lanes import layout_of
from mltriton.targets.simt.moves import linear
from mltriton.targets.xe.block_limits import Access
from mltriton.targets.xe.llvm.block_io import Message
from mltriton.targets.xe.llvm.matrices import Matrix
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, gather, read_at, scatter, write_at

_WORD = 4  # bytes in which loads for right operands put elements below each other


def loaded_type(type_: TensorType, message: Message) -> Type:
    """The vector that a message moves."""
    size = message.block.element_bytes
    return vector(f"i{8 * size}", message.registers * LANES * byte_width(type_.element) // size)


def apart(type_: TensorType, message: Message) -> int:
    """How many registers lie between each other in a message's vector: those of neighbouring elements in 32 bits, or
    of the columns that one lane has of a row.
    """
    turned = message.block.access in (Access.LOAD_VNNI, Access.LOAD_TRANSPOSE)
    return max(1, _WORD // byte_width(type_.element) if turned else message.block.width // LANES)


def load(e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message, number: int) -> Value:
    """The rectangle of message `number`."""
    f, size = e.function, byte_width(type_.element)
    element = vector(f"i{8 * size}", message.registers * LANES)
    count, one = constant(I32, message.registers), constant(I32, 1)
    # A first value would stay in registers beside what is loaded; each element is written once.
    with f.loop(constant(I32, 0), count, one, [poison(element)], at_least_once=True, name="register") as loop:
        address, inside = _position(e, type_, matrix, message, number, loop.index)
        found = f.cast("trunc", gather(f, address, inside, size, 1, cached=e.cached), element.with_lanes(LANES))
        found = f.select(inside, found, constant(found.type, 0))
        byte, stride = _held(e, type_, message, loop.index)
        loop.yield_(write_at(f, loop.carried[0], found, byte, stride))
    return f.bitcast(loop.results[0], loaded_type(type_, message))


def store(e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message, number: int, data: Value) -> None:
    """The opposite of `load`."""
    f, size = e.function, byte_width(type_.element)
    count, one = constant(I32, message.registers), constant(I32, 1)
    with f.loop(constant(I32, 0), count, one, at_least_once=True, name="register") as loop:
        address, inside = _position(e, type_, matrix, message, number, loop.index)
        byte, stride = _held(e, type_, message, loop.index)
        row = read_at(f, data, byte, LANES, stride)
        scatter(
            f,
            address,
            inside,
            f.cast("zext", row, row.type.with_element(f"i{max(32, 8 * size)}")),
            size,
            1,
            cached=e.cached,
        )
        loop.yield_()


def _position(
    e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message, number: int, register: Value
) -> tuple[Value, Value]:
    """The addresses of a register's elements, and whether they are in the matrix."""
    f, layout, size = e.function, layout_of(type_), byte_width(type_.element)
    origin = layout.at(register=number * message.registers)
    bits = message.registers.bit_length() - 1
    index: list[Value] = []
    for dim in message.dims:
        by_register = tuple(vector[dim] for vector in layout.vectors("register")[:bits])
        start = e.affine.add(matrix.offsets[dim], constant(I32, origin[dim]))
        moved = e.affine.spread(linear(f, register, by_register), LANES)
        coordinate = f.xor(moved, e.by_lane(tuple(vector[dim] for vector in layout.vectors("lane"))))
        index.append(f.cast("sext", f.add(e.affine.spread(start, LANES), coordinate), I64.with_lanes(LANES)))
    sizes = [e.affine.spread(f.cast("sext", matrix.shape[dim], I64), LANES) for dim in message.dims]
    # Both comparisons with a sign: sizes made positive beforehand would stay in registers beside the loops.
    below = [f.icmp("slt", coordinate, end) for coordinate, end in zip(index, sizes, strict=True)]
    inside = f.and_(f.and_(*below), f.icmp("sge", f.or_(*index), constant(I64.with_lanes(LANES), 0)))
    stride = e.affine.spread(e.affine.widen(matrix.strides[message.dims[0]], I64), LANES)
    offset = f.mul(f.add(f.mul(index[0], stride), index[1]), size)
    return f.add(e.affine.spread(matrix.base, LANES), offset), inside


def _held(e: WarpEmitter, type_: TensorType, message: Message, register: Value) -> tuple[Value, int]:
    """Where in a message's vector a register's elements are: the first byte, and how many elements they are apart."""
    f, size, between = e.function, byte_width(type_.element), apart(type_, message)
    row = f.mul(f.binary("udiv", register, constant(I32, between)), LANES * between * size)
    part = f.mul(f.and_(register, between - 1), size)
    return f.cast("trunc", f.add(row, part), I16), between

"""2D block accesses of a SIMD kernel: one instruction moves a rectangle between memory and one vector.

Level: intrinsic -> llvm. Which messages access a block, and what the hardware requires of a matrix, is as in a lane's
program (`..block_io`). A matrix is described by a vector that is made where the matrix is; an access puts its
coordinate in, and pieces of one block differ by a constant distance, which the instruction adds itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from mltriton.ir.types import TensorType, byte_width
from mltriton.targets.llvm.types import I32, Value, constant, poison, vector
from mltriton.targets.simt.lanes import BlockPointer, Form, Lanes, layout_of
from mltriton.targets.xe.block_limits import Access
from mltriton.targets.xe.llvm.block_io import Message
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.llvm.matrices import Matrix
from mltriton.targets.xe.llvm.simd import by_registers, intrinsics
from mltriton.targets.xe.llvm.simd.by_registers import apart, loaded_type
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, value_type
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, joined, read, write

_MOST_DISTANCE = 511  # elements that an instruction adds to the coordinate of a block
_ALIGNMENT = 4  # bytes, of such a distance along a row
_FORMS = {Access.LOAD: "", Access.LOAD_VNNI: "vnni.", Access.LOAD_TRANSPOSE: "transpose."}


def load(e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message, *, fast: bool) -> Lanes:
    """The block; with `fast` by the instruction, or else register by register."""
    form, values = _form_in(form_of(type_), type_, message), list[Value]()
    for number in range(message.number):
        if fast:
            described, distance = _position(e, type_, matrix, message, number)
            kind, shape = _FORMS[message.block.access], _shape(message)
            held = loaded_type(type_, message)
            loaded = intrinsics.load_rectangle(e.function, held, kind, shape, described, distance, e.cached)
        else:
            loaded = by_registers.load(e, type_, matrix, message, number)
        values += _values(e, loaded, form, apart(type_, message))
    made = Lanes(form, values)
    return made if form == form_of(type_) else e.packed(e.scalars(made), form_of(type_))


def _form_in(form: Form, type_: TensorType, message: Message) -> Form:
    """How the values of a block lie in a message's vector: as they are held, or register by register."""
    fits = message.registers % form.width == 0 and form.width // form.type.lanes == apart(type_, message)
    return form if fits else Form(1, form.element, form.element)


def _values(e: WarpEmitter, loaded: Value, form: Form, between: int) -> list[Value]:
    """The values of a block in a message's vector, `between` registers lying between each other."""
    f, wanted = e.function, value_type(form)
    if form.width > 1 or between == 1:
        size = wanted.bytes // loaded.type.scalar.bytes
        parts = [read(f, loaded, start, size) for start in range(0, loaded.type.lanes, size)]
        return [e.bits_as(part, wanted) for part in parts]
    whole = e.bits_as(loaded, wanted.with_lanes(loaded.type.bytes // wanted.scalar.bytes))
    starts = (row + part for row in range(0, whole.type.lanes, LANES * between) for part in range(between))
    return [read(f, whole, start, LANES, between) for start in starts]


def store(e: WarpEmitter, type_: TensorType, matrix: Matrix, value: Lanes, message: Message, *, fast: bool) -> None:
    """Write the block."""
    form = _form_in(value.form, type_, message)
    if form != value.form:
        value = e.packed(e.scalars(value), form)
    per_message = message.registers // form.width
    for number in range(message.number):
        held = value.values[number * per_message : (number + 1) * per_message]
        data = e.bits_as(_data(e, held, apart(type_, message) if form.width == 1 else 1), loaded_type(type_, message))
        if fast:
            described, distance = _position(e, type_, matrix, message, number)
            intrinsics.store_rectangle(e.function, data, _shape(message), described, distance, e.cached)
        else:
            by_registers.store(e, type_, matrix, message, number, data)


def _data(e: WarpEmitter, values: Sequence[Value], between: int) -> Value:
    """The opposite of `_values`."""
    f = e.function
    if between == 1:
        return joined(f, values)
    held = poison(values[0].type.with_lanes(LANES * len(values)))
    for number, value in enumerate(values):
        start = number // between * between * LANES + number % between
        held = write(f, held, value, start, between)
    return held


def prefetch(e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message) -> None:
    """Bring the block nearer."""
    element = vector(f"i{8 * message.block.element_bytes}", 1)
    for number in range(message.number):
        described, distance = _position(e, type_, matrix, message, number)
        intrinsics.prefetch_rectangle(e.function, element, _shape(message), described, distance)


def _shape(message: Message) -> Sequence[int]:
    block = message.block
    return block.blocks, block.height, block.width


def describe(e: WarpEmitter, pointer: BlockPointer | Matrix, size: int, dims: tuple[int, int]) -> Value:
    """What messages say of a matrix with elements of `size` bytes."""
    row, column = dims
    words = [e.affine.narrow(n, I32) for n in (pointer.shape[column], pointer.shape[row], pointer.strides[row])]
    sized = [word if number == 1 else e.function.mul(word, size) for number, word in enumerate(words)]
    return intrinsics.surface(e.function, pointer.base, [e.function.sub(word, 1) for word in sized])


def _position(
    e: WarpEmitter, type_: TensorType, matrix: Matrix, message: Message, number: int
) -> tuple[Value, tuple[int, int]]:
    """The description of message `number`, and the distances of columns and rows that its instruction adds."""
    size, (row, column) = byte_width(type_.element), message.dims
    origin = layout_of(type_).at(register=number * message.registers)

    def at(dim: int) -> Value:
        coordinate = e.affine.add(matrix.offsets[dim], constant(I32, origin[dim]))
        if dim == column and message.transposed:
            return e.function.ashr(coordinate, (message.block.element_bytes // size).bit_length() - 1)
        return coordinate

    described = partial(describe, e, matrix, size, message.dims)
    units = {column: message.block.element_bytes, row: _ALIGNMENT}
    if matrix.invariant is not None and any(matrix.invariant):
        return _place_in_loop(e, matrix, described, at, units)
    (x, dx), (y, dy) = (_apart(e, at(dim), unit) for dim, unit in units.items())
    return intrinsics.rectangle(e.function, described(), x, y), (dx, dy)


def _place_in_loop(
    e: WarpEmitter,
    matrix: Matrix,
    described: Callable[[], Value],
    at: Callable[[int], Value],
    units: Mapping[int, int],
) -> tuple[Value, tuple[int, int]]:
    """The same where a loop moves a block along one dimension: the description is a variable, of which an iteration
    changes that coordinate alone. Each address is a variable; to the coordinate in the first one, instructions add
    distances.
    """
    f, distances, invariant = e.function, [0, 0], cast("tuple[bool, ...]", matrix.invariant)
    with f.before_loop():
        first = described()
        for element, dim in enumerate(units, intrinsics.PLACE):
            first = f.insert(first, at(dim), element) if invariant[dim] else first
        kept = e.variable(first, matrix.address)
    for element, (dim, unit) in enumerate(units.items()):
        if not invariant[dim]:
            value, distances[element] = (at(dim), 0) if matrix.address else _apart(e, at(dim), unit)
            held = f.pure(f"load {first.type}, {kept}, align 64", first.type, "load", (kept,))
            first = f.insert(held, value, intrinsics.PLACE + element)
            f.store(first, kept, 64)
    return first, (distances[0], distances[1])


def _apart(e: WarpEmitter, value: Value, size: int) -> tuple[Value, int]:
    """A coordinate as a value and a constant distance from it."""
    term = e.affine.term(value)
    if term.root is None or abs(term.constant) > _MOST_DISTANCE or term.constant * size % _ALIGNMENT:
        return value, 0
    return term.root, term.constant

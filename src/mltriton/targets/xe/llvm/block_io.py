"""2D block accesses: a warp reads or writes a rectangle of a matrix in memory by one instruction.

Level: intrinsic -> llvm. Takes blocks whose layout is that of the instruction: `#ttig.subgroup_2d_block`, or rows of 16
neighbouring columns in the lanes, as the matrix engine leaves its results. Guarantees: an access that breaks a limit
known when compiling is none of these (`message_of` gives None); what is not known is checked at run time (by whom, says
`surfaces.py`), and where it does not hold, a function of the module does the same element by element. Elements outside
the matrix load as 0 and are not stored. Dimensions whose bounds are not checked are promised to be inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mltriton.ir.types import TensorType, byte_width
from mltriton.layouts.linear import LinearLayout
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import GLOBAL_PTR, I8, I32, I64, PTR, VOID, Type, Value, constant, poison, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.blocks import extent
from mltriton.targets.simt.lanes import BlockPointer, Form, Lanes, layout_of
from mltriton.targets.simt.moves import linear
from mltriton.targets.xe.block_limits import SUB_GROUP, Access, Block, broken_limits
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.layouts.encodings import WORD, Subgroup2DBlockEncoding
from mltriton.targets.xe.llvm import calls, payloads
from mltriton.targets.xe.llvm.caching import decorated
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.llvm.matrices import Matrix
from mltriton.targets.xe.spirv import builtins

if TYPE_CHECKING:
    from mltriton.targets.xe.llvm.emit.context import XeEmitter

BUILTINS = {
    Access.LOAD: builtins.BLOCK_LOAD,
    Access.LOAD_VNNI: builtins.BLOCK_LOAD_VNNI,
    Access.LOAD_TRANSPOSE: builtins.BLOCK_LOAD_TRANSPOSE,
    Access.STORE: builtins.BLOCK_STORE,
    Access.PREFETCH: builtins.BLOCK_PREFETCH,
}


# Columns of a block that is prefetched, by bytes of an element; more are further blocks of it.
PREFETCHED_COLUMNS = {1: 32, 2: 16, 4: 16}


class Message(NamedTuple):
    """What one instruction takes: a rectangle, in so many `registers`; a block takes `number` of them. Where it is
    `transposed`, columns of the block are rows in memory, and the instruction counts columns in words of 32 bits.
    """

    block: Block
    registers: int
    number: int
    transposed: bool = False

    @property
    def dims(self) -> tuple[int, int]:
        """The dimensions of the block that are rows and columns in memory."""
        return (-1, -2) if self.transposed else (-2, -1)


def message_of(device: Device, type_: TensorType, pointer: BlockPointer, access: Access) -> Message | None:
    """The messages that access a block; None where there are none: no dimension is contiguous in memory, say."""
    if type_.rank < 2 or any(size > 1 for size in type_.shape[:-2]):
        return None
    row_major, transposed = (pointer.strides[dim].literal == 1 for dim in (-1, -2))
    if not row_major and not (transposed and access is not Access.STORE):
        return None
    size, layout = byte_width(type_.element), layout_of(type_)
    block = _block(type_, access) if row_major else _transposed_block(type_, access)
    if block is None or broken_limits(device, block):
        return None
    registers = block.width * block.height * block.blocks * block.element_bytes // size // device.simd
    in_words = block.access in (Access.LOAD_VNNI, Access.LOAD_TRANSPOSE)
    if not registers or layout.count("register") % registers or (in_words and registers * size % WORD):
        return None
    return Message(block, registers, layout.count("register") // registers, transposed=not row_major)


def _block(type_: TensorType, access: Access) -> Block:
    size, encoding = byte_width(type_.element), type_.encoding
    if isinstance(encoding, Subgroup2DBlockEncoding):
        (height, width), blocks = encoding.block, encoding.blocks
        if access is Access.LOAD and encoding.is_vnni(size):
            access = Access.LOAD_VNNI
    else:
        (height, width), blocks = _rows_of_lanes(layout_of(type_)), 1
    return Block(access, size, width, min(height, 8) if access is Access.STORE else height, blocks)


def _transposed_block(type_: TensorType, access: Access) -> Block | None:
    """A block whose columns are contiguous in memory: a lane gets words of one, as they lie."""
    size, encoding = byte_width(type_.element), type_.encoding
    if access is Access.PREFETCH and isinstance(encoding, Subgroup2DBlockEncoding) and encoding.blocks == 1:
        height, width = encoding.block
        across = min(height, PREFETCHED_COLUMNS.get(size, height))
        return Block(access, size, across, width, height // across)
    if not isinstance(encoding, Subgroup2DBlockEncoding) or encoding.blocks != 1 or size > 4:
        return None
    height, width = encoding.block
    return Block(Access.LOAD_TRANSPOSE, 4, height * size // 4, width)


def _rows_of_lanes(layout: LinearLayout) -> tuple[int, int]:
    """Rows and columns that lie in the first registers, one row in each; no rows where lanes are no neighbours."""
    *_, row, column = range(len(layout.outputs))
    lanes = layout.vectors("lane")
    if any(basis[column] != 1 << bit or sum(basis) != basis[column] for bit, basis in enumerate(lanes)):
        return 0, 0
    height = 1
    for basis in layout.vectors("register"):
        if basis[row] != height or sum(basis) != height or height == 32:
            break
        height *= 2
    return height, 1 << len(lanes)


# Accesses.


def load(e: XeEmitter, type_: TensorType, matrix: Matrix, message: Message, *, fast: bool) -> Lanes:
    """The block; with `fast` by the instruction, or else element by element."""
    form, f = form_of(type_), e.function
    if message.registers % form.width:
        form = Form(1, form.element, form.element)
    values: list[Value] = []
    for number in range(message.number):
        memory = _private(e, type_, message)
        _access(e, type_, matrix, message, number, memory, fast=fast)
        values += _from_private(f, memory, form, message)
    made = Lanes(form, values)
    return made if form == form_of(type_) else e.packed(e.scalars(made), form_of(type_))


def _from_private(f: Function, memory: Value, form: Form, message: Message) -> list[Value]:
    """The registers that a message has left in the memory of a lane."""
    whole, element = message.registers * form.element.bytes, form.type.scalar
    if _in_words(form, message):
        per_word = element.with_lanes(I32.bytes // element.bytes)
        words = [f.bitcast(f.load(I32, f.gep(memory, at, I8)), per_word) for at in range(0, whole, I32.bytes)]
        return [f.extract(word, part) for word in words for part in range(per_word.lanes)]
    return [f.load(form.type, f.gep(memory, at, I8)) for at in range(0, whole, form.width * form.element.bytes)]


def _in_words(form: Form, message: Message) -> bool:
    """Whether a lane has the neighbours of 32 bits: Intel's compiler keeps them in registers as words alone."""
    lanes_columns = message.block.width // SUB_GROUP
    return form.width == 1 and lanes_columns > 1 and lanes_columns * form.element.bytes == I32.bytes


def store(e: XeEmitter, type_: TensorType, matrix: Matrix, value: Lanes, message: Message, *, fast: bool) -> None:
    """Write the block."""
    f, form = e.function, value.form
    if not form.is_plain or message.registers % form.width:
        value = e.packed(e.scalars(value), Form(1, form.element, form.element))
        form = value.form
    values, size = value.values, form.width * form.element.bytes
    if _in_words(form, message):
        per_word, size = I32.bytes // size, I32.bytes
        values = [_word(f, values[start : start + per_word]) for start in range(0, len(values), per_word)]
    per_message = len(values) // message.number
    for number in range(message.number):
        memory = _private(e, type_, message)
        for part in range(per_message):
            f.store(values[number * per_message + part], f.gep(memory, part * size, vector("i8", 1)))
        _access(e, type_, matrix, message, number, memory, fast=fast)


def _word(f: Function, parts: Sequence[Value]) -> Value:
    """Neighbours as one word."""
    return f.bitcast(f.joined(parts), I32)


def prefetch(e: XeEmitter, type_: TensorType, matrix: Matrix, message: Message) -> None:
    """Bring the block nearer."""
    for number in range(message.number):
        _access(e, type_, matrix, message, number, None, fast=True)


def _private(e: XeEmitter, type_: TensorType, message: Message) -> Value:
    """Memory of a lane for the registers of one message; registers hold it in the end."""
    bits = 8 * byte_width(type_.element)
    words = 32 if message.block.access in (Access.LOAD_VNNI, Access.LOAD_TRANSPOSE) else bits
    return e.function.alloca(vector(f"i{words}", 1), message.registers * bits // words)


def _access(
    e: XeEmitter,
    type_: TensorType,
    matrix: Matrix,
    message: Message,
    number: int,
    memory: Value | None,
    *,
    fast: bool,
) -> None:
    f, block = e.function, message.block
    size, (row, column) = byte_width(type_.element), message.dims
    origin = layout_of(type_).at(register=number * message.registers)
    y, x = (e.affine.add(matrix.offsets[dim], constant(I32, origin[dim])) for dim in (row, column))
    private = () if memory is None else (memory,)
    if not fast:
        slow = _by_elements(e, type_, message)
        sizes = (extent(e, matrix.shape[dim]) for dim in (row, column))
        f.call(slow, VOID, matrix.base, *sizes, e.affine.widen(matrix.strides[row], I64), y, x, *private)
        return
    if e.address_payloads and matrix.invariant is not None and payloads.word_of(block) is not None:
        _by_payload(e, matrix, message, size, (origin[column], origin[row]), memory)
        return
    if memory is not None:
        x, y = _apart(e, matrix, message, origin, (x, y))
    shape = [constant(I32, n) for n in (block.element_bytes, block.width, block.height, block.blocks)]
    x = _words(f, message, size, x)
    at = f.insert(f.insert(poison(I32.with_lanes(2)), x, 0), y, 1)
    base, *sizes = _surface(e, matrix, message, size)
    surface = (decorated(f, base, e.caching), *sizes, at)
    if block.access is Access.STORE:
        BUILTINS[block.access].call(f, *shape, *private, *surface)
    else:
        BUILTINS[block.access].call(f, *shape, *surface, *private)


def _apart(
    e: XeEmitter, matrix: Matrix, message: Message, origin: Sequence[int], at: tuple[Value, Value]
) -> tuple[Value, Value]:
    """Coordinates, column and row; with an address of its own where `allocate-addresses` says so."""
    (row, column), invariant, (x, y) = message.dims, matrix.invariant, at
    if invariant is None or not matrix.address:
        return at
    dim = row if invariant[row] else column
    with e.function.before_loop():
        kept = e.affine.add(matrix.offsets[dim], constant(I32, origin[dim]))
        kept = e.function.add(kept, e.function.mul(_unknown_zero(e.function), matrix.address))
    return (x, kept) if invariant[row] else (kept, y)


def _unknown_zero(f: Function) -> Value:
    """0, which Intel's compiler does not know: there are fewer than 2**31 programs along a dimension. Of coordinates at
    no known distance from each other it keeps an address each. (Of a function of the warp, like a broadcast, nothing is
    known either; but kernels with such are not compiled again where they spill.)
    """
    return f.lshr(calls.program(f, 0), 31)


def _by_payload(
    e: XeEmitter, matrix: Matrix, message: Message, size: int, origin: tuple[int, int], memory: Value | None
) -> None:
    """An access in a loop that moves the block, but not what it is part of; `origin` is column and row in the block."""
    f, (row, column) = e.function, message.dims
    invariant = cast("tuple[bool, ...]", matrix.invariant)

    def coordinate(dim: int) -> Value:
        at = e.affine.add(matrix.offsets[dim], constant(I32, origin[0 if dim == column else 1]))
        return _words(f, message, size, at) if dim == column else at

    with f.before_loop():
        x, y = (coordinate(dim) if invariant[dim] else constant(I32, 0) for dim in (column, row))
        payload = payloads.create(f, _surface(e, matrix, message, size), message.block, x, y)
    for field, dim in ((payloads.Field.X, column), (payloads.Field.Y, row)):
        if not invariant[dim]:
            payloads.move(f, payload, field, coordinate(dim))
    if memory is None:
        payloads.prefetch(f, payload, message.block)
    else:
        payloads.load(f, payload, message.block, memory, 0 if e.caching is None else e.caching.payload_code)


def _bytes(e: XeEmitter, elements: Value, size: int) -> Value:
    return e.affine.mul(e.affine.widen(elements, I64), constant(I64, size))


def _surface(e: XeEmitter, matrix: Matrix, message: Message, size: int) -> payloads.Surface:
    f, (row, column) = e.function, message.dims
    width, pitch = (f.cast("trunc", _bytes(e, n, size), I32) for n in (matrix.shape[column], matrix.strides[row]))
    return payloads.Surface(matrix.base, width, f.cast("trunc", matrix.shape[row], I32), pitch)


def _words(f: Function, message: Message, size: int, x: Value) -> Value:
    """A column as the instruction counts it."""
    return f.ashr(x, (message.block.element_bytes // size).bit_length() - 1) if message.transposed else x


# The same, element by element.

_PARAMETERS = (("base", GLOBAL_PTR), ("rows", I64), ("columns", I64), ("stride", I64), ("y", I32), ("x", I32))


def _by_elements(e: XeEmitter, type_: TensorType, message: Message) -> str:
    """A function that moves the registers of one message between memory and the lane, one after the other."""
    block = message.block
    stores = block.access is Access.STORE
    layout = layout_of(type_)
    bits = message.registers.bit_length() - 1
    images = [
        (tuple(v[dim] for v in layout.vectors("register")[:bits]), tuple(v[dim] for v in layout.vectors("lane")))
        for dim in message.dims
    ]
    kind = "store" if stores else "load"
    size = byte_width(type_.element)
    name = f"{kind}_{block.height}x{block.width}x{block.blocks}_{8 * size}{'_transposed' * message.transposed}"
    if e.module.defines(name):
        return name
    f = e.module.function(name, VOID, [*_PARAMETERS, ("registers", PTR)], extra="noinline ")
    base, rows, columns, stride, y, x, registers = f.parameters
    element = vector(f"i{8 * size}", 1)
    lane = calls.lane(f)
    with f.loop(constant(I32, 0), constant(I32, message.registers), constant(I32, 1), name="register") as loop:
        row, column = (
            f.cast("sext", f.add(start, f.xor(linear(f, loop.index, by_register), linear(f, lane, by_lane))), I64)
            for start, (by_register, by_lane) in zip((y, x), images, strict=True)
        )
        inside = f.and_(f.icmp("ult", row, rows), f.icmp("ult", column, columns))
        address = f.gep(base, f.add(f.mul(row, stride), column), element)
        held = f.gep(registers, f.cast("zext", loop.index, I64), element)
        _move_one(f, element, address, held, inside, stores=stores)
    f.ret()
    return name


def _move_one(f: Function, element: Type, address: Value, held: Value, inside: Value, *, stores: bool) -> None:
    if stores:
        with f.when(inside, "store"):
            f.store(f.load(element, held), address)
        return
    [loaded] = f.choose(inside, lambda: [f.load(element, address)], lambda: [constant(element, 0)], "load")
    f.store(loaded, held)

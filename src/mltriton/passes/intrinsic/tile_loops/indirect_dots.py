"""Dots of few rows whose right operand is read where it lies, line by line.

Level: warp to intrinsic. Where c has so few rows that b is read about once, packing b costs more than multiplying it.
The target then reads it through an array of pointers to its lines (`tile.indirect_dot`): rows of b, or columns where
memory runs along k. Lines may lie anywhere, so that a gather of rows through a table is as good as a matrix. A line
that a mask leaves out points to zeros; a mask along the lines is tested once, and b is copied where it does not hold
everywhere. A batch takes a few lines of each matrix in turn, because its matrices often lie interleaved in memory: the
array has line i of every matrix before line i + 1 of any, and lines are prefetched in that order, because memory is
fastest where it is read in one stretch. Behind the last lines of a dot those of the next one follow, keys' by values'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, cast

from mltriton.analysis.effects import writes_memory
from mltriton.dialects import arith, scf, tile, tt
from mltriton.ir.attributes import Attribute, DenseAttr, EnumAttr, IntegerAttr
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import I1, I32, I64, PointerType, byte_width, shape_of
from mltriton.passes.intrinsic.tile_loops import accesses, addressing, packing
from mltriton.passes.intrinsic.tile_loops.addressing import InMemory, NotProvable
from mltriton.passes.intrinsic.tile_loops.dot_kernels import may_use_lines, rows_of
from mltriton.passes.intrinsic.tile_loops.first_sums import is_zero
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Index, constant_index, is_uniform
from mltriton.passes.intrinsic.tile_loops.packing import Packing
from mltriton.passes.intrinsic.tile_loops.tiles import Tile
from mltriton.records import NamedTuple, record
from mltriton.targets.base import IndirectDot

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering

CHUNK = 64  # lines that are multiplied at a time
COLUMNS = 4  # the same where lines are columns of a batch
FEW_MATRICES = 8  # pointers to a line of each are written without a loop
AHEAD = 16  # lines from the one that is multiplied to the one that is prefetched
NEAR_BYTES = 8192  # of a batch: bytes that are multiplied at a time, and prefetched. With what they are multiplied
# with and what that gives, both have to stay in the first-level cache until the turn of the same matrix comes again.


class Left(NamedTuple):
    """Where a left operand lies: its address, elements between its rows, and between matrices of a batch."""

    pointer: Value
    stride: Value
    batch_stride: int


@record()
class Lines:
    """The right operand: `count` lines of `length` elements in each of `matrices` matrices, rows or columns (`layout`);
    `conditions` say that they are there in full.
    """

    block: InMemory
    how: IndirectDot
    layout: str
    matrices: int
    count: int
    length: int
    conditions: list[Value]

    @property
    def near(self) -> int:
        """Lines of every matrix of a batch that are `NEAR_BYTES` together, a power of two."""
        row = self.matrices * self.length * byte_width(self.block.element)
        return 1 << max(1, NEAR_BYTES // row).bit_length() - 1

    @property
    def chunk(self) -> int:
        """Lines that are multiplied at a time, of each matrix."""
        if self.matrices == 1:
            return min(self.count, CHUNK)
        return min(self.count, self.near if self.layout == "row" else COLUMNS)

    @property
    def ahead(self) -> int:
        """From the line that is multiplied to the one that is prefetched."""
        return AHEAD if self.matrices == 1 else max(self.chunk, self.near)

    def index(self, matrix: Value, line: Value) -> Index:
        """The index of a line's first element in the block."""
        coordinate, start = Affine(I32, line, 0, 0), constant_index(0)
        inner = (coordinate, start) if self.layout == "row" else (start, coordinate)
        return inner if len(self.block.order) == 2 else (Affine(I32, matrix, 0, 0), *inner)


def lines_of(low: Lowering, op: tt.Dot) -> Lines | None:
    """How the right operand of a dot is read line by line; None where it cannot be, or another way is better."""
    if not may_use_lines(low.spec, op):
        return None
    block = addressing.in_memory(low, op.b)
    if block is None or isinstance(block.source, Tile) or not _pads_zeros(block.source):
        return None
    shape = shape_of(op.b.type)
    strides = addressing.strides_of(low, block, shape)
    rows, matrices = rows_of(op), shape[0] if len(shape) == 3 else 1
    for along, layout in ((-1, "row"), (-2, "column")):
        how = low.spec.indirect_dots.get((block.element, layout))
        if how is None or rows > how.rows or strides[along] != 1 or shape[along] % how.length:
            continue
        if layout == "row" and strides[-2] is not None and how.left is block.element and matrices == 1:
            return None  # an ordinary dot reads these rows where they lie
        conditions, length = _along_lines(low, block, len(shape) + along, shape)
        if conditions is None or length % how.length or (length < shape[-1] and layout == "row" and _is_zero(op.c)):
            continue
        return Lines(block, how, layout, matrices, shape[-3 - along], length, conditions)
    return None


def _pads_zeros(op: Operation) -> bool:
    """Whether a load gives zeros where it is masked."""
    if not isinstance(op, tt.Load):
        return False
    if op.padding == "pad_nan":
        return False
    return op.other is None or _is_zero(op.other)


def _is_zero(value: Value) -> bool:
    """Whether a value is 0: a block, or the scalar that fills it."""
    op = value.defining_op
    if isinstance(op, tt.Splat):
        return _is_zero(op.source)
    if isinstance(op, arith.Constant) and not isinstance(op.value, DenseAttr):
        return not op.value.value
    return is_zero(value)


def _along_lines(low: Lowering, block: InMemory, along: int, shape: tuple[int, ...]) -> tuple[list[Value] | None, int]:
    """The conditions under which no line is cut short, None where they cannot be stated; and the length of a line: less
    than the block's where a mask says when compiling that zeros follow.
    """
    op, length = cast(tt.Load, block.source), shape[along]
    try:
        if isinstance(op.ptr.type, PointerType):
            dim = block.order[along]
            return (addressing.inside(low, block, (dim,)) if dim in op.boundary_check else []), length
        conditions: list[Value] = []
        for mask in _conjuncts(op.mask):
            if _varies(low, mask, block, along, shape[along]):
                known = _known_length(mask, shape[along])
                if known is None:
                    conditions += addressing.holds_everywhere(low, mask)
                else:
                    length = min(length, known)
        return conditions, length
    except NotProvable:
        return None, length


def _known_length(mask: Value, extent: int) -> int | None:
    """Up to which element of every line `coordinate < constant` holds; None for other masks."""
    op = mask.defining_op
    while isinstance(op, tt.ExpandDims):
        op = op.operands[0].defining_op
    if not isinstance(op, arith.CmpI) or op.predicate != "slt":
        return None
    limit, coordinates = splat_of(op.rhs), op.lhs.defining_op
    while isinstance(coordinates, tt.ExpandDims):
        coordinates = coordinates.operands[0].defining_op
    if not isinstance(limit, int) or not isinstance(coordinates, tt.MakeRange) or coordinates.start != 0:
        return None
    return limit if 0 < limit <= extent else None


def _conjuncts(mask: Value | None) -> list[Value]:
    """What must hold for a mask to hold, with as many dimensions; of size 1 where all elements agree."""
    op = None if mask is None else mask.defining_op
    if isinstance(op, arith.AndI):
        return [*_conjuncts(op.lhs), *_conjuncts(op.rhs)]
    if isinstance(op, tt.Broadcast):
        return _conjuncts(op.operands[0])
    return [] if mask is None else [mask]


def _varies(low: Lowering, mask: Value, block: InMemory, along: int, extent: int) -> bool:
    """Whether a mask differs from element to element of a line."""
    shape = shape_of(mask.type)
    with low.e.emitter.trial(len(block.order)) as anywhere:
        index = block.at(
            tuple(Affine(I32, coordinate, 0, int(dim == along)) for dim, coordinate in enumerate(anywhere))
        )
        index = tuple(
            constant_index(0) if size == 1 else coordinate for size, coordinate in zip(shape, index, strict=True)
        )
        return not is_uniform(low.e.at(mask, index, extent))


def multiply_lines(low: Lowering, op: tt.Dot, lines: Lines, a: Left, target: Tile, accumulate: bool) -> None:
    """target (+)= a b, a row-major in the type that `lines` wants."""
    e = low.e
    array = _line_array(low, op, lines)
    n, k = (lines.length, lines.count) if lines.layout == "row" else (lines.count, lines.length)
    numbers = {"m": shape_of(op.a.type)[-2], "n": n, "k": k}
    numbers |= {"batch": lines.matrices, "chunk": lines.chunk, "ahead": lines.ahead}
    attributes: dict[str, Attribute] = {name: IntegerAttr(number, I32) for name, number in numbers.items()}
    attributes["b_layout"] = EnumAttr("tile_layout", lines.layout)
    c_strides = target.strides[-2], target.strides[0] if lines.matrices > 1 else 0
    a_batch, c_stride, c_batch = (e.emitter.integer(stride, I64) for stride in (a.batch_stride, *c_strides))
    into = e.arithmetic.scalar(e.address(target, (constant_index(0),) * len(target.strides)))
    more = e.emitter.integer(int(accumulate), I1)
    operands = [a.pointer, a.stride, a_batch, array.pointer, into, c_stride, c_batch, more]
    e.emitter.effect(tile.IndirectDot, operands, (), attributes)


def _following(low: Lowering, op: tt.Dot, lines: Lines) -> Lines | None:
    """The lines of the next dot of the block, of which the first are asked for while the last of these are multiplied;
    None where they are not known to be as long and as many, and in memory that is the same until then.
    """
    block = op.block
    assert block is not None
    later = takewhile(lambda each: not writes_memory(each), block.ops[block.position(op) + 1 :])
    following = next((each for each in later if isinstance(each, tt.Dot)), None)
    found = None if following is None else lines_of(low, following)
    if found is None or found.conditions or found.count < lines.ahead:
        return None
    is_alike = (found.matrices, found.length, found.block.element) == (
        lines.matrices,
        lines.length,
        lines.block.element,
    )
    return found if is_alike else None


def _line_array(low: Lowering, op: tt.Dot, lines: Lines) -> Tile:
    """An array with the address of every line, in memory or in a copy."""
    e = low.e
    size = (lines.count + lines.ahead) * lines.matrices
    array = e.scratch.raw(size, PointerType(lines.block.element), (lines.matrices, 1))
    condition = addressing.conjunction(e, lines.conditions)
    zeros = _zeros(low, lines)
    following = _following(low, op, lines)
    if condition is None:
        _point_to_memory(low, lines, array, zeros, following)
        return array
    yes, no = Block(), Block()
    with e.emitter.inside(yes):
        _point_to_memory(low, lines, array, zeros, following)
        e.emitter.insert(scf.Yield([]))
    with e.emitter.inside(no):
        _point_to_copy(low, op, lines, array)
        e.emitter.insert(scf.Yield([]))
    e.emitter.effect(scf.If, [condition], [], {}, [Region([yes]), Region([no])])
    return array


def _zeros(low: Lowering, lines: Lines) -> Tile | None:
    """A line of zeros, where lines may be masked."""
    op = cast(tt.Load, lines.block.source)
    if op.mask is None and not op.boundary_check:
        return None
    e, element = low.e, lines.block.element
    made = e.scratch.raw(lines.length, element, (1,))
    lanes = e.emitter.lanes
    zero = accesses.Uniform(e.emitter.number(0.0, element))
    for first in range(0, lines.length, lanes):
        accesses.write(e, e.address(made, (Affine(I32, None, first, 1),)), None, zero, lanes)
    return made


def _point_to_memory(low: Lowering, lines: Lines, array: Tile, zeros: Tile | None, following: Lines | None) -> None:
    e = low.e

    def pointer_to(matrix: Value, line: Value, of: Lines = lines) -> Value:
        index = of.block.at(of.index(matrix, line))
        access = accesses.access_at(e, cast(Operation, of.block.source), index, 1)
        pointer = e.arithmetic.scalar(access.address)
        if access.mask is None or zeros is None:
            return pointer
        nothing = e.emitter.pure(tt.Bitcast, (zeros.pointer,), pointer.type)
        mask = e.arithmetic.scalar(access.mask)
        return e.emitter.pure(arith.Select, (mask, pointer, nothing), pointer.type)

    begin = None if following is None else partial(pointer_to, of=following)
    _fill(low, lines, array, pointer_to, begin)


def _point_to_copy(low: Lowering, op: tt.Dot, lines: Lines, array: Tile) -> Tile:
    """Copy the block with its lines one after the other, and point to that."""
    e = low.e
    row_dim, column_dim = (-2, -1) if lines.layout == "row" else (-1, -2)
    rank = len(lines.block.order)
    how = Packing(op.b, rank + row_dim, rank + column_dim, lines.block.element, 1, along_rows=False)
    size = lines.count * how.stride
    made = e.scratch.raw(lines.matrices * size, how.element, (size, how.stride, 1))
    with e.emitter.count(lines.matrices) as matrices:
        matrix = Affine(I32, matrices.counter, 0, 0)
        start = e.arithmetic.scalar(e.address(made, (matrix, constant_index(0), constant_index(0))))
        part = Tile(start, made.element, (0, how.stride, 1))
        packing.pack(e, how, part, () if rank == 2 else (matrix,))

    def pointer_to(matrix: Value, line: Value) -> Value:
        coordinate = (Affine(I32, matrix, 0, 0), Affine(I32, line, 0, 0), constant_index(0))
        return e.arithmetic.scalar(e.address(made, coordinate))

    _fill(low, lines, array, pointer_to)
    return made


PointerTo = Callable[[Value, Value], Value]  # a matrix and one of its lines


def _fill(low: Lowering, lines: Lines, array: Tile, pointer_to: PointerTo, following: PointerTo | None = None) -> None:
    """Write the pointers; for what is looked at ahead stand the first lines of the following dot, or the last line."""
    e = low.e
    type = PointerType(lines.block.element)

    def save(coordinate: Value, line: Value, pointer_to: PointerTo) -> None:
        def one(matrix: Value) -> None:
            plain = e.arithmetic.wrap(e.emitter.pure(tt.Bitcast, (pointer_to(matrix, line),), type))
            accesses.write(
                e, e.address(array, (Affine(I32, coordinate, 0, 0), Affine(I32, matrix, 0, 0))), None, plain, 1
            )

        if lines.matrices <= FEW_MATRICES:
            for matrix in range(lines.matrices):
                one(e.emitter.integer(matrix))
        else:
            with e.emitter.count(lines.matrices) as matrices:
                one(matrices.counter)

    with e.emitter.count(lines.count) as loop:
        save(loop.counter, loop.counter, pointer_to)
    if following is not None:
        with e.emitter.count(lines.ahead) as loop:
            place = e.emitter.pure(arith.AddI, (loop.counter, e.emitter.integer(lines.count)), I32)
            save(place, loop.counter, following)
        return
    last = e.emitter.integer(lines.count - 1)
    with e.emitter.count(lines.count + lines.ahead, 1, lines.count) as loop:
        save(loop.counter, last, pointer_to)

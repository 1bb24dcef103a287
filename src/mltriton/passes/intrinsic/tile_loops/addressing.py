"""Whether a block can be used where it lies: its address as a pointer and one stride for each dimension, and the test
that its masks hold everywhere.

Level: warp to intrinsic. A block lies in memory if it is a tile or a load, perhaps transposed. Strides are found by
evaluating the address at an index that stands for any: a stride that does not depend on it is a stride everywhere.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, cast

from mltriton.analysis.natural_numbers import is_natural
from mltriton.dialects import arith, tile, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, I32, I64, IntegerType, PointerType, TensorType, Type, shape_of
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.operations import LOADS
from mltriton.passes.intrinsic.tile_loops.tiles import Tile
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering

Stride = int | Value


class InMemory(NamedTuple):
    """A block that lies in memory: `source` is its tile or load; dimension d is dimension order[d] of the source."""

    source: Tile | Operation
    order: tuple[int, ...]
    element: Type

    def at(self, index: Index) -> Index:
        """The index of the source."""
        coordinates: list[Form] = [constant_index(0)] * len(index)
        for coordinate, dim in zip(index, self.order, strict=True):
            coordinates[dim] = coordinate
        return tuple(coordinates)


def in_memory(low: Lowering, value: Value) -> InMemory | None:
    """Where a block lies, if it does."""
    order = tuple(range(len(shape_of(value.type))))
    while True:
        value = low.e.aliases.get(value, value)
        found = low.tile_of(value)
        if found is not None:
            return InMemory(found, order, found.element)
        op = value.defining_op
        if isinstance(op, ttg.LocalLoad):
            window = low.e.window(op.memory)
            return InMemory(window, order, window.element)
        if isinstance(op, LOADS):
            low.finish(op.operands)
            return InMemory(op, order, cast(TensorType, value.type).element)
        if isinstance(op, tt.Trans):
            order = tuple(op.order[dim] for dim in order)
        elif not isinstance(op, ttg.ConvertLayout | tile.Pack):
            return None
        value = op.operands[0]


def address(e: Evaluator, source: Tile | Operation, index: Index, lanes: int) -> Form:
    """The address of an element of a tile or load."""
    return e.address(source, index) if isinstance(source, Tile) else accesses.address_at(e, source, index, lanes)


def stride_along(
    low: Lowering, source: Tile | Operation, coordinates: Coordinates, dim: int, extent: int
) -> Stride | None:
    """How far apart neighbours along dimension `dim` of an iteration are, whose dimensions the coordinates of `source`
    name; None if that is not the same everywhere, or if the addresses wait for what the open loop nest computes.
    """
    if isinstance(source, Tile):
        return sum(stride for stride, coordinate in zip(source.strides, coordinates, strict=True) if coordinate == dim)
    operands = [operand for operand in source.operands if operand is not getattr(source, "value", None)]
    if any(value in low.nest.produced for operand in operands for value, _ in low.reads(operand).leaves):
        return None
    e = low.e
    depth = e.emitter.level
    with e.emitter.trial(max((*coordinates, dim), default=0) + 1) as anywhere:
        index = tuple(
            Affine(I32, anywhere[coordinate], 0, int(coordinate == dim)) if coordinate >= 0 else constant_index(0)
            for coordinate in coordinates
        )
        form = address(e, source, index, extent)
        if not isinstance(form, Affine):
            return None
        known = isinstance(form.stride, int) or e.emitter.depth[form.stride] <= depth
        return form.stride if known else None


def strides_of(low: Lowering, block: InMemory, shape: tuple[int, ...]) -> list[Stride | None]:
    """The stride of each dimension."""
    coordinates: list[int] = [0] * len(shape)
    for dim, target in enumerate(block.order):
        coordinates[target] = dim
    return [stride_along(low, block.source, tuple(coordinates), dim, extent) for dim, extent in enumerate(shape)]


# Bounds


class NotProvable(Exception):  # noqa: N818 - no error: a question that has no answer
    """A mask that is not made of comparisons of affine numbers."""


def inside(low: Lowering, block: InMemory, dims: tuple[int, ...] | None = None) -> list[Value]:
    """Scalar conditions under which a load or store touches all its elements; of a block pointer's dimensions only
    those in `dims`, if given. Raises `NotProvable`.
    """
    op = block.source
    if isinstance(op, Tile):
        return []
    shape = shape_of(op.value.type if isinstance(op, tt.Store | tt.DescriptorStore) else op.results[0].type)
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        pointer = accesses.block_pointer(low.e, op.desc)
        pointer = pointer._replace(offsets=tuple(low.e.scalar(v) for v in op.indices))
        return _within(low.e, pointer, shape, tuple(range(len(op.indices))))
    assert isinstance(op, tt.Load | tt.Store)
    if isinstance(op.ptr.type, PointerType):
        pointer = accesses.block_pointer(low.e, op.ptr)
        return _within(low.e, pointer, shape, op.boundary_check if dims is None else dims)
    return [] if op.mask is None else holds_everywhere(low, op.mask)


def _within(
    e: Evaluator, pointer: accesses.BlockPointer, shape: tuple[int, ...], checked: tuple[int, ...]
) -> list[Value]:
    shape = (1,) * (len(pointer.offsets) - len(shape)) + shape
    conditions: list[Value] = []
    for dim in checked:
        offset, extent = e.arithmetic.wrap(pointer.offsets[dim]), pointer.shape[dim]
        assert isinstance(offset, Affine)
        low_end = accesses.compare(e, "sge", offset, constant_index(0), 1)
        wide = combine(e, arith.ExtSI, [offset], I64, 1, {})
        end = combine(e, arith.AddI, [wide, Affine(I64, None, shape[dim], 0)], I64, 1, {})
        limit: Form = e.arithmetic.wrap(extent)
        if extent.type is not I64:
            limit = combine(e, arith.ExtSI, [limit], I64, 1, {})
        high_end = accesses.compare(e, "sle", end, limit, 1)
        conditions += [
            e.arithmetic.scalar(form)
            for form, known in ((low_end, offset.base is None and offset.const >= 0), (high_end, _known(end, limit)))
            if not known
        ]
    return conditions


def _known(end: Form, limit: Form) -> bool:
    known = isinstance(end, Affine) and isinstance(limit, Affine) and end.base is None and limit.base is None
    return known and cast(Affine, end).const <= cast(Affine, limit).const


def holds_everywhere(low: Lowering, mask: Value) -> list[Value]:
    """Scalar conditions under which a block of booleans is true everywhere. Raises `NotProvable`."""
    op = mask.defining_op
    if isinstance(op, arith.AndI):
        return holds_everywhere(low, op.lhs) + holds_everywhere(low, op.rhs)
    if isinstance(op, tt.ExpandDims | tt.Broadcast | tt.Trans | ttg.ConvertLayout):
        return holds_everywhere(low, op.operands[0])
    if isinstance(op, tt.Splat):
        return [low.e.scalar(op.source)]
    if isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr) and op.value.is_splat and op.value.splat:
        return []
    if isinstance(op, arith.CmpI) and op.predicate not in ("eq", "ne"):
        if not all(_is_affine(low.e, operand) for operand in op.operands):
            raise NotProvable
        return _at_corners(low.e, mask) + (_no_negatives(low.e, op) if op.predicate.startswith("u") else [])
    raise NotProvable


def _is_affine(e: Evaluator, value: Value) -> bool:
    """Whether a block of integers grows evenly along every dimension. Narrow ones may wrap on the way, and those that
    grow by too much do: others are indices, which do not.
    """
    shape = shape_of(value.type)
    depth = e.emitter.level
    for dim, extent in enumerate(shape):
        with e.emitter.trial(len(shape)) as anywhere:
            index = tuple(Affine(I32, coordinate, 0, int(d == dim)) for d, coordinate in enumerate(anywhere))
            form = e.at(value, index, extent)
            if not isinstance(form, Affine):
                return False
            width = cast(IntegerType, form.type).width
            if isinstance(form.stride, Value):
                if e.emitter.depth[form.stride] > depth or width < I32.width:
                    return False
            elif form.stride and (width < I32.width or abs(form.stride) * extent >= 1 << width - 1):
                return False
    return True


def _at_corners(e: Evaluator, mask: Value) -> list[Value]:
    """A comparison of evenly growing numbers holds everywhere if it holds at the corners."""
    return [e.arithmetic.scalar(e.at(mask, corner, 1)) for corner in _corners(mask)]


def _no_negatives(e: Evaluator, op: arith.CmpI) -> list[Value]:
    """The order of numbers without sign is that of evenly growing ones where none is negative."""
    unknown = [operand for operand in op.operands if not is_natural(operand, e.naturals)]
    numbers = [cast(Affine, e.at(operand, corner, 1)) for operand in unknown for corner in _corners(operand)]
    return [e.arithmetic.scalar(accesses.compare(e, "sge", n, Affine(n.type, None, 0, 0), 1)) for n in numbers]


def _corners(block: Value) -> list[Index]:
    corners = product(*(sorted({0, extent - 1}) for extent in shape_of(block.type)))
    return [tuple(map(constant_index, corner)) for corner in corners]


def conjunction(e: Evaluator, conditions: list[Value]) -> Value | None:
    """All conditions together; None where there is none."""
    total: Value | None = None
    for condition in dict.fromkeys(conditions):
        total = condition if total is None else e.emitter.pure(arith.AndI, (total, condition), I1)
    return total

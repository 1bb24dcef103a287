"""Chunk evaluation: what a block value is at one index, written where it is needed.

Level: warp to intrinsic. `Evaluator.at(value, index, lanes)` follows definitions by a table of rules: how an
operation's result at an index comes from its operands at theirs. Nothing is stored: a materialised block is read from
its tile, a load is done again. What was found is remembered in the outermost scope in which the index and the value
exist.
Guarantees: scalars of the program are written once, on demand, as far out as their operands allow.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, gpu, tt, ttg
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.location import Location
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.order import operands_first
from mltriton.ir.types import I32, FloatType, IntegerType, MemDescType, PointerType, TensorType, Type, element_type
from mltriton.passes.intrinsic.tile_loops.accesses import read
from mltriton.passes.intrinsic.tile_loops.combine import are_affine, are_uniform, combine
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter, refuse, unknown_buffer
from mltriton.passes.intrinsic.tile_loops.forms import (
    Affine,
    Form,
    FormArithmetic,
    Index,
    Uniform,
    Vector,
    constant_index,
)
from mltriton.passes.intrinsic.tile_loops.operations import rule_of
from mltriton.passes.intrinsic.tile_loops.tiles import ScratchMemory, Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.accesses import BlockPointer

# So many values are evaluated inside each other before what is left of a chain is evaluated from its far end.
MOST_NESTED = 32


class Evaluator:
    """State of one function: new scalars, tiles and block pointers by the old value they stand for."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.arithmetic = FormArithmetic(emitter)
        self.scratch = ScratchMemory(emitter)
        self.scalars: dict[Value, Value] = {}
        self.tiles: dict[Value, Tile] = {}
        self.buffers: dict[Value, Tile] = {}  # blocks in shared memory
        self.pointers: dict[Value, BlockPointer] = {}
        self.shifted: dict[Value, tuple[Value, Value]] = {}  # carried block -> (initial block, scalar added to it)
        self.aliases: dict[Value, Value] = {}  # carried block that never changes -> the initial one
        self.block_depth: dict[Block, int] = {}
        self.unmasked: frozenset[Operation] = frozenset()  # accesses and selections whose masks are known to hold here
        self.refuted: frozenset[Value] = frozenset()  # conditions that are known not to hold here
        self.floor = 0  # the outermost scope in which that is known
        self.naturals: dict[Value, bool] = {}  # whether integers cannot be negative
        self.nesting = 0  # how many values are being evaluated, each for the one before it

    @contextmanager
    def located(self, loc: Location) -> Generator[None]:
        """Operations written inside come from `loc`."""
        saved, self.emitter.loc = self.emitter.loc, loc
        yield
        self.emitter.loc = saved

    @contextmanager
    def inside_masks(self, accesses: frozenset[Operation]) -> Generator[None]:
        """In the innermost scope these accesses lie inside their masks, whatever the index."""
        saved = self.unmasked, self.floor
        self.unmasked, self.floor = self.unmasked | accesses, self.emitter.level
        yield
        self.unmasked, self.floor = saved

    @contextmanager
    def without(self, *conditions: Value) -> Generator[None]:
        """Where these conditions do not hold."""
        saved, self.refuted = self.refuted, self.refuted.union(conditions)
        yield
        self.refuted = saved

    @contextmanager
    def unmasking(self, operations: frozenset[Operation]) -> Generator[None]:
        """The masks of these operations hold wherever they are evaluated inside: at the lanes of one loop, whose
        counter keeps what is found apart from what holds elsewhere.
        """
        saved, self.unmasked = self.unmasked, self.unmasked | operations
        yield
        self.unmasked = saved

    # Scalars

    def scalar(self, value: Value) -> Value:
        """The new value of a scalar; written now where it was not needed before."""
        found = self.scalars.get(value)
        if found is None:
            op = value.defining_op
            assert op is not None and op.pure, f"{value.type} is not known yet"
            self.nesting += 1
            if self.nesting % MOST_NESTED == 0:
                for operand in operands_first(value, self._missing_scalars)[:-1]:
                    self.scalar(operand)
            found = self._scalar_of(op, value)
            self.nesting -= 1
            self.scalars[value] = found
        return found

    def _missing_scalars(self, value: Value) -> list[Value]:
        """The operands from which a scalar is computed and that are not known yet."""
        op = value.defining_op
        if op is None or not op.pure or isinstance(op, tt.Unsplat) or op.regions:
            return []
        return [operand for operand in op.operands if operand not in self.scalars]

    def _scalar_of(self, op: Operation, value: Value) -> Value:
        if isinstance(op, tt.Unsplat):
            rank = cast(TensorType, op.source.type).rank
            return self.arithmetic.scalar(self.at(op.source, (constant_index(0),) * rank, 1))
        if isinstance(op, gpu.SubgroupId):
            return self.emitter.integer(0, value.type)
        if isinstance(op, arith.Constant) and isinstance(op.value, IntegerAttr):
            return self.emitter.integer(op.value.value, value.type)
        if op.regions or any(isinstance(operand.type, TensorType) for operand in op.operands):
            raise refuse(op, f"{op.name} cannot be evaluated on demand")
        return self.emitter.pure(type(op), [self.scalar(v) for v in op.operands], value.type, op.attributes)

    # Blocks

    def at(self, value: Value, index: Index, lanes: int) -> Form:
        """`value` at `index`."""
        if not isinstance(value.type, TensorType):
            return self.arithmetic.wrap(self.scalar(value))
        if are_uniform(index):
            lanes = 1
        value = self.aliases.get(value, value)
        emitter = self.emitter
        depth = self.depth_of(value, index)
        memo = emitter.scopes[depth].memo
        key = (value, index, lanes)
        found = memo.get(key)
        if found is None:
            self.nesting += 1
            if self.nesting % MOST_NESTED == 0:
                for operand in operands_first(value, lambda value: self._missing_operands(value, index, lanes))[:-1]:
                    self.at(operand, index, lanes)
            if depth == emitter.level:
                found = self._compute(value, index, lanes)
            else:
                with emitter.at(depth):
                    found = self._compute(value, index, lanes)
            self.nesting -= 1
            memo[key] = found
        return found

    def _missing_operands(self, value: Value, index: Index, lanes: int) -> list[Value]:
        """The blocks from which a block is computed element by element and that are not known yet at `index`."""
        value = self.aliases.get(value, value)
        op = value.defining_op
        if op is None or not op.elementwise or value in self.tiles or value in self.shifted:
            return []
        operands = [op.true_value] if op in self.unmasked and isinstance(op, arith.Select) else op.operands
        return [operand for operand in operands if not self._is_known(operand, index, lanes)]

    def _is_known(self, value: Value, index: Index, lanes: int) -> bool:
        """Whether a block was computed at `index`; scalars count as known."""
        if not isinstance(value.type, TensorType):
            return True
        value = self.aliases.get(value, value)
        return (value, index, lanes) in self.emitter.scopes[self.depth_of(value, index)].memo

    def depth_of(self, value: Value, index: Index) -> int:
        """The outermost scope in which the value and the index exist."""
        depth = max(self.floor, self.definition_depth(value))
        for coordinate in index:
            found = self.arithmetic.depth(coordinate)
            if found > depth:
                depth = found
        return depth

    def definition_depth(self, value: Value) -> int:
        """The scope that stands for the block in which the value is defined."""
        return self.block_depth[value.defining_block]

    def define(self, value: Value, index: Index, lanes: int, form: Form) -> None:
        """`value` at `index` was just computed."""
        if are_uniform(index):
            lanes = 1
        self.emitter.scopes[self.depth_of(value, index)].memo[value, index, lanes] = form

    def _compute(self, value: Value, index: Index, lanes: int) -> Form:
        found = self.tiles.get(value)
        if found is not None and found.depth <= self.emitter.level:
            return self.from_tile(found, value, index, lanes)
        if value in self.shifted:
            return self._shifted(value, index, lanes)
        op = value.defining_op
        assert op is not None, f"a block argument of type {value.type} has no tile"
        rule = rule_of(op.__class__)
        if rule is None:
            raise refuse(op, f"{op.name} is not an operation that a memory target evaluates on demand")
        saved, self.emitter.loc = self.emitter.loc, op.loc
        try:
            if isinstance(op, tt.Split):
                index = (*index, constant_index(op.results.index(cast(OpResult, value))))
            return rule(self, op, index, lanes)
        finally:
            self.emitter.loc = saved

    def _shifted(self, value: Value, index: Index, lanes: int) -> Form:
        """A carried block that grows by a scalar in every iteration."""
        initial, shift = self.shifted[value]
        form = self.at(initial, index, lanes)
        offset = self.arithmetic.wrap(shift)
        element = cast(TensorType, value.type).element
        cls = tt.AddPtr if isinstance(element, PointerType) else arith.AddI
        return combine(self, cls, [form, offset], element, lanes, {})

    # Chunks

    def chunk(self, value: Value, index: Index, lanes: int) -> Value:
        """All lanes of `value` at `index`."""
        return self.arithmetic.chunk(self.at(value, index, lanes), lanes)

    def from_tile(self, tile: Tile, value: Value, index: Index, lanes: int) -> Form:
        """Read a materialised block; elements are converted back where the tile holds another type."""
        form = read(self, self.address(tile, index), None, None, tile.element, lanes)
        element = cast(TensorType, value.type).element
        return form if element is tile.element else self.convert(form, element, lanes)

    def window(self, memory: Value) -> Tile:
        """A block in shared memory as a tile of its buffer."""
        found = self.buffers.get(memory)
        if found is not None:
            return found
        op = memory.defining_op
        if isinstance(op, ttg.MemDescTrans):
            source = self.window(op.memory)
            return replace(source, strides=source.strides[::-1])
        if not isinstance(op, ttg.MemDescSubview):
            raise unknown_buffer(memory)
        source, arithmetic = self.window(op.memory), self.arithmetic
        offset = constant_index(0)
        for value, stride in zip(op.offsets, source.strides, strict=True):
            coordinate = arithmetic.wrap(self.scalar(value))
            offset = arithmetic.add(offset, arithmetic.times(cast(Affine, coordinate), constant_index(stride)))
        pointer = arithmetic.scalar(arithmetic.move(Affine(source.pointer.type, source.pointer, 0, 0), offset))
        dropped = len(op.offsets) - len(cast(MemDescType, memory.type).shape)
        return replace(source, pointer=pointer, strides=source.strides[dropped:])

    def address(self, tile: Tile, index: Index) -> Form:
        """The address of an element of a tile."""
        pointer = Affine(tile.pointer.type, tile.pointer, 0, 0)
        if not are_affine(index):
            return self._scattered(tile, pointer, index)
        arithmetic = self.arithmetic
        offset = constant_index(0)
        for coordinate, stride in zip(cast("tuple[Affine, ...]", index), tile.strides, strict=True):
            if stride:
                offset = arithmetic.add(offset, arithmetic.times(coordinate, constant_index(stride)))
        return arithmetic.move(pointer, offset)

    def _scattered(self, tile: Tile, pointer: Form, index: Index) -> Form:
        """The addresses of elements whose coordinates are chunks."""
        offset: Form = constant_index(0)
        for coordinate, stride in zip(index, tile.strides, strict=True):
            if stride:
                step = combine(self, arith.MulI, [coordinate, constant_index(stride)], I32, 0, {})
                offset = combine(self, arith.AddI, [offset, step], I32, 0, {})
        return combine(self, tt.AddPtr, [pointer, offset], tile.pointer.type, 0, {})

    def convert(self, form: Form, element: Type, lanes: int) -> Form:
        """Elements in another type."""
        return converted(self, form, element, lanes)


# Rules that keep forms affine


# Rules of operations


def conversion(source: Type, target: Type) -> type[Operation]:
    """The operation that takes elements of one type to another."""
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        if min(source.width, target.width) == 8 or source.width == target.width:
            return tt.FpToFp
        return arith.ExtF if source.width < target.width else arith.TruncF
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if source.width == 1:
            return arith.ExtUI
        return arith.ExtSI if source.width < target.width else arith.TruncI
    return arith.SIToFP if isinstance(target, FloatType) else arith.FPToSI


def element_of(form: Form) -> Type:
    """The element type of a form."""
    return form.type if isinstance(form, Affine) else element_type(form.value.type)


def converted(e: Evaluator, form: Uniform | Vector | Affine, element: Type, lanes: int) -> Form:
    """A form with another element type."""
    source = element_of(form)
    if source is element:
        return form
    return combine(e, conversion(source, element), [form], element, lanes, {})

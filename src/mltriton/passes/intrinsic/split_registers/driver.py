"""Rebuilds a function in pieces: walks it, calls the rules, keeps the pieces of every block.

Level: warp to intrinsic. Guarantees: no operation works on more than the target's size for it; types carry no
encoding any more, except on targets with lanes: there it is the piece's own, of one warp.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import arith, tt
from mltriton.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.promises import of_part
from mltriton.ir.types import PointerType, TensorType, Type, block_of
from mltriton.layouts.encodings import Shape
from mltriton.passes.intrinsic.split_registers.pieces import Grid, Pieces
from mltriton.passes.intrinsic.split_registers.rules import Split, rule_of
from mltriton.passes.intrinsic.split_registers.sizes import PieceSizes
from mltriton.targets.base import TargetSpec


def split(function: tt.Func, spec: TargetSpec) -> tt.Func:
    """The function in pieces of the target's sizes."""
    return Splitter(PieceSizes(spec, function)).function(function)


class Splitter:
    """State of the rebuild of one function: old value -> new value (scalar) or pieces (block)."""

    def __init__(self, sizes: PieceSizes) -> None:
        self.sizes = sizes
        self.builder = Builder()
        self.values: dict[Value, Split] = {}

    def function(self, function: tt.Func) -> tt.Func:
        """Rebuild a function."""
        return tt.Func((), (), function.attributes, [self.region(function.body)], function.loc)

    def region(self, region: Region) -> Region:
        """Rebuild a region: block arguments become one argument for each piece."""
        made = Region([])
        for block in region.blocks:
            new = made.add(Block([type for argument in block.arguments for type in self.flat_types(argument)]))
            for old, split in zip(block.arguments, self.unflatten(block.arguments, new.arguments), strict=True):
                self._define(old, split)
            with self.builder.inside(new):
                for op in block.ops:
                    self.operation(op)
        return made

    def operation(self, op: Operation) -> None:
        """Rebuild one operation."""
        with self.builder.at(op.loc):
            for old, new in zip(op.results, rule_of(op)(self, op), strict=True):
                self._define(old, new)

    def _define(self, old: Value, new: Split) -> None:
        self.values[old] = new
        for value in new.values if isinstance(new, Pieces) else [new]:
            value.hint = value.hint or old.hint

    # What rules ask for

    def scalar(self, value: Value) -> Value:
        """The new value of a scalar."""
        found = self.values[value]
        assert not isinstance(found, Pieces)
        return found

    def pieces(self, value: Value) -> Pieces:
        """The pieces of a block, cut as its encoding says."""
        found = self.values[value]
        assert isinstance(found, Pieces)
        return found

    def piece(self, value: Value, origin: Shape, piece: Shape) -> Value:
        """One piece of a block at `origin`; a scalar is itself."""
        found = self.values[value]
        return found.at(self.builder, origin, piece) if isinstance(found, Pieces) else found

    def grid_of(self, op: Operation) -> Grid | None:
        """How the blocks of an operation are cut: as the encoding of its result, or of its largest operand, says.
        None without blocks.
        """
        for value in (*op.results, *op.operands):
            block = block_of(value.type)
            if block is not None:
                return Grid(block.shape, self.sizes.piece_of(value.type))
        return None

    def cut(self, old: Value, new: Value) -> Pieces:
        """The pieces of a block that exists whole."""
        block = block_of(old.type)
        assert block is not None
        whole = self.pieces_of(old.type, Grid(block.shape, block.shape), [new])
        return whole.cut(self.builder, self.sizes.piece(block))

    def pieces_of(self, type: Type, grid: Grid, values: Sequence[Value]) -> Pieces:
        """`values` as the pieces of a block of `type` (or of what such a pointer points to)."""
        block = block_of(type)
        assert block is not None
        return Pieces(grid, values, lambda piece: self.sizes.encoding(block, piece))

    def copy(self, op: Operation, operands: Sequence[Value], piece: Shape | None = ()) -> list[Value]:
        """A copy with other operands, whose block results have shape `piece` (None: keep their shape)."""
        types = [self._result_type(result.type, piece) for result in op.results]
        regions = [self.clone(region) for region in op.regions]
        copy = type(op)(operands, types, of_part(op, types), regions, op.loc, op.segments)
        return list(self.builder.insert(copy).results)

    def _result_type(self, type: Type, piece: Shape | None) -> Type:
        block = block_of(type)
        if block is None:
            return type
        return self.piece_type(type, block.shape if piece is None else piece)

    def piece_type(self, type: Type, piece: Shape) -> Type:
        """The type of a piece of a block, or of a pointer to it."""
        block = block_of(type)
        assert block is not None
        made = TensorType(piece, block.element, self.sizes.encoding(block, piece))
        return PointerType(made, type.address_space) if isinstance(type, PointerType) else made

    def reduced_piece(self, type: Type, piece: Shape) -> Type:
        """The type of a reduced piece: a block, or a scalar where the whole result is one."""
        return self.piece_type(type, piece) if isinstance(type, TensorType) else type

    def clone(self, region: Region) -> Region:
        """A copy of a region that uses no blocks (a combine region)."""
        made = Region([])
        region.clone_into(made, {})
        return made

    def inline_on_blocks(self, region: Region, values: list[Value]) -> list[Value]:
        """The operations of a combine region applied to blocks, element by element."""
        block = region.block
        shape = values[0].type
        assert isinstance(shape, TensorType)
        mapped: dict[Value, Value] = dict(zip(block.arguments, values, strict=True))
        for op in block.ops[:-1]:
            types = [shape.with_element(result.type) for result in op.results]
            attributes = op.attributes
            if isinstance(op, arith.Constant):
                assert isinstance(op.value, IntegerAttr | FloatAttr)
                attributes = {"value": DenseAttr((op.value.value,), types[0])}
            copy = self.builder.insert(
                type(op)([mapped[v] for v in op.operands], types, attributes, (), op.loc, op.segments)
            )
            mapped.update(zip(op.results, copy.results, strict=True))
        return [mapped[value] for value in block.terminator.operands]

    # Values that regions carry

    def flat(self, value: Value) -> list[Value]:
        """The new values of a value: its pieces, cut as its encoding says, or the scalar."""
        found = self.values[value]
        if not isinstance(found, Pieces):
            return [found]
        block = block_of(value.type)
        assert block is not None
        return list(found.cut(self.builder, self.sizes.piece_of(value.type)).values)

    def flat_types(self, value: Value) -> list[Type]:
        """The types of `flat`."""
        block = block_of(value.type)
        if block is None:
            return [value.type]
        grid = Grid(block.shape, self.sizes.piece_of(value.type))
        return [self.piece_type(value.type, grid.piece)] * len(grid.origins())

    def unflatten(self, olds: Sequence[Value], news: Sequence[Value]) -> list[Split]:
        """Group a flat list of new values as the old values they stand for."""
        made: list[Split] = []
        rest = list(news)
        for old in olds:
            count = len(self.flat_types(old))
            taken, rest = rest[:count], rest[count:]
            block = block_of(old.type)
            if block is None:
                made.append(taken[0])
            else:
                made.append(self.pieces_of(old.type, Grid(block.shape, self.sizes.piece_of(old.type)), taken))
        return made

"""Loop nests, what is stored and what is packed for dots: what is decided of whole blocks that lie in memory.

Level: warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import (
    require,
    require_attributes,
    require_type,
    require_types,
    tensor,
    types_of,
)
from mltriton.ir.definition import (
    boolean,
    integer,
    integers,
    operand,
    region,
    type_attribute,
    variadic,
)
from mltriton.ir.operation import Coordinates, Elements, Operation, Value
from mltriton.ir.types import Type

__all__ = ["Fill", "Nest", "Pack", "Yield"]


class Nest(Operation, name="tile.nest"):
    """`tile.nest loops(0, 1) -> (T) {...}`: operations that share loops, which end with `tile.yield`.

    Those with effects, reductions and `tile.fill` are its members. A member walks over a block (a reduction along
    another dimension than the last over its result): all share the loops over the dimensions but the last, and each row
    is done by all members before the next row. In a row, members of one number in `loops`, which has one for each
    member, share a loop over the row's chunks, lower numbers first. Everything else is computed where a member needs
    it, in registers. What it means is what its operations mean, one after the other.

    Stores whose numbers among the members are `prefetched` are asked for by the loop of the row before theirs.

    A single store may have its lanes `along` another dimension of its block than the last: it loops over the others.
    With `squares` of that many lanes, chunks along the last dimension are transposed in registers on their way.
    """

    syntax = "custom<nest>"
    region_ends = ("tile.yield",)
    loops = integers()
    along = integer(-1)
    squares = integer(0)
    prefetched = integers()
    body = region()

    def verify(self) -> None:
        require(self, len(self.body.blocks) == 1, "the nest has one block", 1, len(self.body.blocks))
        block = self.body.block
        require_types(self, "the block's arguments", types_of(block.arguments), [])
        require_types(self, "the yielded values", types_of(block.terminator.operands), types_of(self.results))
        for inner in block.ops:
            own = inner.name in ("tt.dot", "tt.scan") or (inner.regions and inner.name != "tt.reduce")
            require(self, not own, "what has loops of its own stands outside of nests", found=inner.name)
        require(self, min(self.loops, default=-1) == 0, "the loops of a row are numbered from 0", found=self.loops)
        known = all(0 <= number < len(self.loops) for number in self.prefetched)
        require(self, known, "what is prefetched are members", f"numbers below {len(self.loops)}", self.prefetched)
        alone = self.along < 0 or len(self.loops) == 1
        require(self, alone, "a store with lanes along another dimension shares no loops", found=self.loops)


class Yield(Operation, name="tile.yield", terminator=True):
    """Ends a `tile.nest`: its values, for what comes after it."""

    syntax = "attr-dict ($values^ `:` type($values))?"
    values = variadic()

    def verify(self) -> None:
        require(self, isinstance(self.parent_op, Nest), "ends a tile.nest")


class Fill(Operation, name="tile.fill", looks_around=True):
    """`tile.fill %x`: the block is stored in scratch memory; what needs it from here on reads it there.

    With an `element` type it is stored as such elements, which only dots read that take it on the left. The `start` of
    a dot's sum is stored where that dot, the next one that adds to the block, is going to leave its sum. What is kept
    for a `row` is there in the row's later loops only: which dimension of the loops each of the block's follows (-1:
    none, it is the first element).
    """

    syntax = "$source attr-dict `:` type($source)"
    source = operand()
    element: Type | None = type_attribute()
    start = boolean()
    row = integers()

    def verify(self) -> None:
        tensor(self, "the source", self.source)
        require(self, isinstance(self.parent_op, Nest), "what is stored is stored by the loops of a tile.nest")
        ways = [self.element is not None, self.start, bool(self.row)]
        require(self, sum(ways) <= 1, "for a dot's left operand, its sum or a row", found=f"{sum(ways)} of them")
        rank = tensor(self, "the source", self.source).rank
        require(self, len(self.row) in (0, rank), "a dimension of the loops for each of the block", rank, self.row)

    @property
    def defines(self) -> bool:
        """Whether all read the block where it is stored."""
        return self.element is None and not self.start and not self.row


class Pack(Operation, name="tile.pack", pure=True):
    """`tile.pack %b {element = bf16, group = 2, panel = 64}`: the block, copied for the dots that take it in the order
    in which their micro-kernel reads it: as `element`s, row by row, `group` rows next to each other, in panels of so
    many columns (default: one); `by_columns` (for the left operand) column by column. With `along_rows` memory runs
    from row to row: it is read so, and transposed where it is copied row by row.

    What is `in_place` is read where it lies instead if the program finds that it is inside its masks and its rows are
    `near` bytes of each other, where that is said. Few rows may read the right one's lines where they are (`by_lines`).
    """

    syntax = "$source attr-dict `:` type($source)"
    source = operand()
    element: Type = type_attribute()
    group = integer(1)
    panel = integer(0)
    along_rows = boolean()
    by_columns = boolean()
    in_place = boolean()
    near = integer(0)
    by_lines = boolean()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]

    def verify(self) -> None:
        type = tensor(self, "the source", self.source)
        require_type(self, "the result", self.result.type, type)
        require_attributes(self, "element")
        require(self, type.rank > 1, "a matrix is packed", "2 dimensions", type)
        require(self, type.shape[-2] % self.group == 0, "groups divide the rows", f"a divisor of {type}", self.group)
        parts = self.panel == 0 or type.shape[-1] % self.panel == 0
        require(self, parts, "panels divide the columns", f"a divisor of {type.shape[-1]}", self.panel)
        same = self.group == 1 and self.element is type.element
        require(self, same or not self.in_place, "in another order or type a block is read from a copy", found=type)
        require(self, self.in_place or self.near == 0, "`near` says when a block is read in place")
        in_order = self.group == 1 and self.panel == 0
        require(self, in_order or not self.by_columns, "columns have neither groups nor panels", found=self.group)
        turned = self.along_rows and not self.by_columns
        require(self, not (turned and self.in_place), "a block is read in place in the order in which it is packed")

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.source, at)]

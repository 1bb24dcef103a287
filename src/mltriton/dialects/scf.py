"""`scf`: structured control flow.

Level: tt to intrinsic. Names and text are MLIR's. Regions have one block; loop bounds are i32, i64 or index scalars,
steps positive.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.ir.checks import require, require_type, require_types, types_of
from mltriton.ir.definition import boolean, integer, operand, region, variadic
from mltriton.ir.operation import BlockArgument, Operation
from mltriton.ir.types import I1, IndexType, IntegerType


class Yield(Operation, name="scf.yield", terminator=True):
    """Ends a region of `for`, `if` or the body of `while`: the values of the next iteration, or the results."""

    syntax = "attr-dict ($values^ `:` type($values))?"
    values = variadic()

    def verify(self) -> None:
        parent = self.parent_op
        require(self, isinstance(parent, For | If | While), "ends loops and branches", found=parent and parent.name)


class For(Operation, name="scf.for"):
    """`scf.for %i = %lower to %upper step %step iter_args(%x = %init) -> (T)`: counts up; the body's arguments are
    the counter and the carried values.

    `num_stages` and `warp_level` style hints of the source stay as attributes (`tt.num_stages`).
    """

    syntax = "custom<for>"
    region_ends = ("scf.yield",)
    lower = operand()
    upper = operand()
    step = operand()
    inits = variadic()
    body = region()
    num_stages = integer(text="tt.num_stages")
    unroll = integer(text="tt.loop_unroll_factor")
    warp_specialize = boolean(text="tt.warp_specialize")

    @property
    def counter(self) -> BlockArgument:
        """The loop counter."""
        return self.body.block.arguments[0]

    @property
    def carried(self) -> list[BlockArgument]:
        """The carried values as the body sees them, one for each init, yielded value and result."""
        return self.body.block.arguments[1:]

    def verify(self) -> None:
        type = self.lower.type
        require(self, isinstance(type, IntegerType | IndexType), "bounds are integers", "i32, i64 or index", type)
        for value in (self.upper, self.step):
            require_type(self, "a bound", value.type, type)
        require(self, len(self.body.blocks) == 1, "the body has one block", 1, len(self.body.blocks))
        carried = types_of(self.inits)
        require_types(self, "the body's arguments", types_of(self.body.block.arguments), [type, *carried])
        require_types(self, "the yielded values", types_of(self.body.block.terminator.operands), carried)
        require_types(self, "the results", types_of(self.results), carried)


class If(Operation, name="scf.if"):
    """`scf.if %c -> (T) {...} else {...}`; without results the else region may be empty (no block)."""

    syntax = "custom<if>"
    region_ends = ("scf.yield", "scf.yield")
    condition = operand()
    then = region()
    otherwise = region()

    def verify(self) -> None:
        require_type(self, "the condition", self.condition.type, I1)
        require(self, len(self.then.blocks) == 1, "the branch has one block", 1, len(self.then.blocks))
        needs_else = bool(self.results) and not self.otherwise.blocks
        require(self, not needs_else, "a branch with results needs an else region")
        for branch in self.regions:
            for block in branch.blocks:
                require_types(self, "the block's arguments", types_of(block.arguments), [])
                require_types(self, "the yielded values", types_of(block.terminator.operands), types_of(self.results))


class While(Operation, name="scf.while"):
    """`scf.while`: `before` computes the condition (ends with `scf.condition`), `after` is the body (ends with
    `scf.yield`).
    """

    syntax = "custom<while>"
    region_ends = ("scf.condition", "scf.yield")
    inits = variadic()
    before = region()
    after = region()

    def verify(self) -> None:
        blocks = [len(region.blocks) for region in self.regions]
        require(self, blocks == [1, 1], "each region has one block", [1, 1], blocks)
        before, after = self.before.block, self.after.block
        carried, results = types_of(self.inits), types_of(self.results)
        require_types(self, "the arguments of the first region", types_of(before.arguments), carried)
        require_types(self, "the values of scf.condition", types_of(before.terminator.operands[1:]), results)
        require_types(self, "the arguments of the second region", types_of(after.arguments), results)
        require_types(self, "the yielded values", types_of(after.terminator.operands), carried)


class Condition(Operation, name="scf.condition", terminator=True):
    """Ends the `before` region of a `while`: go on if true; the values go to the body or become the results."""

    syntax = "`(` $condition `)` attr-dict ($values^ `:` type($values))?"
    condition = operand()
    values = variadic()

    def verify(self) -> None:
        parent = self.parent_op
        require(self, isinstance(parent, While), "ends the first region of scf.while", found=parent and parent.name)
        require_type(self, "the condition", self.condition.type, I1)


def innermost_loops(function: Operation) -> Iterator[For]:
    """The `for` loops of a function in which there is no other loop."""
    for op in function.walk():
        if isinstance(op, For) and not any(isinstance(inner, For | While) for inner in op.walk() if inner is not op):
            yield op

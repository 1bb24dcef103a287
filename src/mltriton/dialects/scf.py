"""`scf`: structured control flow.

Level: tt to intrinsic. Names and text are MLIR's. Regions have one block; loop bounds are i32, i64 or index scalars,
steps positive.
"""

from __future__ import annotations

from mltriton.ir.definition import integer, operand, region, variadic
from mltriton.ir.operation import BlockArgument, Operation


class Yield(Operation):
    """Ends a region of `for`, `if` or the body of `while`: the values of the next iteration, or the results."""

    name = "scf.yield"
    syntax = "attr-dict ($values^ `:` type($values))?"
    terminator = True
    values = variadic()


class For(Operation):
    """`scf.for %i = %lower to %upper step %step iter_args(%x = %init) -> (T)`: counts up; the body's arguments are
    the counter and the carried values.

    `num_stages` and `warp_level` style hints of the source stay as attributes (`tt.num_stages`).
    """

    name = "scf.for"
    syntax = "custom<for>"
    region_ends = ("scf.yield",)
    lower = operand()
    upper = operand()
    step = operand()
    inits = variadic()
    body = region()
    num_stages = integer(text="tt.num_stages")
    unroll = integer(text="tt.loop_unroll_factor")

    @property
    def counter(self) -> BlockArgument:
        """The loop counter."""
        return self.body.block.arguments[0]

    @property
    def carried(self) -> list[BlockArgument]:
        """The carried values as the body sees them, one for each init, yielded value and result."""
        return self.body.block.arguments[1:]


class If(Operation):
    """`scf.if %c -> (T) {...} else {...}`; without results the else region may be empty (no block)."""

    name = "scf.if"
    syntax = "custom<if>"
    region_ends = ("scf.yield", "scf.yield")
    condition = operand()
    then = region()
    otherwise = region()


class While(Operation):
    """`scf.while`: `before` computes the condition (ends with `scf.condition`), `after` is the body (ends with
    `scf.yield`).
    """

    name = "scf.while"
    syntax = "custom<while>"
    region_ends = ("scf.condition", "scf.yield")
    inits = variadic()
    before = region()
    after = region()


class Condition(Operation):
    """Ends the `before` region of a `while`: go on if true; the values go to the body or become the results."""

    name = "scf.condition"
    syntax = "`(` $condition `)` attr-dict ($values^ `:` type($values))?"
    terminator = True
    condition = operand()
    values = variadic()

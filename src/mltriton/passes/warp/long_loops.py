"""Loops whose steps along K are several of another loop's: what merge-k-steps puts in front of that one.

Level: warp. Takes a loop, the dots that it accumulates, their extent along K and how many steps become one. Guarantees:
the loop stays as it was where it is not proven that the long blocks are the short ones side by side (`widening.py`);
else it does the steps that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.analysis.affine.motion import LoopAffine
from mltriton.dialects import arith, scf, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import TensorType
from mltriton.passes.warp.widening import NotMergeable, Widener


class LongLoop:
    """Builds the loop of long steps for one loop, and puts it in front if everything in it can be proven."""

    def __init__(self, loop: scf.For, dots: Sequence[tt.Dot], extent: int, factor: int) -> None:
        self.loop = loop
        self.dots = dots
        self.extent = extent
        self.factor = factor
        self.affine = LoopAffine(loop)
        self.entry = Block()
        self.before = Builder(self.entry, loop.loc)
        self.body = Block([argument.type for argument in loop.body.block.arguments])

    def put_in_front(self) -> None:
        """Merge, or leave everything as it was."""
        try:
            self._fill_body()
        except NotMergeable:
            for block in (self.body, self.entry):
                for op in block.ops:
                    op.drop_operands()
            return
        self._insert()

    def _fill_body(self) -> None:
        step = splat_of(self.loop.step)
        if not isinstance(step, int) or step <= 0:
            raise NotMergeable("the step is not known")
        old = self.loop.body.block
        builder = Builder(self.body, self.loop.loc)
        values: dict[Value, Value] = dict(zip(old.arguments, self.body.arguments, strict=True))
        for argument, new in values.items():
            new.hint = argument.hint
        widener = Widener(self.affine, builder, self.before, self.extent, self.factor, values)
        sums = {dot.c: self._long_dot(widener, dot) for dot in self.dots}
        yielded = [sums.get(argument) or self._advanced(widener, argument) for argument in self.loop.carried]
        builder.create(scf.Yield, yielded, result_types=[])

    def _long_dot(self, widener: Widener, dot: tt.Dot) -> Value:
        rank = cast(TensorType, dot.a.type).rank
        a, b = widener.wide(dot.a, rank - 1), widener.wide(dot.b, rank - 2)
        made = tt.Dot([a, b, widener.values[dot.c]], [dot.result.type], dot.attributes, loc=dot.loc)
        made.result.hint = dot.result.hint
        return widener.builder.insert(made).result

    def _advanced(self, widener: Widener, argument: Value) -> Value:
        """A carried scalar after all the steps that became one."""
        growth = self.affine.increments.get(argument)
        if growth is None:
            raise NotMergeable("a carried value that is neither a sum of dots nor grows evenly")
        amount = growth.times(self.factor).emit(self.before, argument.type)
        return widener.builder.emit(arith.AddI, widener.values[argument], amount)

    def _insert(self) -> None:
        """The loop of long steps in front of the old one, which starts where it ends."""
        loop, block = self.loop, cast(Block, self.loop.block)
        middle = self._start_of_rest()
        step = self._constant(cast(int, splat_of(loop.step)) * self.factor)
        types = [result.type for result in loop.results]
        operands = [loop.lower, middle, step, *loop.inits]
        long = scf.For(operands, types, loop.attributes, [Region([self.body])], loop.loc, (1, 1, 1, len(types)))
        self.before.insert(long)
        for op in self.entry.ops:
            op.block = block
        position = block.ops.index(loop)
        block.ops[position:position] = self.entry.ops
        for old, new in zip(loop.results, long.results, strict=True):
            new.hint = old.hint
        loop.set_operands([middle, *loop.operands[1:3], *long.results], loop.segments)

    def _start_of_rest(self) -> Value:
        """Where the long steps end: lower + (steps // factor) * factor * step, steps = ceil((upper - lower) / step)."""
        loop, emit = self.loop, self.before.emit
        step = cast(int, splat_of(loop.step))
        runs = emit(arith.CmpI, loop.upper, loop.lower, predicate="sgt")
        span = emit(arith.Select, runs, emit(arith.SubI, loop.upper, loop.lower), self._constant(0))
        steps = emit(arith.DivUI, emit(arith.AddI, span, self._constant(step - 1)), self._constant(step))
        long_steps = emit(arith.DivUI, steps, self._constant(self.factor))
        return emit(arith.AddI, loop.lower, emit(arith.MulI, long_steps, self._constant(self.factor * step)))

    def _constant(self, number: int) -> Value:
        return arith.integer(self.before, number, self.loop.lower.type)

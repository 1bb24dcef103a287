"""Patterns: one walk over a program in which each operation may be replaced by better ones.

Level: all. Takes a table `{op class: pattern}`. A pattern is called as `pattern(builder, op)` with the builder
standing right before the next operation; it returns the values that stand for the results, or None to leave the
operation. Values that it makes with `builder.emit` go through the table as well, so that a pattern may rely on its
operands being in the form that the table produces. Guarantees: operations are visited once, operands before users.

    apply_patterns(module, {arith.AddI: add_of_splats, tt.Broadcast: broadcast_of_splat})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mltriton.ir.builder import Builder, Operands
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.promises import takes_over

Pattern = Callable[[Builder, Any], Sequence[Value] | None]
Patterns = Mapping[type[Operation], Pattern]


def apply_patterns(root: Operation, patterns: Patterns) -> None:
    """Apply the table to everything in the regions of `root`, in place."""
    _PatternBuilder(patterns).visit_regions(root)


class _PatternBuilder(Builder):
    def __init__(self, patterns: Patterns) -> None:
        super().__init__()
        self.patterns = patterns

    def visit_regions(self, op: Operation) -> None:
        for block in op.blocks:
            self.visit(block)

    def visit(self, block: Block) -> None:
        """Fill the block again, operation by operation."""
        old, block.ops = block.ops, []
        with self.inside(block):
            for op in old:
                if op.regions:
                    self.visit_regions(op)
                block.ops.append(op)
                self._replaced(op)

    def emit(self, cls: type[Operation], *operands: Operands, **keywords: Any) -> OpResult:
        op = self.create(cls, *operands, **keywords)
        found = self._replaced(op)
        return found[0] if found is not None else op.result  # type: ignore[return-value]

    def _replaced(self, op: Operation) -> Sequence[Value] | None:
        """What the table makes of the last operation of the block, which then is gone."""
        pattern = self.patterns.get(type(op))
        if pattern is None:
            return None
        ops, position = self.block.ops, len(self.block.ops) - 1
        with self.at(op.loc):
            values = pattern(self, op)
        if values is not None and all(takes_over(value, op) for value in values):
            for old, new in zip(op.results, values, strict=True):
                old.replace_by(new)
                new.hint = new.hint or old.hint
            del ops[position]
            op.block = None
            op.drop_operands()
            return values
        return None

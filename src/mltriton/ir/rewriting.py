"""Rebuilding a module from a table of rules: how passes change programs.

Level: all. `rebuild` makes a new module: for each operation, in order, the rule for its class is called with the
operands already mapped; without a rule the operation is copied with mapped operands (regions are rebuilt too). A rule
returns the values that stand for the results.

    RULES: RuleTable = {tt.Dot: shrink, tt.Load: keep}
    new = rebuild(module, RULES)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.promises import of_part
from mltriton.ir.types import Type

OperationT = TypeVar("OperationT", bound=Operation)
Rule = Callable[["Rewriter", Operation, list[Value]], Sequence[Value]]
RuleTable = Mapping[type[Operation], Callable[..., Sequence[Value]]]


class Rewriter:
    """State of a rebuild: `builder` inserts into the new program, `values` maps old values to new ones,
    `convert_type` maps the types of copies.
    """

    def __init__(self, rules: RuleTable, convert_type: Callable[[Type], Type] | None = None) -> None:
        self.rules = rules
        self.builder = Builder()
        self.values: dict[Value, Value] = {}
        self.convert_type = convert_type

    def type_of(self, value: Value) -> Type:
        """The type of what stands for an old value in copies."""
        return self.convert_type(value.type) if self.convert_type is not None else value.type

    def map(self, old: Value) -> Value:
        """The new value that stands for `old`."""
        return self.values[old]

    def rewrite(self, op: Operation) -> None:
        """Rebuild one operation at the insertion point."""
        rule = self.rules.get(type(op), type(self).copy)
        saved, self.builder.loc = self.builder.loc, op.loc
        results = rule(self, op, [self.values[operand] for operand in op.operands])
        self.builder.loc = saved
        for old, new in zip(op.results, results, strict=True):
            self.values[old] = new
            if new.hint is None:
                new.hint = old.hint

    def copy(self, op: Operation, operands: list[Value]) -> Sequence[Value]:
        """The rule that copies an operation with new operands, converting types."""
        types = [self.type_of(result) for result in op.results]
        regions = [self.rebuild_region(region) for region in op.regions]
        return self.builder.insert(type(op)(operands, types, of_part(op, types), regions, op.loc, op.segments)).results

    def rebuild_region(self, region: Region) -> Region:
        """A rebuilt copy of a region, with converted block-argument types."""
        made = Region([])
        for block in region.blocks:
            made.add(self.rebuild_block(block))
        return made

    def rebuild_block(self, block: Block) -> Block:
        """A rebuilt copy of a block."""
        made = Block([self.type_of(argument) for argument in block.arguments])
        for old, new in zip(block.arguments, made.arguments, strict=True):
            self.values[old] = new
            new.hint = old.hint
        with self.builder.inside(made):
            for op in block.ops:
                self.rewrite(op)
        return made


def rebuild(root: OperationT, rules: RuleTable, convert_type: Callable[[Type], Type] | None = None) -> OperationT:
    """A rebuilt copy of a top-level operation (a module). The old one is left as it was."""
    rewriter = Rewriter(rules, convert_type)
    regions = [rewriter.rebuild_region(region) for region in root.regions]
    return type(root)((), [], root.attributes, regions, root.loc)


def keep(rewriter: Rewriter, op: Operation, operands: list[Value]) -> Sequence[Value]:
    """The rule that copies an operation unchanged: says in a table that this was considered."""
    return rewriter.copy(op, operands)

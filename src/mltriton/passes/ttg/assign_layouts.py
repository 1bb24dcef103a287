"""assign-layouts: tt -> ttg.

Takes a program without encodings; leaves the same operations with an encoding on every block. Guarantees: operands
and results agree as each operation wants (dot operands have `#ttg.dot_op`, a reduction's result `#ttg.slice`,
everything else one encoding); only `ttg.convert_layout` changes one, and it appears only where two roots really
disagree. Source: ML-Triton paper, section 2.1 (root operation, propagation), section 2.5 and Table 5 (attention).

`layout_plan.py` decides, this file rewrites: an operation whose values are cheap to compute again (ranges, splats,
index arithmetic) is emitted once for each encoding that is asked of it.
"""

from __future__ import annotations

from mltriton.dialects import tt, ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.attributes import IntegerAttr, StringAttr, string_in
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, TensorDescType, Type, block_of
from mltriton.layouts.encodings import Encoding
from mltriton.passes.ttg.layout_plan import LayoutPlan, functions, with_encoding
from mltriton.targets.base import TargetSpec, WideWarps
from mltriton.targets.registry import num_warps_of, sharing_warps_of, spec_of


class AssignLayouts(Pass):
    """Give every block its encoding in one go, from the root operations outwards."""

    name = "assign-layouts"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        plan = LayoutPlan(spec, sharing_warps_of(module))
        for function in functions(module):
            plan.add(function)
        attributes = module.attributes | {
            "mltriton.level": StringAttr("ttg"),
            "ttg.num-warps": IntegerAttr(num_warps_of(module), I32),
            "ttg.threads-per-warp": IntegerAttr(warp_size_for(module), I32),
        }
        writer = _Writer(plan)
        return Module((), [], attributes, [writer.region(region) for region in module.regions], module.loc)


class _Writer:
    """Writes the annotated program. A block has one new value for each encoding it is wanted in; any other value has
    one, under None.
    """

    def __init__(self, plan: LayoutPlan) -> None:
        self.plan = plan
        self.builder = Builder()
        self.values: dict[tuple[Value, Encoding | None], Value] = {}

    def region(self, region: Region) -> Region:
        made = Region([])
        for block in region.blocks:
            made.add(self.block(block))
        return made

    def block(self, block: Block) -> Block:
        made = Block([self._type(argument) for argument in block.arguments])
        for old, new in zip(block.arguments, made.arguments, strict=True):
            self._define(old, new)
        with self.builder.inside(made):
            for op in block.ops:
                with self.builder.at(op.loc):
                    self.operation(op)
        return made

    def operation(self, op: Operation) -> None:
        if self.plan.is_flexible_op(op):
            for encoding in self.plan.demanded[op.results[0]]:
                wanted = self.plan.flexible_operands(op, encoding)
                self._emit(op, wanted, [encoding])
            return
        wanted = [self.plan.wanted.get((op, i)) for i in range(len(op.operands))]
        self._emit(op, wanted, [self.plan.encodings.get(result) for result in op.results])

    def _emit(self, op: Operation, wanted: list[Encoding | None], results: list[Encoding | None]) -> None:
        operands = [self._use(value, encoding) for value, encoding in zip(op.operands, wanted, strict=True)]
        types = [with_encoding(result.type, encoding) for result, encoding in zip(op.results, results, strict=True)]
        attributes = self.plan.retyped_attributes(op, types)
        made = self.builder.insert(
            type(op)(operands, types, attributes, [self.region(region) for region in op.regions], op.loc, op.segments)
        )
        for old, new, encoding in zip(op.results, made.results, results, strict=True):
            new.hint = old.hint
            self.values[old, encoding] = new

    def _use(self, value: Value, wanted: Encoding | None) -> Value:
        """The new value of `value` in encoding `wanted`, through a conversion where it only exists in another."""
        if (value, wanted) in self.values:
            return self.values[value, wanted]
        assert wanted is not None
        source = self.values[value, self.plan.encodings[value]]
        return self.builder.emit(ttg.ConvertLayout, source, result_types=[with_encoding(value.type, wanted)])

    def _type(self, value: Value) -> Type:
        return with_encoding(value.type, self.plan.encodings.get(value))

    def _define(self, old: Value, new: Value) -> None:
        new.hint = old.hint
        self.values[old, self.plan.encodings.get(old) if block_of(old.type) else None] = new


def warp_size_for(module: Module) -> int:
    """Lanes of each of the program's warps."""
    spec = spec_of(module)
    wide = spec.wide_warps
    return wide.lanes if wide is not None and _may_be_wide(module, spec, wide) else spec.warp_size


def _may_be_wide(module: Module, spec: TargetSpec, wide: WideWarps) -> bool:
    codegen = string_in(module.attributes, "ttig.codegen", next(iter(spec.codegens), ""))
    if codegen not in wide.codegens or num_warps_of(module) > wide.max_warps:
        return False
    ops = list(module.walk())
    return not any(map(_takes_usual_lanes, ops)) and _largest_block(ops) >= wide.lanes * sharing_warps_of(module)


def _takes_usual_lanes(op: Operation) -> bool:
    """Whether an operation is one of the matrix engine's or accesses matrices."""
    if isinstance(op, tt.Dot):
        return True
    blocks = (
        value.type.block if isinstance(value.type, TensorDescType) else block_of(value.type)
        for value in op.operands
        if isinstance(value.type, TensorDescType) or is_block_pointer(value.type)
    )
    return any(block is not None and block.rank > 1 for block in blocks)


def _largest_block(ops: list[Operation]) -> int:
    return max((block.size for op in ops for result in op.results if (block := block_of(result.type))), default=1)

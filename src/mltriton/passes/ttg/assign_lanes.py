"""assign-lanes: ttg -> ttg (and warp -> warp, for the blocks that exchanges between warps add).

Takes a program whose encodings say which warp owns what; leaves one in which they also say which lane. Guarantees:
every warp keeps its part; what a 2D block load or store moves has an encoding of its own (`#ttig.subgroup_2d_block`),
and the way to what its users need is a `ttg.convert_layout` that is seen and counted. Programs for targets whose lanes
do not matter stay as they are. `lane_plan.py` decides, this file rewrites.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.rewriting import Rewriter, RuleTable
from mltriton.ir.types import MemDescType, PointerType, TensorType, Type, block_of, byte_width
from mltriton.layouts.encodings import DotOperandEncoding, Encoding, operand_of
from mltriton.layouts.lanes import order_of
from mltriton.passes.ttg.lane_plan import LanePlan
from mltriton.passes.ttg.layout_plan import with_encoding
from mltriton.targets.base import Home
from mltriton.targets.registry import spec_of


class AssignLanes(Pass):
    """Say which lane holds each element."""

    name = "assign-lanes"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if not spec.has_lanes:
            return module
        made = Module.empty(module.attributes, module.loc)
        for op in module.body.block.ops:
            assert isinstance(op, tt.Func)
            writer = _Writer(LanePlan(op, spec))
            regions = [writer.rebuild_region(region) for region in op.regions]
            made.body.block.append(tt.Func((), (), op.attributes, regions, op.loc))
        return made


class _Writer(Rewriter):
    """Rebuilds a function: types follow from values, because block pointers of one type may take different blocks."""

    def __init__(self, plan: LanePlan) -> None:
        super().__init__(RULES)
        self.plan = plan
        self.memory: dict[tuple[Value, MemDescType], Value] = {}  # blocks stored in front of a loop

    def type_of(self, value: Value) -> Type:
        """The type of an old value with lanes."""
        block = block_of(value.type)
        if block is None or not isinstance(block.encoding, Encoding):
            return value.type
        return with_encoding(value.type, self.plan.blocks.get(value) or self.plan.of(block.encoding))

    def converted(self, value: Value, encoding: Encoding) -> Value:
        """A block in another encoding."""
        type = with_encoding(value.type, encoding)
        return value if value.type is type else self.builder.emit(ttg.ConvertLayout, value, result_types=[type])

    def stored(self, value: Value, type: MemDescType) -> Value:
        """A block in shared memory: once, where it is defined, if that is outside of the loop at hand."""
        if (value, type) not in self.memory:
            op, block = value.defining_op, self.builder.block
            outside = op.block if op is not None else None
            if op is None or outside is None or outside is block:
                return self.builder.emit(ttg.LocalAlloc, value, result_types=[type])
            allocation = ttg.LocalAlloc([value], [type], loc=self.builder.loc)
            outside.insert_after(op, allocation)
            self.memory[value, type] = allocation.result
        return self.memory[value, type]


def constant(w: _Writer, op: arith.Constant, operands: list[Value]) -> Sequence[Value]:
    """A block of numbers has its type in its value."""
    if not isinstance(op.value, DenseAttr):
        return w.copy(op, operands)
    return [w.builder.emit(arith.Constant, value=DenseAttr(op.value.values, w.type_of(op.result)))]


def load(w: _Writer, op: tt.Load | tt.DescriptorLoad, operands: list[Value]) -> Sequence[Value]:
    """A load with an encoding of its own; users get theirs by a conversion."""
    block = w.plan.accesses.get(op)
    if block is None:
        return w.copy(op, operands)
    if isinstance(op.operands[0].type, TensorType):
        operands = [w.converted(operand, block) for operand in operands]
    types = [with_encoding(op.result.type, block)]
    loaded = w.builder.insert(type(op)(operands, types, op.attributes, (), op.loc, op.segments)).results[0]
    loaded.hint = op.result.hint
    return [w.converted(loaded, _encoding(w.type_of(op.result)))]


def store(w: _Writer, op: tt.Store | tt.DescriptorStore, operands: list[Value]) -> Sequence[Value]:
    """The value comes into the encoding of a 2D block store by a conversion."""
    block = w.plan.accesses.get(op)
    if block is not None:
        operands[1] = w.converted(operands[1], block)
    return w.copy(op, operands)


def dot(w: _Writer, op: tt.Dot, operands: list[Value]) -> Sequence[Value]:
    """Operands and accumulator come into the layouts of the instruction where they stand in others."""
    own = w.plan.dots[op]
    parts = zip((op.a, op.b), w.plan.homes(op), strict=True)
    a, b = (_operand(w, v, operand_of(own, i, _element_bytes(v)), home) for i, (v, home) in enumerate(parts))
    c = w.converted(operands[2], own)
    made = w.builder.insert(tt.Dot([a, b, c], [c.type], op.attributes, (), op.loc, op.segments))
    return [w.converted(made.results[0], _encoding(w.type_of(op.result)))]


def _operand(w: _Writer, old: Value, encoding: DotOperandEncoding, home: Home) -> Value:
    """An operand where the instruction takes it from. What goes to shared memory needs no other layout before."""
    if isinstance(old.type, MemDescType):
        return w.values[old]
    if home is not Home.SHARED:
        return w.converted(w.values[old], encoding)
    source = old.defining_op
    value = w.values[source.source if isinstance(source, ttg.ConvertLayout) else old]
    block = cast(TensorType, value.type)
    order, width = order_of(_encoding(block), block.shape), byte_width(block.element)
    if width != 2:  # A product, unlike lanes, reads such elements only along K.
        order = (1, 0) if encoding.op_idx == 0 else (0, 1)
    layout = encoding.parent.operand_in_shared(encoding, block.shape, width, order)
    return w.stored(value, MemDescType(block.shape, block.element, layout))


def convert(w: _Writer, op: ttg.ConvertLayout, operands: list[Value]) -> Sequence[Value]:
    """A conversion to what the value has already is none."""
    return [w.converted(operands[0], _encoding(w.type_of(op.result)))]


def _element_bytes(value: Value) -> int:
    return byte_width(cast(TensorType | MemDescType, value.type).element)


def _encoding(type: Type) -> Encoding:
    block = type.pointee if isinstance(type, PointerType) else type
    return cast(Encoding, cast(TensorType, block).encoding)


RULES: RuleTable = {
    arith.Constant: constant,
    tt.Load: load,
    tt.DescriptorLoad: load,
    tt.Store: store,
    tt.DescriptorStore: store,
    tt.DescriptorReduce: store,
    tt.Dot: dot,
    ttg.ConvertLayout: convert,
}

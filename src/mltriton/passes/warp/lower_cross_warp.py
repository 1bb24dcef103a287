"""lower-cross-warp: combinations across warps become exchanges through shared memory.

Level: warp. Takes a warp-level program; leaves no `ttg.cross_warp_reduce` and no `ttg.cross_warp_scan`. A reduction has
a buffer with a part for each warp: every warp stores its part, all meet, the receiving warps load all parts and reduce
them; the others get poison, or the same where one thread runs all warps and reduces once for all. A scan is computed
by warp 0, in place, between two barriers. Guarantees: every warp passes the same barriers; nobody writes a buffer that
another warp may still read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, gpu, scf, tt, ttg
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.rewriting import Rewriter, RuleTable
from mltriton.ir.types import I1, I8, I32, FloatType, MemDescType, TensorType, Type, element_type, like, shape_of
from mltriton.layouts import tiling
from mltriton.layouts.encodings import Encoding, SliceEncoding
from mltriton.targets.registry import num_warps_of, spec_of

MEETING = (gpu.Barrier, ttg.CrossWarpReduce, ttg.CrossWarpScan)  # operations at which all warps meet


class LowerCrossWarp(Pass):
    """Exchange values across warps through shared memory."""

    name = "lower-cross-warp"

    def run(self, module: Module) -> Module:
        if not is_warp_level(module):
            return module
        made = Module.empty(module.attributes, module.loc)
        for op in module.body.block.ops:
            assert isinstance(op, tt.Func)
            made.body.block.append(
                _Lowering(num_warps_of(module), in_turns=spec_of(module).workgroup_warps == 1).function(op)
            )
        return made


class _Lowering(Rewriter):
    """Rebuilds one function. Buffers and the warp's id are made in `entry`, at the function's start; `in_turns`: one
    thread runs all warps.
    """

    def __init__(self, num_warps: int, *, in_turns: bool) -> None:
        super().__init__(RULES)
        self.num_warps = num_warps
        self.in_turns = in_turns
        self.entry = Block()
        self._start = Builder(self.entry)
        self._id: Value | None = None

    def function(self, function: tt.Func) -> tt.Func:
        self._start.loc = function.loc
        body = self.rebuild_region(function.body)
        for op in self.entry.ops:
            op.block = body.block
        body.block.ops[:0] = self.entry.ops
        return tt.Func((), (), function.attributes, [body], function.loc)

    def warp_id(self) -> Value:
        """The warp's id as i32."""
        if self._id is None:
            index = self._start.emit(gpu.SubgroupId)
            self._id = self._start.emit(arith.IndexCast, index, result_types=[I32])
            self._id.hint = "warp_id"
        return self._id

    def parts(self, value: Value) -> Value:
        """A buffer with a part for each warp."""
        stored = _stored(element_type(value.type))
        with self._start.at(self.builder.loc):
            type = MemDescType((self.num_warps, *shape_of(value.type)), stored)
            return self._start.emit(ttg.LocalAlloc, None, result_types=[type])

    def own_part(self, buffer: Value) -> Value:
        """This warp's part; of scalars a block of one."""
        whole = cast(MemDescType, buffer.type)
        zero = self.constant(0) if len(whole.shape) > 1 else None
        offsets = [self.warp_id(), *[zero for _ in whole.shape[1:] if zero]]
        part = MemDescType(whole.shape[1:] or (1,), whole.element)
        return self.builder.emit(ttg.MemDescSubview, buffer, offsets, result_types=[part])

    def store(self, value: Value, buffer: Value) -> None:
        """Store this warp's part."""
        block = self.converted(value, _stored(element_type(value.type)))
        if not isinstance(block.type, TensorType):
            block = self.builder.emit(tt.Splat, block, result_types=[_local((1,), block.type)])
        self.builder.create(ttg.LocalStore, block, self.own_part(buffer))

    def load_all(self, buffer: Value, element: Type) -> Value:
        """All parts, along a new first dimension."""
        whole = cast(MemDescType, buffer.type)
        block = self.builder.emit(ttg.LocalLoad, buffer, result_types=[_local(whole.shape, whole.element)])
        return self.converted(block, element)

    def load_own(self, buffer: Value, like_this: Value) -> Value:
        """This warp's part, as a value of the type of `like_this`."""
        type = like_this.type
        stored = _stored(element_type(type))
        block = like(type, stored) if isinstance(type, TensorType) else _local((1,), stored)
        found = self.builder.emit(ttg.LocalLoad, self.own_part(buffer), result_types=[block])
        if not isinstance(type, TensorType):
            found = self.builder.emit(tt.Unsplat, found, result_types=[stored])
        return self.converted(found, element_type(type))

    def converted(self, value: Value, element: Type) -> Value:
        """Booleans from and to the bytes that they are in memory."""
        if element_type(value.type) is element:
            return value
        widens = arith.ExtUI if element is I8 else arith.TruncI
        return self.builder.emit(widens, value, result_types=[like(value.type, element)])

    def constant(self, value: int) -> Value:
        return arith.integer(self.builder, value)

    def barrier(self) -> None:
        """All warps meet."""
        self.builder.create(gpu.Barrier)

    def is_one_of(self, warps: Sequence[int]) -> Value:
        """Whether this warp is one of `warps` (i1)."""
        tests = [
            self.builder.emit(arith.CmpI, self.warp_id(), self.constant(warp), predicate="eq", result_types=[I1])
            for warp in warps
        ]
        made = tests[0]
        for test in tests[1:]:
            made = self.builder.emit(arith.OrI, made, test)
        return made

    def branch(self, condition: Value, then: Block, otherwise: Block | None, types: Sequence[Type]) -> Sequence[Value]:
        """An `scf.if` whose blocks are filled."""
        regions = [Region([then]), Region([] if otherwise is None else [otherwise])]
        return self.builder.create(scf.If, condition, result_types=types, regions=regions).results


def _stored(element: Type) -> Type:
    return I8 if element is I1 else element


def _local(shape: tuple[int, ...], element: Type) -> TensorType:
    """The type of a block of one warp."""
    return TensorType(shape, element, tiling.replicated(shape, 1))


def reduce_through_memory(d: _Lowering, op: ttg.CrossWarpReduce, operands: list[Value]) -> Sequence[Value]:
    """Store, meet, load all and reduce; with `dst_warps` only there."""
    if not any(result.uses for result in op.results):
        d.barrier()
        return operands
    if _may_meet_itself(op):
        d.barrier()
    buffers = [d.parts(value) for value in operands]
    for value, buffer in zip(operands, buffers, strict=True):
        d.store(value, buffer)
    d.barrier()
    if d.in_turns or not op.dst_warps or len(op.dst_warps) == d.num_warps:
        return _reduced(d, op, operands, buffers)
    condition, then, otherwise = d.is_one_of(op.dst_warps), Block(), Block()
    with d.builder.inside(then):
        d.builder.create(scf.Yield, _reduced(d, op, operands, buffers), result_types=[])
    with d.builder.inside(otherwise):
        d.builder.create(scf.Yield, [_poison(d.builder, value.type) for value in operands], result_types=[])
    return d.branch(condition, then, otherwise, [value.type for value in operands])


def _reduced(
    d: _Lowering, op: ttg.CrossWarpReduce, operands: Sequence[Value], buffers: Sequence[Value]
) -> Sequence[Value]:
    whole = [d.load_all(buffer, element_type(old.type)) for old, buffer in zip(operands, buffers, strict=True)]
    types = [_without_first(value) for value in whole]
    made = d.builder.create(tt.Reduce, whole, result_types=types, regions=[d.rebuild_region(op.combine)], axis=0)
    return [
        new if new.type is old.type else d.builder.emit(ttg.ConvertLayout, new, result_types=[old.type])
        for old, new in zip(operands, made.results, strict=True)
    ]


def _without_first(value: Value) -> Type:
    type = cast(TensorType, value.type)
    if type.rank == 1:
        return type.element
    return TensorType(type.shape[1:], type.element, SliceEncoding(0, cast(Encoding, type.encoding)))


def _poison(builder: Builder, type: Type) -> Value:
    """A constant of which every bit is set, or NaN."""
    element = element_type(type)
    number = math.nan if isinstance(element, FloatType) else 1 if element is I1 else -1
    return arith.filled(builder, number, type)


def _may_meet_itself(op: Operation) -> bool:
    """Whether a warp may come back to `op` before every warp has left it: in a loop with no other meeting on the way.

    What stands in a block around `op`, up to the body of the innermost loop, is passed every time round.
    """
    inner: Operation = op
    while True:
        block, parent = inner.block, inner.parent_op
        if parent is None or block is None or isinstance(parent, tt.Func):
            return False
        if any(isinstance(other, MEETING) for other in block.ops if other is not op):
            return False
        if isinstance(parent, scf.For | scf.While):
            return True
        inner = parent


def scan_in_place(d: _Lowering, op: ttg.CrossWarpScan, operands: list[Value]) -> Sequence[Value]:
    """Store, meet, let warp 0 scan all parts, meet, load one's own."""
    buffers = [d.parts(value) for value in operands]
    for value, buffer in zip(operands, buffers, strict=True):
        d.store(value, buffer)
    d.barrier()
    condition, then = d.is_one_of([0]), Block()
    with d.builder.inside(then):
        whole = [d.load_all(buffer, element_type(old.type)) for old, buffer in zip(operands, buffers, strict=True)]
        reverse = True if op.reverse else None
        region = d.rebuild_region(op.combine)
        made = d.builder.create(tt.Scan, whole, regions=[region], axis=0, reverse=reverse)
        for new, buffer in zip(made.results, buffers, strict=True):
            stored = d.converted(new, _stored(element_type(new.type)))
            d.builder.create(ttg.LocalStore, stored, buffer)
        d.builder.create(scf.Yield, [], result_types=[])
    d.branch(condition, then, None, [])
    d.barrier()
    return [d.load_own(buffer, old) for old, buffer in zip(operands, buffers, strict=True)]


RULES: RuleTable = {ttg.CrossWarpReduce: reduce_through_memory, ttg.CrossWarpScan: scan_in_place}

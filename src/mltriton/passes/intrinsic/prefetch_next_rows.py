"""prefetch-next-rows: while the last loop of a row stores, what the first one of the next row loads is asked for.

Level: intrinsic, targets whose blocks lie in memory. Takes any program and changes it in place. A row that is summed
and then stored is read from far away by its first loop alone; the last one leaves the memory behind the caches idle.
It asks for what the first loop will load in the next program, or in the next iteration of the loop around both: the
same addresses with the program's id, or the counter, one further, but not beyond the last one. Guarantees: nothing is
loaded or stored that was not before; programs with dots, which bring operands nearer themselves, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import arith, scf, tile, tt
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, I32, byte_width, pointee
from mltriton.passes.intrinsic.tile_loops.tiles import LINE


class PrefetchNextRows(Pass):
    """Ask for the next row while one is stored."""

    name = "prefetch-next-rows"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            found = list(function.walk())
            if not any(isinstance(op, tile.Dot | tile.IndirectDot) for op in found):
                for op in found:
                    if isinstance(op, tt.Func | scf.For):
                        _prefetch(op, op.body.block)
        return module


def _prefetch(around: tt.Func | scf.For, block: Block) -> None:
    """Let the last loop of a block prefetch for the first one, if they walk over one row."""
    loops = [op for op in block.ops if isinstance(op, scf.For)]
    first = next((loop for loop in loops if loop.results), None)
    last = next((loop for loop in reversed(loops) if _stores(loop) and first and _has_bounds_of(loop, first)), None)
    if first is None or last is None or not first.is_before(last):
        return
    moving = around.counter if isinstance(around, scf.For) else _program_id(block)
    if moving is None:
        return
    ops = [*block.ops[: block.position(last)], *first.body.block.ops]
    followers = _followers(ops, moving)
    pointers = [op.ptr for op in first.body.block.ops if isinstance(op, tile.Load) and op.ptr in followers]
    pointers = [pointer for pointer in dict.fromkeys(pointers) if _begins_line(pointer)]
    needed = _needed(ops, pointers)
    if pointers and all(op.pure and not op.regions for op in needed):
        values = {moving: _next(around, moving, last), first.counter: last.counter}
        _write(needed, values, block, last)
        builder = Builder().before(last.body.block.terminator)
        for pointer in pointers:
            builder.create(tile.Prefetch, values[pointer], result_types=[])


def _stores(loop: scf.For) -> bool:
    """Whether a loop stores and sums nothing up."""
    return not loop.results and any(isinstance(op, tile.Store) for op in loop.body.block.ops)


def _has_bounds_of(loop: scf.For, other: scf.For) -> bool:
    return loop.operands[:3] == other.operands[:3]


def _program_id(block: Block) -> Value | None:
    """That along x, which grows by one from a program to the next."""
    return next((op.result for op in block.ops if isinstance(op, tt.GetProgramId) and op.axis == "x"), None)


def _followers(ops: Sequence[Operation], moving: Value) -> set[Value]:
    """What depends on a value."""
    found = {moving}
    for op in ops:
        if not found.isdisjoint(op.operands):
            found.update(op.results)
    return found


def _begins_line(pointer: Value) -> bool:
    """Whether a chunk, of several that one iteration takes, may be the first one of its cache line."""
    op = pointer.defining_op
    offset = op.offset.defining_op if isinstance(op, tt.AddPtr) else None
    if not isinstance(offset, arith.Constant) or not isinstance(offset.value, IntegerAttr):
        return True
    return offset.value.value * byte_width(pointee(pointer.type)) % LINE == 0


def _needed(ops: Sequence[Operation], values: Sequence[Value]) -> list[Operation]:
    """Those operations that values are computed by, in order."""
    wanted = set(values)
    found: list[Operation] = []
    for op in reversed(ops):
        if not wanted.isdisjoint(op.results):
            found.append(op)
            wanted.update(op.operands)
    return found[::-1]


def _next(around: tt.Func | scf.For, moving: Value, place: Operation) -> Value:
    """The id of the next program, or the counter of the next iteration; of the last one its own."""
    emit = Builder().before(place).emit
    if isinstance(around, scf.For):
        step, end = around.step, around.upper
    else:
        step = emit(arith.Constant, value=make_constant(I32, (1,)), result_types=[I32])
        end = emit(tt.GetNumPrograms, axis="x")
    after = emit(arith.AddI, moving, step)
    is_inside = emit(arith.CmpI, after, end, predicate="slt", result_types=[I1])
    return emit(arith.Select, is_inside, after, moving)


def _write(needed: Sequence[Operation], values: dict[Value, Value], block: Block, last: scf.For) -> None:
    """Compute anew what depends on `values`: before the last loop what stands before the first one, and in it what
    stands there.
    """
    outside, inside = Builder().before(last), Builder().before(last.body.block.ops[0])
    for op in needed:
        if not values.keys().isdisjoint(op.operands):
            (outside if op.block is block else inside).insert(op.clone(values))

"""demote-sums: what a loop adds up lies in shared memory where registers are too few.

Level: intrinsic, targets whose lanes have registers of their own. Takes functions that need more registers than a lane
may have (`RegisterEstimate`) and changes their `scf.for` loops in place. A block that an iteration takes only to add to
it, element by element, goes to shared memory before the loop; each iteration loads it, adds and stores it again, every
lane what is its own, so that nobody waits. What is added up is computed and added as soon as it can be, since that
often ends the life of other blocks. Guarantees: no result changes; a block stays where shared memory has no room left,
where the function fits without, and where lanes share elements. Purpose: registers that the compiler behind this one
would keep in memory go there and back through caches in each iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import arith, gpu, scf, tt, ttg
from mltriton.dialects.scf_carried import keep_for
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, MemDescType, TensorType, byte_width
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of

LEAST_BYTES = 4  # of an element that is worth it; a lane's shared memory has words
LEAST_REGISTERS = 4  # of a lane: fewer go for addresses


class DemoteSums(Pass):
    """Keep sums of loops in shared memory where a lane has no registers for them."""

    name = "demote-sums"

    def run(self, module: Module) -> Module:
        spec, warps = spec_of(module), num_warps_of(module)
        registers = max((mode.registers for mode in spec.register_modes if mode.max_warps >= warps), default=0)
        if not spec.has_lanes or not registers:
            return module
        for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
            if RegisterEstimate(function, spec).peak.registers > registers:
                _demote(function, spec, warps, registers)
        return module


@dataclass
class _Sum:
    """A carried block, by its number, and the operation that adds to it."""

    loop: scf.For
    number: int
    op: Operation

    @property
    def type(self) -> TensorType:
        """The block's."""
        return cast(TensorType, self.op.result.type)

    def bytes(self, warps: int) -> int:
        """Of all warps' parts."""
        return warps * self.type.bytes


def _demote(function: tt.Func, spec: TargetSpec, warps: int, registers: int) -> None:
    room = spec.shared_bytes - _held(function)
    for loop in [op for op in function.walk() if isinstance(op, scf.For)]:
        for each in _sums(loop, spec):
            _move_up(each.op)
        while RegisterEstimate(function, spec).peak.registers > registers:
            found = next((each for each in _sums(loop, spec) if each.bytes(warps) <= room), None)
            if found is None:
                break
            room -= found.bytes(warps)
            loop = _to_shared_memory(found, warps)


def _held(function: tt.Func) -> int:
    """Bytes of shared memory that are taken, if nothing overlaps."""
    blocks = [cast(MemDescType, op.result.type) for op in function.walk() if isinstance(op, ttg.LocalAlloc)]
    return sum(prod(block.shape) * byte_width(block.element) for block in blocks)


def _sums(loop: scf.For, spec: TargetSpec) -> list[_Sum]:
    """The blocks that an iteration adds to and takes for nothing else, none twice by lanes."""
    body, found = loop.body.block, list[_Sum]()
    for number, (argument, yielded) in enumerate(zip(body.arguments[1:], body.terminator.operands, strict=True)):
        op = yielded.defining_op
        if op is None or op.block is not body or not op.elementwise or yielded.uses != 1 or argument.uses != 1:
            continue
        if argument in op.operands and _is_own(argument, spec):
            found.append(_Sum(loop, number, op))
    return found


def _is_own(value: Value, spec: TargetSpec) -> bool:
    """Whether a block has each element in one lane only, and enough in each."""
    type = value.type
    if not isinstance(type, TensorType) or not isinstance(type.encoding, Encoding):
        return False
    each = warp_layout(type.encoding, type.shape).count("register")
    is_worth = each >= LEAST_REGISTERS and byte_width(type.element) >= LEAST_BYTES
    return is_worth and each * spec.warp_size == type.size


def _move_up(op: Operation) -> None:
    """Compute a result, and what only takes computing for it, as soon as its body has loaded what it takes."""
    block = op.block
    assert block is not None
    order = {each: position for position, each in enumerate(block.ops)}
    needed, pending, anchor = {op}, [op], -1
    while pending:
        for value in pending.pop().operands:
            source = value.defining_op
            if source is None or source.block is not block or source in needed:
                continue
            if source.elementwise or isinstance(source, tt.Splat):
                needed.add(source)
                pending.append(source)
            else:
                anchor = max(anchor, order[source])
    started = (position for each, position in order.items() if isinstance(each, ttg.AsyncCommitGroup))
    anchor = max(anchor, *started, -1)  # copies for later iterations first
    later = [each for each in block.ops if each in needed and order[each] > anchor]
    rest = [each for each in block.ops if each not in later]
    position = next((position for position, each in enumerate(rest) if order[each] > anchor), len(rest))
    block.ops[:] = [*rest[:position], *later, *rest[position:]]


def _to_shared_memory(each: _Sum, warps: int) -> scf.For:
    """Let a loop carry a sum in shared memory; the loop that takes its place."""
    loop, number, op = each.loop, each.number, each.op
    window = _window(Builder().before(loop), each.type, loop.inits[number], warps)
    argument = loop.body.block.arguments[1 + number]
    before = Builder().before(op)
    argument.replace_by(before.emit(ttg.LocalLoad, window, result_types=[each.type]))
    made = keep_for(loop, [other for other in range(len(loop.inits)) if other != number])
    block = op.block
    assert block is not None
    Builder().before(block.ops[block.position(op) + 1]).create(ttg.LocalStore, op.result, window)
    outside = made.block
    assert outside is not None
    after = Builder().before(outside.ops[outside.position(made) + 1])
    if loop.results[number].uses:
        loop.results[number].replace_by(after.emit(ttg.LocalLoad, window, result_types=[each.type]))
    return made


def _window(builder: Builder, type: TensorType, init: Value, warps: int) -> Value:
    """A warp's part of shared memory for a block, with what is there before the loop."""
    memory = MemDescType((warps, *type.shape), type.element)
    whole = builder.emit(ttg.LocalAlloc, None, result_types=[memory])
    warp = builder.emit(arith.IndexCast, builder.emit(gpu.SubgroupId), result_types=[I32])
    indices = [warp, *(arith.integer(builder, 0) for _ in type.shape)]
    window = builder.emit(
        ttg.MemDescSubview, whole, indices, result_types=[MemDescType(type.shape, type.element, None, memory.mutable)]
    )
    builder.create(ttg.LocalStore, init, window)
    return window

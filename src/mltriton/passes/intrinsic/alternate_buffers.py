"""alternate-buffers: what iterations write to shared memory for products lies in two places by turns.

Level: intrinsic, before `allocate-shared-memory`. Takes loops in which all warps meet twice: in front of what they
write for products of this iteration, since others may still read what the last one wrote, and behind it. Changes them
in place: iterations write to two places by turns, and the first meeting stands in front of the loop. Guarantees: who
writes has met all others behind the writing of the iteration before, to which each came after the products that read
this place were done, one iteration earlier; nobody else needs the meeting that goes: the loop accesses no other memory
that warps write. Changes nothing where as many programs would not fit on a multiprocessor any more.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple, cast

from mltriton.analysis.aliasing import allocation_of, only_adds
from mltriton.analysis.effects import is_pure
from mltriton.dialects import arith, gpu, scf, tt, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import MemDescType, byte_width
from mltriton.passes.intrinsic.allocate_shared_memory import end_of, placements_of, uses_of
from mltriton.passes.ttg.copy_blocks import window_at
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of

SWIZZLED = 1024  # bytes after which a swizzled block repeats
_ORDERS = (gpu.Barrier, ttng.WaitBarrier, ttng.ArriveBarrier, ttng.WarpGroupDotWait, ttng.FenceAsyncShared)
_ACCESSES = (ttg.LocalLoad, ttg.LocalStore, ttng.WarpGroupDot)


class AlternateBuffers(Pass):
    """Let warps meet once in an iteration."""

    name = "alternate-buffers"

    def run(self, module: Module) -> Module:
        spec, warps = spec_of(module), num_warps_of(module)
        for function in [op for op in module.body.block.ops if isinstance(op, tt.Func)]:
            for loop in [op for op in function.walk() if isinstance(op, scf.For)]:
                found = _find(loop)
                if found is not None and _has_room(function, found.bytes, spec, warps):
                    _rewrite(found)
        return module


class _Buffer(NamedTuple):
    """What a loop's iterations write, between the two meetings of its warps."""

    loop: scf.For
    made: ttg.LocalAlloc
    first: Operation

    @property
    def bytes(self) -> int:
        """Of one place."""
        memory = cast(MemDescType, self.made.result.type)
        return prod(memory.shape) * byte_width(memory.element)


def _find(loop: scf.For) -> _Buffer | None:
    ops = loop.body.block.ops
    inside = [op for op in loop.walk() if op is not loop]
    meetings = [op for op in inside if isinstance(op, gpu.Barrier)]
    made = [op for op in inside if isinstance(op, ttg.LocalAlloc)]
    if len(meetings) != 2 or len(made) != 1 or any(op.block is not loop.body.block for op in (*meetings, *made)):
        return None
    found = _Buffer(loop, made[0], meetings[0])
    uses = uses_of(made[0].result)
    if made[0].init is not None or uses is None or found.bytes % SWIZZLED:
        return None
    first, second = map(ops.index, meetings)
    for use in uses:
        if isinstance(use, ttg.MemDescSubview | ttg.MemDescTrans):
            continue
        if use.block is not loop.body.block or not (_is_written(use, ops, first, second) or _is_read(use, ops, second)):
            return None
    return None if any(_needs_meetings(op, made[0].result) for op in inside if op is not made[0]) else found


def _is_written(use: Operation, ops: list[Operation], first: int, second: int) -> bool:
    return isinstance(use, ttg.LocalStore) and first < ops.index(use) < second


def _is_read(use: Operation, ops: list[Operation], second: int) -> bool:
    """Whether a product reads it behind the second meeting, and is done before the iteration ends."""
    return isinstance(use, ttng.WarpGroupDot) and ops.index(use) > second and end_of(use, []) is not None


def _needs_meetings(op: Operation, own: Value) -> bool:
    """Whether an operation may access memory that warps order by meetings: any but `own`, blocks that the engine fills,
    of which barriers in memory tell, and what is only added to, in any order.
    """
    if isinstance(op, _ACCESSES):
        blocks = [allocation_of(value) for value in op.operands if isinstance(value.type, MemDescType)]
        return any(block is not own and _is_filled_by_warps(block) for block in blocks)
    return not (isinstance(op, _ORDERS) or op.terminator or is_pure(op) or only_adds(op))


def _is_filled_by_warps(memory: Value) -> bool:
    made, uses = memory.defining_op, uses_of(memory)
    if not isinstance(made, ttg.LocalAlloc) or made.init is not None or uses is None:
        return True
    return any(isinstance(use, ttg.LocalStore | ttg.AsyncCopyGlobalToLocal) for use in uses)


def _has_room(function: tt.Func, size: int, spec: TargetSpec, warps: int) -> bool:
    """Whether as many programs fit on a multiprocessor with two places, if these overlap with nothing."""
    taken = max((block.offset + block.bytes for block in placements_of(function).values()), default=0)
    more, of = taken + 2 * size, spec.multiprocessor
    if of is None or more > spec.shared_bytes:
        return False
    before, after = (of.programs(warps * spec.warp_size, 1, each) for each in (taken, more))
    return before == after


def _rewrite(found: _Buffer) -> None:
    loop, made = found.loop, found.made
    memory = cast(MemDescType, made.result.type)
    entry, body = Builder().before(loop), loop.body.block
    entry.loc = made.loc
    twice = MemDescType((2, *memory.shape), memory.element, memory.encoding, memory.mutable)
    places = entry.emit(ttg.LocalAlloc, None, result_types=[twice])
    entry.create(gpu.Barrier)
    place, _ = carry_also(loop, arith.integer(entry, 0))
    start, end = Builder().before(made), Builder().before(body.terminator)
    start.loc = end.loc = made.loc
    made.result.replace_by(window_at(start, places, place))
    yield_also(body, [end.emit(arith.XOrI, place, arith.integer(end, 1))])
    made.erase()
    found.first.erase()

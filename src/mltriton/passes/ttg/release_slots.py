"""release-slots: a slot goes back to its producer as soon as nothing reads it any more.

Level: ttg, after `start-dots`. Takes any program and changes it in place: an arrival without a condition
(`ttng.arrive_barrier`) at the end of an iteration moves up, right behind the last operation of its block that reads a
slot of that number, which for a product that goes on by itself is the wait for it. Guarantees: who waits for the
arrival waits for these reads. Where a product is not waited for in the block arrivals stay.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt, ttg, ttng
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I64, MemDescType


class ReleaseSlots(Pass):
    """Give slots back early."""

    name = "release-slots"

    def run(self, module: Module) -> Module:
        for op in list(module.walk()):
            if isinstance(op, ttng.ArriveBarrier) and op.pred is None and op.block is not None:
                _release(op, op.block)
        return module


def _release(arrival: ttng.ArriveBarrier, block: Block) -> None:
    window = arrival.barrier.defining_op
    if not isinstance(window, ttg.MemDescSubview) or window.block is not block:
        return
    last: Operation | None = None
    for read in reads_of(window.offsets[0]):
        end = _end(read, block)
        if end is None:
            return
        last = end if last is None or last.is_before(end) else last
    if last is not None and last.is_before(arrival):
        constants = (value.defining_op for value in window.offsets)
        needed = [op for op in constants if isinstance(op, arith.Constant) and op.block is block and last.is_before(op)]
        for op in (*needed, window, arrival):
            block.ops.remove(op)
            block.insert_after(last, op)
            last = op


def reads_of(number: Value) -> list[Operation]:
    """The operations that read slots of a number."""
    found, pending = list[Operation](), list(number.users)
    while pending:
        user = pending.pop()
        if isinstance(user, ttg.MemDescSubview | ttg.MemDescTrans):
            blocks = user.result.type
            if isinstance(blocks, MemDescType) and blocks.element is not I64:
                pending += user.result.users
        elif isinstance(user, tt.Dot | ttg.LocalLoad | ttg.LocalGather):
            found.append(user)
    return found


def _end(read: Operation, block: Block) -> Operation | None:
    """The operation of a block behind which a read is over."""
    here = read.ancestor_in(block)
    if here is None:
        return None
    if not isinstance(read, ttng.WarpGroupDot) or not read.is_async:
        return here
    waits = (op for op in read.result.users if isinstance(op, ttng.WarpGroupDotWait) and not _others_last(op, read))
    return next((op.ancestor_in(block) for op in waits), None)


def _others_last(wait: ttng.WarpGroupDotWait, dot: ttng.WarpGroupDot) -> bool:
    """Whether a wait may leave a product under way: so many have been started since."""
    block = dot.block
    assert block is not None
    if wait.block is not block:
        return True
    between = block.ops[block.position(dot) + 1 : block.position(wait)]
    return wait.pendings > sum(isinstance(op, ttng.WarpGroupDot) and op.is_async for op in between)

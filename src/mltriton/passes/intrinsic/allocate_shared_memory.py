"""allocate-shared-memory: blocks in shared memory overlap where they can.

Level: intrinsic, targets whose blocks live in registers. Gives each `ttg.local_alloc` its offset, `allocation.offset`
in bytes. Two of them may have one offset when they are never needed at once and all warps meet in between: from its
allocation on until the last operation of the same body that uses it (a loop counts whole) a block is needed; where no
barrier of that body stands between its allocation and its first use, from the barrier before the allocation on. What
copies or products under way use is needed until the body has waited for all of them. Blocks of which that cannot be
said, and those that regions carry, have memory of their own. What a partition (`ttg.warp_specialize`) fills is needed
as long as the default side uses it, which waits for all of it. Guarantees: a warp writes memory only after all warps
are done with what was there. No later pass may move uses of shared memory over barriers.
"""

from __future__ import annotations

from math import prod
from typing import cast

from mltriton.analysis.placement import Placement, place
from mltriton.dialects import gpu, tt, ttg, ttng
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, MemDescType, byte_width

# What goes on after it, and what waits for all of that.
_Wait = ttg.AsyncWait | ttng.WarpGroupDotWait | ttng.AsyncTMAStoreWait
UNDER_WAY: dict[type[Operation], type[_Wait]] = {
    ttg.AsyncCopyGlobalToLocal: ttg.AsyncWait,
    ttng.WarpGroupDot: ttng.WarpGroupDotWait,
    ttng.AsyncTMACopyLocalToGlobal: ttng.AsyncTMAStoreWait,
    ttng.AsyncTMAReduce: ttng.AsyncTMAStoreWait,
}
ALIGNMENT, COPIED_ALIGNMENT, SWIZZLED_ALIGNMENT = 64, 128, 1024  # bytes; what is swizzled repeats after 1024
_ENGINE = (ttng.AsyncTMACopyGlobalToLocal, ttng.AsyncTMACopyLocalToGlobal)  # Who reads comes after what it waited for.
_USES = (ttg.LocalLoad, ttg.LocalStore, ttg.LocalGather, tt.Dot, ttg.AsyncCopyGlobalToLocal, *_ENGINE)


class AllocateSharedMemory(Pass):
    """Say where each block in shared memory is."""

    name = "allocate-shared-memory"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                for op, block in placements_of(function).items():
                    op.attributes = op.attributes | {ttg.ALLOCATION_OFFSET: IntegerAttr(block.offset, I32)}
        return module


def placements_of(function: tt.Func) -> dict[ttg.LocalAlloc, Placement]:
    """Where the blocks of a function go."""
    order = {op: number for number, op in enumerate(function.walk())}
    placements = {op: _placement(op, order) for op in order if isinstance(op, ttg.LocalAlloc)}
    place(sorted(placements.values(), key=lambda block: (block.first, -block.last)))
    return placements


def _placement(op: ttg.LocalAlloc, order: dict[Operation, int]) -> Placement:
    """One allocation, and the first and last operation, by number, between which it is needed."""
    memory = cast(MemDescType, op.result.type)
    size = prod(memory.shape) * byte_width(memory.element)
    return Placement(size, *_interval(op, order), _alignment(op, memory))


def _alignment(op: ttg.LocalAlloc, memory: MemDescType) -> int:
    """What the offset is a multiple of."""
    if memory.encoding is not None:
        return SWIZZLED_ALIGNMENT
    return COPIED_ALIGNMENT if any(isinstance(use, _ENGINE) for use in uses_of(op.result) or ()) else ALIGNMENT


def _interval(op: ttg.LocalAlloc, order: dict[Operation, int]) -> tuple[int, int]:
    uses = uses_of(op.result)
    body = None if op.block is None or op.init is not None else _body(op.block)
    if uses is None or body is None:
        return 0, len(order)
    uses = [use for use in uses if not _is_filled_beside(use)]
    inside = set(body)
    around = [_around(use, inside) for use in uses]
    first, last = (choose(around, key=order.__getitem__, default=op) for choose in (min, max))
    ends = [end_of(use, body[body.index(last) + 1 :]) for use in uses if type(use) in UNDER_WAY]
    if None in ends:
        return 0, len(order)
    last = max((last, *(_around(end, inside) for end in ends if end)), key=order.__getitem__)
    end = max(order[inner] for inner in last.walk())
    if any(isinstance(between, gpu.Barrier) for between in body[body.index(op) : body.index(first)]):
        return order[op], end
    barriers = [order[other] for other in body[: body.index(op)] if isinstance(other, gpu.Barrier)]
    if barriers:
        return barriers[-1], end
    return 0, end if isinstance(op.parent_op, tt.Func) else len(order)


def end_of(use: Operation, behind: list[Operation]) -> Operation | None:
    """The operation that waits for a copy or product: behind it in its own body, or among those `behind`."""
    if isinstance(use, ttng.WarpGroupDot) and not use.is_async:
        return use
    own = use.block.ops if use.block is not None else []
    kind = UNDER_WAY[type(use)]
    waits = (op for op in (*own[own.index(use) :], *behind) if isinstance(op, kind))
    return next((op for op in waits if not (op.num if isinstance(op, ttg.AsyncWait) else op.pendings)), None)


def _body(block: Block) -> list[Operation]:
    """The operations that follow each other in a block, with those of a default side at its end."""
    sides = [op.default.block.ops for op in block.ops if isinstance(op, ttg.WarpSpecialize)]
    return [*(op for op in block.ops if not isinstance(op, ttg.WarpSpecialize)), *(op for side in sides for op in side)]


def _is_filled_beside(use: Operation) -> bool:
    """Whether a partition uses a block."""
    parent = use.block and use.block.parent_op
    while parent is not None and not isinstance(parent, ttg.WarpSpecialize):
        use, parent = parent, parent.parent_op
    return parent is not None and use.block is parent.partition.block


def _around(use: Operation, body: set[Operation]) -> Operation:
    """The operation of a body that a use is, or is inside of."""
    while use not in body:
        parent = use.parent_op
        assert parent is not None
        use = parent
    return use


def uses_of(memory: Value) -> list[Operation] | None:
    """The operations that use a block or a part of it; None where they cannot be told."""
    found: list[Operation] = []
    for user in memory.users:
        if isinstance(user, ttg.MemDescSubview | ttg.MemDescTrans):
            inner = uses_of(user.result)
            if inner is None:
                return None
            found += [user, *inner]
        elif isinstance(user, _USES):
            found.append(user)
        else:
            return None
    return found

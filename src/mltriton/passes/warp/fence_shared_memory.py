"""fence-shared-memory: products of several warps see what warps have written to the memory that they read.

Level: warp, where barriers stand already. Takes any program and changes it in place: in front of the barrier behind
which others may read what was stored or copied (a `ttg.local_store`, or the wait for copies) stands a
`ttng.fence_async_shared`, if it is memory that a `ttng.warp_group_dot` reads. Where no barrier follows in the block
the fence stands right there.
"""

from __future__ import annotations

from mltriton.analysis.aliasing import allocation_of
from mltriton.dialects import gpu, tt, ttg, ttng
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import MemDescType


class FenceSharedMemory(Pass):
    """Put fences between ordinary writes and products that read shared memory by themselves."""

    name = "fence-shared-memory"

    def run(self, module: Module) -> Module:
        for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
            ops = list(function.walk())
            multiplied = {memory for op in ops if isinstance(op, ttng.WarpGroupDot) for memory in _read(op)}
            copied = any(
                isinstance(op, ttg.AsyncCopyGlobalToLocal) and allocation_of(op.memory) in multiplied for op in ops
            )
            for op in ops:
                stores = isinstance(op, ttg.LocalStore) and allocation_of(op.memory) in multiplied
                fills = isinstance(op, ttg.LocalAlloc) and op.init is not None and op.result in multiplied
                if stores or fills or (copied and isinstance(op, ttg.AsyncWait)):
                    _fence_behind(op)
        return module


def _read(dot: ttng.WarpGroupDot) -> list[Value]:
    return [allocation_of(operand) for operand in (dot.a, dot.b) if isinstance(operand.type, MemDescType)]


def _fence_behind(op: Operation) -> None:
    block = op.block
    assert block is not None
    behind = block.ops[block.position(op) + 1 :]
    barrier = next((other for other in behind if isinstance(other, gpu.Barrier)), behind[0])
    before = block.ops[block.position(barrier) - 1]
    if not isinstance(before, ttng.FenceAsyncShared):
        builder = Builder().before(barrier)
        builder.loc = op.loc
        builder.create(ttng.FenceAsyncShared)

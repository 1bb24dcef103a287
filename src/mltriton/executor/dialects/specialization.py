"""`ttg.warp_specialize` on the machine: both sides run at the same time, each by warps of its own.

Level: ttg to intrinsic. From `warp` on every warp runs its side. At `ttg`, where a program is one warp, the sides take
turns: each runs until it waits for a barrier in shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mltriton.dialects import ttg, ttng
from mltriton.executor.code import Code, FlowTable, Frame, Run
from mltriton.executor.machine import Warp, stuck
from mltriton.executor.shared import AsyncCopies
from mltriton.ir.operation import Operation

Flow = Callable[[Warp, Frame], Run]


def warp_specialize(op: ttg.WarpSpecialize, code: Code) -> Flow:
    """The default side by the program's own warps, the partition by the first of the others."""
    default, partition = code.block(op.default.block), code.block(op.partition.block)

    def run(warp: Warp, frame: Frame) -> Run:
        program = warp.instance
        if program.warps == 1:
            other = replace(warp, id=1, copies=AsyncCopies(), products=AsyncCopies())
            program.shared.engine.clocks.meet([0, 1])
            return _in_turns(warp, {0: default.run(warp, frame), 1: partition.run(other, dict(frame))})
        if warp.id > program.own:
            return _nothing()
        return (default if warp.id < program.own else partition).run(warp, frame)

    return run


def _nothing() -> Run:
    return []
    yield


def _in_turns(warp: Warp, running: dict[int, Run]) -> Run:
    """Let each side run until it waits, as long as one comes further."""
    engine = warp.instance.shared.engine
    while running:
        before, blocked = engine.events, dict[int, Operation]()
        for number, run in list(running.items()):
            stop = next(run, None)
            if stop is None:
                del running[number]
            elif isinstance(stop, ttng.WaitBarrier):
                blocked[number] = stop
        if blocked and len(blocked) == len(running) and engine.events == before:
            raise stuck(blocked, warp.program)
    return []
    yield


FLOW: FlowTable = {ttg.WarpSpecialize: warp_specialize}

"""Combinations across the warps of a program: `ttg.cross_warp_reduce` and `ttg.cross_warp_scan`.

Level: tt to warp, in warp-level kernels. Every warp brings its values to the meeting, which is a barrier, and computes
what it receives after it. A warp that receives nothing gets poison: NaN, or -1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mltriton.dialects import ttg
from mltriton.executor.code import Code, FlowTable, Frame, Run
from mltriton.executor.dialects.tt_dot import Combine, combiner, reduced, scanned
from mltriton.executor.machine import Warp
from mltriton.executor.segments import POISON
from mltriton.executor.values import Array, decode, memory_dtype
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import element_type, shape_of

Flow = Callable[[Warp, Frame], Run]


def cross_warp_reduce(op: ttg.CrossWarpReduce, code: Code) -> Flow:
    """The combination of all warps' values, on the warps that receive it."""
    receivers, block = op.dst_warps, op.combine.block

    def run(warp: Warp, frame: Frame) -> Run:
        brought = yield from meet(op, warp, [frame[name] for name in op.sources])
        if receivers and warp.id not in receivers:
            return [poison(result) for result in op.results]
        return combined(op.results, reduced(brought, combiner(block, code, warp, frame)))

    return run


def cross_warp_scan(op: ttg.CrossWarpScan, code: Code) -> Flow:
    """The combination of the values of the warps up to this one."""
    reverse, block = op.reverse, op.combine.block

    def run(warp: Warp, frame: Frame) -> Run:
        brought = yield from meet(op, warp, [frame[name] for name in op.sources])
        combine: Combine = combiner(block, code, warp, frame)
        return combined(op.results, [part[warp.id] for part in scanned(brought, combine, reverse=reverse)])

    return run


def meet(op: Operation, warp: Warp, values: list[Array]) -> Run:
    """Bring values, wait for all warps; gives for each value those of all warps along a new first dimension."""
    meeting = warp.instance.meeting()
    meeting[warp.id] = values
    yield op
    return [np.stack(part) for part in zip(*meeting, strict=True)]


def combined(results: Sequence[Value], values: Sequence[Array]) -> list[Array]:
    """Values as blocks, or as scalars where the results are."""
    return [value if shape_of(result.type) else value[()] for result, value in zip(results, values, strict=True)]


def poison(result: Value) -> Array:
    """A value of which every bit is set."""
    element = element_type(result.type)
    dtype = memory_dtype(element)
    bits = np.full(dtype.itemsize, POISON, np.uint8).view(dtype)
    values = decode(np.broadcast_to(bits, shape_of(result.type) or (1,)).copy(), element)
    return values if shape_of(result.type) else values[0]


FLOW: FlowTable = {ttg.CrossWarpReduce: cross_warp_reduce, ttg.CrossWarpScan: cross_warp_scan}

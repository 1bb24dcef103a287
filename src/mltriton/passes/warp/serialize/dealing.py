"""Loops whose iterations are dealt out to the warps in turn: `for i in range(start + warp * n, end, n * warps)`.

Level: warp. Such a loop may be cut (`sharing.py`) into one that counts for all warps together, in whose iterations each
warp does one of its own, if it has one left. Memory is then read in the order in which it lies, which is what a
processor expects of a thread, and not by one warp after the other, each with gaps where the others read.
"""

from __future__ import annotations

from collections.abc import Container

from mltriton.dialects import arith, gpu, scf
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, FloatType, IntegerType, bit_width, element_type, shape_of
from mltriton.passes.warp.serialize.units import Cut

MOST_STATE = 1 << 16  # bytes that all warps carry together; more would come from slower memory in each iteration


def share_of(loop: Operation, warps: int, varying: Container[Value]) -> int | None:
    """By how much a warp starts after the one before it, if the iterations of a loop are dealt out to the warps."""
    if not isinstance(loop, scf.For) or loop.counter.type is not I32 or loop.upper in varying:
        return None
    step, share = splat_of(loop.step), _slope(loop.lower, varying)
    if share is None or share <= 0 or step != share * warps:
        return None
    types = [value.type for value in loop.carried]
    if not all(isinstance(element_type(type), FloatType | IntegerType) for type in types):
        return None
    bits = sum(bit_width(element_type(value.type)) * _size(value) for value in loop.carried)
    return share if bits * warps <= MOST_STATE * 8 else None


def is_whole(loop: Operation, cut: Cut) -> bool:
    """Whether nothing in a loop is cut."""
    assert isinstance(loop, scf.For)
    return len(cut.units[loop.body.block]) == 1


def _size(value: Value) -> int:
    size = 1
    for extent in shape_of(value.type):
        size *= extent
    return size


def _slope(value: Value, varying: Container[Value]) -> int | None:
    """What a number grows by from a warp to the next one; None where that is not known to be one number."""
    op = value.defining_op
    if isinstance(op, arith.IndexCast) and isinstance(op.operands[0].defining_op, gpu.SubgroupId):
        return 1
    if isinstance(op, arith.AddI | arith.SubI):
        first, second = (_slope(operand, varying) for operand in op.operands)
        if first is None or second is None:
            return None
        return first + second if isinstance(op, arith.AddI) else first - second
    if isinstance(op, arith.MulI):
        for factor, other in (op.operands, tuple(reversed(op.operands))):
            number, slope = splat_of(factor), _slope(other, varying)
            if number is not None and slope is not None:
                return int(number) * slope
    return None if value in varying else 0

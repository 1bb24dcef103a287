"""Loops in which the warps take turns in every iteration, although they need not wait for each other.

Level: warp. A loop without barriers whose trips are the same for all warps may be cut like one with barriers: each
iteration is done for all warps before the next one. That pays where a dot takes a right operand that is the same for
all warps and new in every iteration: it is brought into the micro-kernel's form once, not once for each warp. It also
pays where the iterations are dealt out to the warps (`share_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Container

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import arith, gpu, scf, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, FloatType, IntegerType, TensorType, bit_width, element_type, shape_of
from mltriton.passes.intrinsic.pack_operands import is_packed
from mltriton.passes.warp.serialize.grid import Axis, Grid, grid_of
from mltriton.passes.warp.serialize.units import Cut, Piece, has_barrier
from mltriton.passes.warp.serialize.varying import Varying
from mltriton.targets.base import TargetSpec


def cut_of(function: tt.Func, warps: int, spec: TargetSpec) -> Cut:
    """A function that is cut where it waits, and in loops whose dots share an operand that is packed or whose
    iterations are dealt out.
    """
    body, axes = function.body.block, AxisInfoAnalysis(function)
    waiting = {op for inner in body.ops for op in inner.walk() if op.regions and has_barrier(op)}
    if warps == 1:
        return Cut(body, waiting.__contains__, {})
    loops = {op for inner in body.ops for op in inner.walk() if _holds_dot(op)} - waiting
    grid = grid_of(body, warps)
    dealt: dict[Operation, int] = {op: share for op in loops if (share := share_of(op, warps, ())) is not None}
    while True:
        forks = waiting | loops
        cut = Cut(body, forks.__contains__, dealt)
        varying = Varying(cut, body)
        still = {op: share for op, share in dealt.items() if share_of(op, warps, varying) == share}
        still = {op: share for op, share in still.items() if op in cut.forks and is_whole(op, cut)}
        kept = set(still) | {
            op
            for op in loops
            if op in cut.forks and _shares(op, cut, varying, grid, lambda dot: _is_copied(dot, spec, axes))
        }
        if (kept, still) == (loops, dealt):
            return cut
        loops, dealt = kept, still


def _holds_dot(op: Operation) -> bool:
    """Whether an operation is a loop with a dot right in it."""
    return isinstance(op, scf.For) and any(isinstance(inner, tt.Dot) for inner in op.body.block.ops)


def _shares(
    loop: Operation, cut: Cut, varying: Varying, grid: Grid | None, is_packed: Callable[[tt.Dot], bool]
) -> bool:
    """Whether all warps take the same trips, and in some dot all, or those of a row or column, the same new right
    operand.
    """
    assert isinstance(loop, scf.For)
    if any(bound in varying for bound in (loop.lower, loop.upper, loop.step)):
        return False
    body = [op for unit in cut.units[loop.body.block] if isinstance(unit, Piece) for op in unit.ops]
    return any(
        isinstance(op, tt.Dot)
        and op.result in varying
        and (op.b not in varying or (grid is not None and grid.axis(op.b, varying) is not Axis.BOTH))
        and is_defined_inside(op.b, loop)
        and is_packed(op)
        for op in body
    )


def _is_copied(op: tt.Dot, spec: TargetSpec, axes: AxisInfoAnalysis) -> bool:
    """Whether a dot's right operand is copied before it is multiplied, as far as one can see."""
    return is_packed(op, spec) or not _runs_along_rows(op.b, axes)


def _runs_along_rows(value: Value, axes: AxisInfoAnalysis) -> bool:
    """Whether the memory of a block runs along its last dimension, if it lies in memory."""
    op = value.defining_op
    if isinstance(op, ttg.ConvertLayout):
        return _runs_along_rows(op.source, axes)
    if not isinstance(op, tt.Load):
        return isinstance(op, ttg.LocalLoad)
    if isinstance(op.ptr.type, TensorType):
        return axes.of(op.ptr).contiguity[-1] > 1
    pointer = op.ptr.defining_op
    return isinstance(pointer, tt.MakeTensorPtr) and splat_of(pointer.strides[-1]) == 1


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

"""Products that one `wgmma` does: of the same rows by columns that lie behind each other in shared memory.

Level: intrinsic -> llvm. An instruction reads its left operand from shared memory whatever it multiplies it with, so
that two of 128 and 64 columns take longer than one of 192 (`specialize-warps` puts their right operands side by side).
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from mltriton.dialects import ttg, ttng
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType, TensorType

GROUP_ROWS = 64
MOST_COLUMNS = 256  # of an instruction


def joined_with(op: ttng.WarpGroupDot, is_there: Callable[[Value], bool]) -> list[ttng.WarpGroupDot]:
    """The products that are done together from `op` on: it, and the next one if that can be. `is_there` says whether a
    value is known in front of `op`.
    """
    block = op.block
    assert block is not None
    following = block.ops[block.position(op) + 1 :]
    other = next((each for each in following if not each.pure), None)
    if not isinstance(other, ttng.WarpGroupDot) or other.a is not op.a or not is_there(other.c):
        return [op]
    both, columns = (op, other), columns_of(op) + columns_of(other)
    if not all(each.is_async and not each.continues and _rows(each) == GROUP_ROWS // 4 for each in both):
        return [op]
    alike = starts(op) == starts(other) and _sum(op).element == _sum(other).element
    return [*both] if alike and columns <= MOST_COLUMNS and _follows(op.b, other.b) else [op]


def columns_of(op: ttng.WarpGroupDot) -> int:
    """Those of the result."""
    return _sum(op).shape[-1]


def starts(op: ttng.WarpGroupDot) -> bool:
    """Whether the sums begin at 0."""
    return splat_of(op.c) == 0


def _rows(op: ttng.WarpGroupDot) -> int:
    return _sum(op).shape[-2]


def _sum(op: ttng.WarpGroupDot) -> TensorType:
    return cast(TensorType, op.result.type)


def _follows(first: Value, second: Value) -> bool:
    """Whether a right operand's columns lie behind those of another in one block of shared memory."""
    one, other, along = first.defining_op, second.defining_op, 1
    while isinstance(one, ttg.MemDescTrans) and isinstance(other, ttg.MemDescTrans):
        one, other, along = one.memory.defining_op, other.memory.defining_op, 1 - along
    if not isinstance(one, ttg.MemDescSubview) or not isinstance(other, ttg.MemDescSubview):
        return False
    if one.memory is not other.memory:
        return False
    wanted = [0] * len(one.offsets)
    wanted[along - 2] = cast(MemDescType, first.type).shape[1]
    return [_distance(x, y) for x, y in zip(one.offsets, other.offsets, strict=True)] == wanted


def _distance(first: Value, second: Value) -> int | None:
    """How much greater a number is than another, if that is known."""
    a, b = splat_of(first), splat_of(second)
    known = b - a if isinstance(a, int) and isinstance(b, int) else None
    return 0 if first is second else known

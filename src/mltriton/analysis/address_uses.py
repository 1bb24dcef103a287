"""Whether integers only say where memory is accessed: in offsets of pointers, and in masks.

Level: any with `tt` accesses. Such integers do not wrap inside a block (docs/architecture.md, "Semantics"); what is
computed with others is exact. Guarantees: what is not known to be a place is no place.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt, ttg
from mltriton.ir.operation import Operation, Value

_MOVED = (tt.Splat, tt.ExpandDims, tt.Broadcast, tt.Trans, ttg.ConvertLayout)
_INDEX = (*_MOVED, arith.AddI, arith.SubI, arith.MulI, arith.ShLI, arith.ExtSI)
_MASK = (*_MOVED, arith.AndI, arith.OrI)
_ACCESS = (tt.Load, tt.Store, tt.AtomicRMW, tt.AtomicCAS)


def is_place(value: Value) -> bool:
    """Whether an integer, or a block of them, is used for nothing but offsets of pointers and masks of accesses."""
    return all(_takes_place(user, value) for user in value.users)


def _takes_place(user: Operation, value: Value) -> bool:
    if isinstance(user, tt.AddPtr):
        return True
    return is_place(user.results[0]) if isinstance(user, _INDEX) else isinstance(user, arith.CmpI) and _is_mask(user)


def _is_mask(op: Operation) -> bool:
    result = op.results[0]
    return all(
        _is_mask(user) if isinstance(user, _MASK) else isinstance(user, _ACCESS) and _is_only_mask(user, result)
        for user in result.users
    )


def _is_only_mask(access: Operation, value: Value) -> bool:
    return getattr(access, "mask", None) is value and access.operands.count(value) == 1
